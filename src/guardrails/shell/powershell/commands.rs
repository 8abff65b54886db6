//! The commands of PowerShell that end processes, run text or start programs.

use super::super::Shell;
use super::super::windows::{self, Arg, Judged};
use super::names::{self, is_common, short_for};
use super::tree::{Element, Shape, Word};
use super::{Flow, Judge};
use crate::guardrails::Denial;

impl Judge<'_> {
    /// Judges a command and gives what flows out of it.
    pub(super) fn command(&mut self, element: &Element, flow: Flow) -> Result<Flow, Denial> {
        let Some((first, rest)) = element.words.split_first() else { return Ok(Flow::Other) };
        let part = self.part(element);
        windows::count(&mut self.commands, &part, self.context)?;
        if first.shape == Shape::Block {
            return Ok(Flow::Other);
        }
        let Some(typed) = self.facts.text(first) else {
            let block = matches!(first.parts.as_slice(), [super::Part::Variable(name)] if self.facts.blocks.get(name) == Some(&true));
            if !block {
                self.undecided(&part)?;
                let argv: Vec<Arg> = element.words.iter().map(|word| self.arg(word)).collect();
                windows::program(&argv, &part, flow != Flow::Nothing, self.context, self.depth)?;
                self.like_stop(rest, &part)?;
            }
            return Ok(Flow::Other);
        };
        let name = windows::base(&typed);
        let cmdlet = names::cmdlet(&name, &self.facts.aliases);
        if self.facts.loose {
            self.undecided(&part)?;
        }
        match cmdlet.as_str() {
            "stop-process" => {
                self.stop(rest, flow, &part)?;
                return Ok(Flow::Other);
            }
            "get-process" => {
                self.rules(&cmdlet, &name, element)?;
                return Ok(if self.gives_own(element) { Flow::Own } else { Flow::Processes });
            }
            "where-object" | "select-object" | "sort-object" | "tee-object" => {
                self.rules(&cmdlet, &name, element)?;
                return Ok(flow);
            }
            "invoke-expression" => self.expression_text(rest, flow, &part)?,
            "start-process" => return self.start(rest, &part),
            "foreach-object" | "invoke-cimmethod" | "invoke-wmimethod" => {
                self.called(rest, flow, &part, &cmdlet)?;
            }
            "remove-ciminstance" | "remove-wmiobject" if self.mentions("win32_process") => {
                return Err(windows::by_name(&part));
            }
            "new-scheduledtaskaction" => {
                let argv = self.named_argv(
                    rest,
                    &[("execute", "e")],
                    &[("argument", "a")],
                    &[("workingdirectory", "w"), ("id", "i")],
                );
                windows::program(&argv, &part, false, self.context, self.depth)?;
            }
            "set-item" | "new-item" => self.renamed(rest, &part)?,
            "invoke-command" | "start-job" | "start-threadjob" | "measure-command" => {
                let block = |word: &Word| word.shape == Shape::Group && word.members.is_empty();
                if rest.iter().any(block) {
                    self.undecided(&part)?;
                }
            }
            _ => {}
        }
        self.rules(&cmdlet, &name, element)?;
        if names::is_cmdlet(&cmdlet) {
            self.paths(rest, &cmdlet)?;
            return Ok(Flow::Other);
        }
        if is_own_word(&cmdlet) {
            return Ok(Flow::Other);
        }
        let mut argv: Vec<Arg> = element.words.iter().map(|word| self.arg(word)).collect();
        let shell = matches!(cmdlet.as_str(), "powershell" | "pwsh" | "cmd" | "bash" | "sh" | "wsl");
        if shell && argv.iter().any(|arg| arg.value().is_none()) {
            self.scan()?;
        }
        if let Some(first) = argv.first_mut() {
            *first = Arg::known(cmdlet.clone());
        }
        windows::path(&self.arg(first), self.context)?;
        windows::perhaps(&argv, self.line, &part, self.context)?;
        let fed = !matches!(flow, Flow::Nothing | Flow::Known);
        windows::program(&argv, &part, fed, self.context, self.depth)?;
        Ok(Flow::Other)
    }

    /// The set's rules on a cmdlet, under each name that it has.
    fn rules(&mut self, cmdlet: &str, typed: &str, element: &Element) -> Judged {
        if !names::is_cmdlet(cmdlet) {
            return Ok(());
        }
        let mut known = vec![typed, cmdlet];
        known.extend(names::known_as(cmdlet));
        let ruled: Vec<&str> =
            known.into_iter().filter_map(|name| windows::as_ruled(name, self.context)).collect();
        for name in ruled {
            let mut argv: Vec<Arg> = element.words.iter().map(|word| self.arg(word)).collect();
            if let Some(first) = argv.first_mut() {
                *first = Arg::known(name);
            }
            windows::in_bash(&argv, self.context, self.depth)?;
        }
        Ok(())
    }

    /// Paths that a cmdlet names.
    fn paths(&self, rest: &[Word], cmdlet: &str) -> Judged {
        if names::is_text(cmdlet) {
            return Ok(());
        }
        // The first plain word of `Select-String` is its pattern, the second of `Set-Content` its value.
        let patterned = rest.iter().any(|word| {
            word.plain().is_some_and(|text| names::takes_text(text) && text.to_lowercase().starts_with("-pa"))
        });
        let text_at = match cmdlet {
            "select-string" if !patterned => Some(0),
            "set-content" | "add-content" => Some(1),
            _ => None,
        };
        let mut position = 0;
        let mut text = false;
        for word in rest {
            let parameter = word.plain().filter(|text| !word.quoted && text.starts_with('-'));
            if let Some(parameter) = parameter {
                let (name, value) =
                    parameter.split_once(':').map_or((parameter, None), |(name, value)| (name, Some(value)));
                text = names::takes_text(name) && value.is_none_or(str::is_empty);
                if let Some(value) = value.filter(|value| !value.is_empty() && !names::takes_text(name)) {
                    windows::path(&Arg::known(value), self.context)?;
                }
                continue;
            }
            if std::mem::take(&mut text) {
                continue;
            }
            if !word.listed {
                position += 1;
            }
            if text_at.is_some_and(|at| position == at + 1) {
                continue;
            }
            windows::path(&self.arg(word), self.context)?;
        }
        Ok(())
    }

    /// `Stop-Process`.
    fn stop(&mut self, rest: &[Word], flow: Flow, part: &str) -> Judged {
        let mut words = rest.iter().peekable();
        let mut ids = 0;
        while let Some(word) = words.next() {
            if word.shape == Shape::Splat {
                return Err(windows::by_target(part));
            }
            let text = self.facts.text(word).map(|text| text.to_lowercase());
            let parameter = text.as_deref().filter(|text| {
                !word.quoted && text.starts_with('-') && text.chars().nth(1).is_some_and(char::is_alphabetic)
            });
            let Some(parameter) = parameter else {
                ids += 1;
                self.target(word, part)?;
                continue;
            };
            let (parameter, glued) =
                parameter.split_once(':').map_or((parameter, None), |(name, value)| (name, Some(value)));
            if short_for(parameter, "n", "name") || short_for(parameter, "pr", "processname") {
                return Err(windows::by_name(part));
            }
            if parameter == "-i" || parameter == "-id" || short_for(parameter, "in", "inputobject") {
                if let Some(value) = glued.filter(|value| !value.is_empty()) {
                    ids += 1;
                    windows::one_process(value, part, self.context)?;
                }
                continue;
            }
            if is_common(parameter) && glued.is_none_or(str::is_empty) {
                words.next();
                continue;
            }
            let switch = [
                ("force", "f"),
                ("passthru", "p"),
                ("whatif", "w"),
                ("confirm", "c"),
                ("verbose", "verb"),
                ("debug", "d"),
            ];
            let switch = switch.iter().any(|(whole, short)| short_for(parameter, short, whole))
                || matches!(parameter, "-wi" | "-cf" | "-vb" | "-db");
            if !switch {
                return Err(windows::by_target(part));
            }
            // `-Confirm:$false`: the value is a word of its own.
            if glued == Some("") {
                words.next();
            }
        }
        match (ids, flow) {
            (_, Flow::Own) => Ok(()),
            (0, Flow::Processes) => Err(windows::by_name(part)),
            (0, _) => Err(windows::by_target(part)),
            (_, _) => Ok(()),
        }
    }

    /// One value of `-Id` or `-InputObject`.
    fn target(&self, word: &Word, part: &str) -> Judged {
        if let Some(text) = self.facts.text(word) {
            // `kill -9 4242`, as it is written elsewhere: the first is no target that exists.
            let signal = matches!(text.as_str(), "-9" | "-15" | "-2");
            return if signal { Ok(()) } else { windows::one_process(&text, part, self.context) };
        }
        let only_id =
            word.members.iter().all(|member| matches!(member.name.as_deref(), Some("id" | "processid")));
        if only_id && self.own_process(word) {
            return Ok(());
        }
        let text = part.to_lowercase();
        let named = ["get-process", "gps", "(ps ", "pgrep", "pidof", "tasklist"]
            .iter()
            .any(|name| text.contains(name));
        Err(if named { windows::by_name(part) } else { windows::by_target(part) })
    }

    /// A command whose name is not known, with the arguments of a kill.
    fn like_stop(&self, rest: &[Word], part: &str) -> Judged {
        let texts: Vec<String> = rest.iter().filter_map(Word::plain).map(str::to_lowercase).collect();
        let kills = texts.iter().any(|text| {
            matches!(text.trim_start_matches('/'), "im" | "fi") && text.starts_with('/')
                || text == "-name"
                || text == "-processname"
        });
        let host = self.context.host.is_some_and(|host| texts.contains(&host.to_string()));
        match (kills, host) {
            (_, true) => {
                windows::one_process(&self.context.host.unwrap_or_default().to_string(), part, self.context)
            }
            (true, _) if texts.iter().any(|text| text.starts_with('/')) => Err(windows::by_name(part)),
            _ => Ok(()),
        }
    }

    /// `Invoke-Expression`.
    fn expression_text(&mut self, rest: &[Word], flow: Flow, part: &str) -> Judged {
        let mut any = false;
        let mut line = String::new();
        let mut known = true;
        for word in rest {
            let text = self.facts.text(word);
            if text
                .as_deref()
                .is_some_and(|text| !word.quoted && short_for(&text.to_lowercase(), "c", "command"))
            {
                continue;
            }
            any = true;
            let text = text.map(|text| match text.to_lowercase().strip_prefix("-command:") {
                Some(_) if !word.quoted => text.chars().skip("-command:".len()).collect(),
                _ => text,
            });
            match text {
                Some(text) => {
                    line.push_str(&text);
                    line.push(' ');
                }
                None => {
                    known = false;
                    line.push_str(&self.arg(word).with("$unknown"));
                    line.push(' ');
                }
            }
        }
        if any {
            if !known {
                self.undecided(part)?;
            }
            // `iex (irm …)`: what another command fetches or makes.
            if !known && rest.iter().any(made) {
                return windows::opaque(part);
            }
            let judged = windows::nested(Shell::PowerShell, line.trim_end(), self.context, self.depth);
            return if known {
                judged
            } else {
                judged.or_else(|denial| if super::is_own_limit(&denial) { Ok(()) } else { Err(denial) })
            };
        }
        match flow {
            Flow::Known => Ok(()),
            _ => {
                self.scan()?;
                windows::opaque(part)
            }
        }
    }

    /// A method by its name: `ForEach-Object Kill`, `Invoke-CimMethod -MethodName Terminate`.
    fn called(&mut self, rest: &[Word], flow: Flow, part: &str, cmdlet: &str) -> Judged {
        for word in rest {
            let Some(text) = self.facts.text(word) else {
                // A computed method name.
                let block = matches!(word.shape, Shape::Block | Shape::Table | Shape::Splat);
                if !block && cmdlet != "foreach-object" {
                    continue;
                }
                if !block {
                    let known = matches!(word.parts.as_slice(), [super::Part::Variable(name)] if self.facts.blocks.get(name) == Some(&true));
                    if !known {
                        self.undecided(part)?;
                    }
                }
                continue;
            };
            let text = text.to_lowercase();
            let method = text.rsplit(':').next().unwrap_or_default();
            if matches!(method, "kill" | "terminate" | "closemainwindow" | "delete") {
                let ends = method != "delete" || self.mentions("win32_process");
                match flow {
                    _ if !ends => {}
                    Flow::Own if cmdlet == "foreach-object" => {}
                    Flow::Processes => return Err(windows::by_name(part)),
                    _ if self.mentions("win32_process") => return Err(windows::by_name(part)),
                    _ => return Err(windows::by_target(part)),
                }
            }
        }
        let creates = rest
            .iter()
            .any(|word| self.facts.text(word).is_some_and(|text| text.eq_ignore_ascii_case("create")));
        if creates {
            let lines: Vec<Arg> = rest
                .iter()
                .flat_map(|word| {
                    word.inner.iter().flat_map(|script| self.texts(script)).chain([self.arg(word)])
                })
                .collect();
            for line in lines {
                match line.value() {
                    Some(line) if line.contains([' ', '.']) => {
                        windows::nested(Shell::Cmd, &line, self.context, self.depth)?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// `Set-Item alias:k Stop-Process`: a command gets another name.
    fn renamed(&mut self, rest: &[Word], part: &str) -> Judged {
        let texts: Vec<Option<String>> = rest.iter().map(|word| self.facts.text(word)).collect();
        let drive = |text: &String| {
            let text = text.to_lowercase();
            text.contains("alias:") || text.contains("function:")
        };
        if !texts.iter().flatten().any(drive) {
            return Ok(());
        }
        for text in texts {
            match text {
                Some(text) if !drive(&text) && !text.starts_with('-') => {
                    windows::nested(
                        Shell::PowerShell,
                        &format!("{text} $unknown"),
                        self.context,
                        self.depth,
                    )?;
                }
                Some(_) => {}
                None => self.undecided(part)?,
            }
        }
        Ok(())
    }
}

/// Words that PowerShell answers itself.
fn is_own_word(name: &str) -> bool {
    matches!(name, "" | "cd" | "pwd" | "clear" | "cls" | "history" | "help" | "man" | "default" | "exit")
}

/// Whether a word's text is what another command gives.
fn made(word: &Word) -> bool {
    let result = word.parts.contains(&super::Part::Result);
    let fetched = word.members.iter().any(|member| member.call.is_some() && !member.index);
    (result || fetched) && word.shape != Shape::Block
}
