//! The judge of PowerShell lines: its cmdlets, aliases, shortened parameters, pipelines and methods. Programs go on to
//! the judges that know them.

mod commands;
mod facts;
mod names;
mod parse;
mod starting;
mod statements;
mod tree;
mod words;

use facts::Facts;
use tree::{Element, Kind, Member, Part, Pipeline, Script, Shape, Stop, Word};

use super::windows::{self, Arg, Judged, Piece};
use super::{Scope, Shell, Verdict};

/// Brackets and lines in lines that are followed.
const DEEPEST: u32 = 40;

/// The verdict on one line.
pub(super) fn judge(line: &str, context: &Scope<'_>, depth: u32) -> Verdict {
    let chars: Vec<char> = line.chars().collect();
    let script = match parse::parse(&chars, depth, DEEPEST) {
        Ok(script) => script,
        Err(stop) => return Verdict::Deny(stopped(stop, &chars)),
    };
    let facts = Facts::of(&script);
    let small = line.replace('`', "").to_lowercase();
    let mut judge = Judge { line, small, chars: &chars, context, depth, facts, scanned: false, commands: 0 };
    match judge.script(&script) {
        Ok(()) => Verdict::Allow,
        Err(denial) => Verdict::Deny(denial),
    }
}

fn stopped(stop: Stop, chars: &[char]) -> super::super::Denial {
    match stop {
        Stop::Unreadable(at, what) => {
            let part: String = chars.iter().skip(at).take(40).collect();
            let reason = format!(
                "could not be parsed: {what} at column {}; write it as plain PowerShell, or put it into a script file",
                at + 1
            );
            windows::denial(windows::UNREADABLE, &part, &reason)
        }
        Stop::Deep => {
            let part: String = chars.iter().take(40).collect();
            windows::denial(
                windows::DEEP,
                &part,
                "is nested deeper than can be judged; write it as several lines",
            )
        }
    }
}

/// What flows into an element of a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    /// Nothing: it is the first.
    Nothing,
    /// Processes that are named by literal ids, or that the line starts itself.
    Own,
    /// Processes by name, or all.
    Processes,
    /// A text that is known and judged.
    Known,
    /// Anything else.
    Other,
}

struct Judge<'a> {
    line: &'a str,
    /// The same in small letters and without what only hides them.
    small: String,
    chars: &'a [char],
    context: &'a Scope<'a>,
    depth: u32,
    facts: Facts,
    /// Whether the line's texts were looked through already.
    scanned: bool,
    commands: u32,
}

impl Judge<'_> {
    fn script(&mut self, script: &Script) -> Judged {
        for pipeline in &script.pipelines {
            self.pipeline(pipeline)?;
        }
        Ok(())
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Result<(), super::super::Denial> {
        let mut flow = Flow::Nothing;
        for element in &pipeline.elements {
            flow = self.element(element, flow, pipeline)?;
        }
        Ok(())
    }

    /// The text of the line that an element takes up.
    fn part(&self, element: &Element) -> String {
        let length = element.end.saturating_sub(element.start);
        self.chars.iter().skip(element.start).take(length.min(400)).collect()
    }

    fn element(
        &mut self,
        element: &Element,
        flow: Flow,
        pipeline: &Pipeline,
    ) -> Result<Flow, super::super::Denial> {
        for word in element.words.iter().chain(&element.redirects) {
            for script in &word.inner {
                self.script(script)?;
            }
            self.members(word, element, flow)?;
        }
        for redirect in &element.redirects {
            windows::path(&self.arg(redirect), self.context)?;
        }
        match &element.kind {
            Kind::Assignment(right) => {
                self.pipeline(right)?;
                // `$function:k = …`, `$alias:k = 'Stop-Process'`.
                let renames = element.words.iter().flat_map(|word| &word.parts).any(|part| {
                    matches!(part, Part::Variable(name) if name.starts_with("alias:") || name.starts_with("function:"))
                });
                if renames {
                    match self.facts.constant(right) {
                        Some(text) => windows::nested(
                            Shell::PowerShell,
                            &format!("{text} $unknown"),
                            self.context,
                            self.depth,
                        )?,
                        None => self.undecided(&self.part(element))?,
                    }
                }
                Ok(Flow::Nothing)
            }
            Kind::Expression => self.value(element, pipeline),
            Kind::Command => self.command(element, flow),
        }
    }

    /// What an expression gives to the next element.
    fn value(&mut self, element: &Element, pipeline: &Pipeline) -> Result<Flow, super::super::Denial> {
        if pipeline.elements.len() < 2 {
            return Ok(Flow::Nothing);
        }
        if let [word] = element.words.as_slice() {
            if self.own_process(word) {
                return Ok(Flow::Own);
            }
            if word.members.is_empty()
                && let [script] = word.inner.as_slice()
                && let Some(last) = script.pipelines.last().and_then(|pipeline| pipeline.elements.last())
                && self.cmdlet_of(last).as_deref() == Some("get-process")
            {
                return Ok(Flow::Processes);
            }
        }
        // A text that goes into a shell or `Invoke-Expression` is its script.
        match self.facts.constant_words(element) {
            Some(text) => {
                let fed = pipeline.elements.iter().skip(1).any(|next| self.runs_input(next));
                if fed {
                    windows::nested(Shell::PowerShell, &text, self.context, self.depth)?;
                    windows::nested(Shell::Bash, &text, self.context, self.depth)?;
                    windows::nested(Shell::Cmd, &text, self.context, self.depth)?;
                }
                Ok(Flow::Known)
            }
            None => Ok(Flow::Other),
        }
    }

    fn cmdlet_of(&self, element: &Element) -> Option<String> {
        if !matches!(element.kind, Kind::Command) {
            return None;
        }
        let name = self.facts.text(element.words.first()?)?;
        Some(names::cmdlet(&windows::base(&name), &self.facts.aliases))
    }

    /// Whether an element takes its input as a script.
    fn runs_input(&self, element: &Element) -> bool {
        self.cmdlet_of(element).is_some_and(|name| {
            matches!(
                name.as_str(),
                "invoke-expression"
                    | "powershell"
                    | "pwsh"
                    | "cmd"
                    | "bash"
                    | "sh"
                    | "wsl"
                    | "python"
                    | "python3"
                    | "node"
            )
        })
    }

    /// Whether a value is a process that the line names by its literal id or starts itself.
    fn own_process(&self, word: &Word) -> bool {
        self.own_before(word, word.members.len())
    }

    /// The same of a value up to one of its members.
    fn own_before(&self, word: &Word, at: usize) -> bool {
        let bare = |members: &[Member]| members.iter().all(|member| member.call.is_none() && !member.index);
        if !bare(word.members.get(..at).unwrap_or_default()) {
            return false;
        }
        match (word.shape, word.parts.as_slice()) {
            (Shape::Variable, [Part::Variable(name)]) => {
                self.facts.children.get(name).copied().unwrap_or(false)
            }
            (Shape::Group, _) => {
                let [script] = word.inner.as_slice() else { return false };
                let [pipeline] = script.pipelines.as_slice() else { return false };
                match pipeline.elements.as_slice() {
                    [element] if matches!(element.kind, Kind::Command) => self.gives_own(element),
                    [Element { words, kind: Kind::Expression, .. }] => match words.as_slice() {
                        [word] => self.own_process(word),
                        _ => false,
                    },
                    _ => false,
                }
            }
            _ => false,
        }
    }

    /// `Get-Process -Id 4242`, `Start-Process … -PassThru`.
    fn gives_own(&self, element: &Element) -> bool {
        match self.cmdlet_of(element).as_deref() {
            Some("start-process") => element.words.iter().any(|word| {
                word.plain().is_some_and(|text| {
                    !word.quoted && names::short_for(&text.to_lowercase(), "p", "passthru")
                })
            }),
            Some("get-process") => {
                let mut words = element.words.iter().skip(1);
                let is = |word: Option<&Word>, what: &str| {
                    word.and_then(Word::plain).is_some_and(|text| text.eq_ignore_ascii_case(what))
                };
                if !is(words.next(), "-id") {
                    return false;
                }
                let mut any = false;
                words.all(|word| {
                    any = true;
                    word.plain().is_some_and(|text| windows::one_process(text, text, self.context).is_ok())
                }) && any
            }
            _ => false,
        }
    }

    /// An argument as a program gets it.
    fn arg(&self, word: &Word) -> Arg {
        if let Some(text) = self.facts.text(word) {
            return Arg::known(text);
        }
        if !word.members.is_empty() || !matches!(word.shape, Shape::Text | Shape::Variable) {
            return Arg::unknown();
        }
        let mut arg = Arg::default();
        for part in &word.parts {
            arg.pieces.push(match part {
                Part::Text(text) => Piece::Known(text.clone()),
                Part::Variable(name) if matches!(name.as_str(), "home" | "env:userprofile" | "env:home") => {
                    Piece::Home
                }
                Part::Variable(name) => match self.facts.variable(name) {
                    Some(text) => Piece::Known(text.to_owned()),
                    None => Piece::Unknown,
                },
                Part::Result => Piece::Unknown,
            });
        }
        arg
    }

    /// Methods that end processes or run text.
    fn members(&mut self, word: &Word, element: &Element, flow: Flow) -> Judged {
        if word.members.is_empty() {
            return Ok(());
        }
        let part = self.part(element);
        for (at, member) in word.members.iter().enumerate() {
            if let Some(call) = &member.call {
                self.script(call)?;
            }
            let Some(call) = &member.call else { continue };
            if member.index {
                continue;
            }
            let Some(name) = member.name.as_deref() else {
                self.undecided(&part)?;
                continue;
            };
            match name {
                "kill" | "terminate" | "closemainwindow" => self.method(word, at, &part)?,
                "delete" if self.mentions("win32_process") => return Err(windows::by_name(&part)),
                "start" if is_type(word, "process") => {
                    let argv = self.texts(call);
                    windows::program(&split(&argv), &part, false, self.context, self.depth)?;
                }
                "create" if is_type(word, "scriptblock") => self.text_of(call, &part)?,
                "invokescript" | "addscript" | "addcommand" | "newscriptblock" | "expandstring"
                | "invokecommand" => {
                    self.text_of(call, &part)?;
                }
                "shellexecute" => {
                    windows::program(&split(&self.texts(call)), &part, false, self.context, self.depth)?;
                }
                "addargument" | "addparameter" => {
                    // `AddCommand('git').AddArgument('push')`
                    let calls = word.members.iter().filter_map(|member| member.call.as_ref());
                    let argv: Vec<Arg> = calls.flat_map(|call| self.texts(call)).collect();
                    windows::program(&argv, &part, false, self.context, self.depth)?;
                }
                "create" | "exec" | "run" => {
                    for text in self.texts(call).iter().filter_map(Arg::value) {
                        windows::nested(Shell::Cmd, &text, self.context, self.depth)?;
                    }
                }
                "invoke" | "invokemethod" | "invokemember" | "getmethod" | "foreach" | "psbase" => {
                    let named = |text: &String| {
                        matches!(
                            text.trim().to_lowercase().as_str(),
                            "kill" | "terminate" | "closemainwindow"
                        )
                    };
                    let calls = word.members.iter().filter_map(|member| member.call.as_ref());
                    let said: Vec<String> =
                        calls.flat_map(|call| self.texts(call)).filter_map(|arg| arg.value()).collect();
                    let bare = word.members.iter().filter_map(|member| member.name.clone());
                    if said.iter().any(named) || name == "invoke" && bare.into_iter().any(|name| named(&name))
                    {
                        self.method(word, 0, &part)?;
                    }
                }
                _ => {
                    for text in self
                        .texts(call)
                        .iter()
                        .filter(|arg| arg.value().is_some_and(|text| looks_like_path(&text)))
                    {
                        windows::path(text, self.context)?;
                    }
                }
            }
        }
        let _ = flow;
        Ok(())
    }

    /// `.Kill()` and its like, at one member of a value.
    fn method(&self, word: &Word, at: usize, part: &str) -> Judged {
        let before = word.members.get(..at).unwrap_or_default();
        match before {
            [] if self.own_before(word, 0) => return Ok(()),
            [one] if one.name.as_deref() == Some("getprocessbyid") && is_type(word, "process") => {
                let ids = one.call.as_ref().map(|call| self.texts(call)).unwrap_or_default();
                let [id] = ids.as_slice() else { return Err(windows::by_target(part)) };
                let Some(id) = id.value() else { return Err(windows::by_target(part)) };
                return windows::one_process(&id, part, self.context);
            }
            _ => {}
        }
        // `(Get-Process -Id HOST).Kill()` is about the host.
        if let Some(host) = self.context.host
            && self.literal_ids(word).contains(&host)
        {
            return windows::one_process(&host.to_string(), part, self.context);
        }
        let named = ["get-process", "gps", "(ps", "getprocesses", "win32_process"]
            .iter()
            .any(|word| self.mentions(word));
        Err(if named { windows::by_name(part) } else { windows::by_target(part) })
    }

    fn literal_ids(&self, word: &Word) -> Vec<u32> {
        let scripts = word.inner.iter().flat_map(|script| &script.pipelines);
        let words = scripts.flat_map(|pipeline| &pipeline.elements).flat_map(|element| &element.words);
        words.filter_map(|word| self.facts.text(word)?.parse().ok()).collect()
    }

    /// The operands of a method's arguments.
    fn texts(&self, call: &Script) -> Vec<Arg> {
        let elements = call.pipelines.iter().flat_map(|pipeline| &pipeline.elements);
        let mut args = Vec::new();
        for element in elements {
            if !element.words.iter().any(|word| word.listed)
                && let Some(text) = self.facts.constant_words(element)
            {
                args.push(Arg::known(text));
                continue;
            }
            args.extend(
                element.words.iter().filter(|word| word.shape != Shape::Operator).map(|word| self.arg(word)),
            );
        }
        args
    }

    /// The first argument of a method is a script.
    fn text_of(&mut self, call: &Script, part: &str) -> Judged {
        match self.texts(call).first() {
            Some(arg) => match arg.value() {
                Some(text) => windows::nested(Shell::PowerShell, &text, self.context, self.depth),
                None => self.undecided(part),
            },
            None => Ok(()),
        }
    }

    fn mentions(&self, word: &str) -> bool {
        self.small.contains(word)
    }

    /// What a part comes to whose text is not known: denied where the set says so, and otherwise when a text of the
    /// line would be denied by itself.
    fn undecided(&mut self, part: &str) -> Judged {
        windows::undecided(self.context, part)?;
        self.scan()
    }

    /// Looks through the line's texts, once.
    fn scan(&mut self) -> Judged {
        if std::mem::replace(&mut self.scanned, true) {
            return Ok(());
        }
        let literals = std::mem::take(&mut self.facts.literals);
        let whole: String = literals.concat();
        for text in literals.iter().chain([&whole]) {
            for shell in [Shell::PowerShell, Shell::Cmd] {
                // Such texts are not looked through for texts of their own without end.
                match windows::nested(shell, text, self.context, self.depth + windows::SCAN) {
                    // Text that is no line at all stands in no command.
                    Err(denial) if !is_own_limit(&denial) => return Err(denial),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

fn is_own_limit(denial: &super::super::Denial) -> bool {
    matches!(denial.rule, super::super::RuleId::Built(name) if name.starts_with("shell."))
}

fn is_type(word: &Word, ending: &str) -> bool {
    let [Part::Text(name)] = word.parts.as_slice() else { return false };
    word.shape == Shape::Type && name.to_lowercase().rsplit('.').next() == Some(ending)
}

fn looks_like_path(text: &str) -> bool {
    !text.is_empty() && text.len() < 400 && !text.contains(['\n', ' '])
}

/// `Process.Start('git', 'push origin')`: the second text is a line of arguments.
fn split(argv: &[Arg]) -> Vec<Arg> {
    let mut all = Vec::new();
    for (at, arg) in argv.iter().enumerate() {
        match arg.value() {
            Some(text) if at > 0 => {
                all.extend(text.split_whitespace().map(|word| Arg::known(word.trim_matches('"'))));
            }
            _ => all.push(arg.clone()),
        }
    }
    all
}

#[cfg(test)]
mod tests;
