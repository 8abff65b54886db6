//! `Start-Process` and its like: a program and its arguments from parameters.

use super::super::windows::{self, Arg};
use super::names::{is_common, short_for};
use super::tree::{Shape, Word};
use super::{Flow, Judge};
use crate::guardrails::Denial;

/// Parameters of `Start-Process` that take a value beside the program and its arguments.
const STARTING: [(&str, &str); 8] = [
    ("workingdirectory", "wo"),
    ("windowstyle", "wi"),
    ("verb", "ve"),
    ("credential", "cr"),
    ("redirectstandardoutput", "redirectstandardo"),
    ("redirectstandarderror", "redirectstandarde"),
    ("redirectstandardinput", "redirectstandardi"),
    ("environment", "en"),
];

impl Judge<'_> {
    /// `Start-Process`.
    pub(super) fn start(&mut self, rest: &[Word], part: &str) -> Result<Flow, Denial> {
        let argv = self.named_argv(
            rest,
            &[("filepath", "f"), ("path", "path")],
            &[("argumentlist", "a"), ("args", "args")],
            &STARTING,
        );
        if argv.is_empty() {
            return Ok(Flow::Other);
        }
        if argv.first().and_then(Arg::value).is_none() {
            self.undecided(part)?;
        }
        windows::program(&argv, part, false, self.context, self.depth)?;
        let passes = rest.iter().any(|word| {
            word.plain().is_some_and(|text| !word.quoted && short_for(&text.to_lowercase(), "p", "passthru"))
        });
        Ok(if passes { Flow::Own } else { Flow::Other })
    }

    /// A program and its arguments from named or plain parameters. The arguments are lines of their own.
    pub(super) fn named_argv(
        &self,
        rest: &[Word],
        program: &[(&str, &str)],
        arguments: &[(&str, &str)],
        valued: &[(&str, &str)],
    ) -> Vec<Arg> {
        #[derive(Clone, Copy, PartialEq)]
        enum Next {
            Plain,
            Program,
            Arguments,
            Skip,
        }
        let mut next = Next::Plain;
        let mut name: Option<Arg> = None;
        let mut args = Vec::new();
        let fits = |word: &str, list: &[(&str, &str)]| {
            list.iter().any(|(whole, short)| short_for(word, short, whole))
        };
        for word in rest {
            let text = self.facts.text(word).map(|text| text.to_lowercase());
            let parameter = text
                .as_deref()
                .filter(|text| !word.quoted && !word.listed && text.starts_with('-') && next == Next::Plain);
            if let Some(parameter) = parameter {
                let (parameter, glued) =
                    parameter.split_once(':').map_or((parameter, None), |(name, value)| (name, Some(value)));
                next = if fits(parameter, program) {
                    Next::Program
                } else if fits(parameter, arguments) {
                    Next::Arguments
                } else if fits(parameter, valued) || is_common(parameter) {
                    Next::Skip
                } else {
                    Next::Plain
                };
                if let Some(value) = glued.filter(|value| !value.is_empty()) {
                    match next {
                        Next::Program => name = Some(Arg::known(value)),
                        Next::Arguments => args.push(Arg::known(value)),
                        Next::Plain | Next::Skip => {}
                    }
                    if next != Next::Arguments {
                        next = Next::Plain;
                    }
                }
                continue;
            }
            let arg = self.arg(word);
            // A group is a list of texts: what it holds counts one by one.
            let mut many = self.operands(word).unwrap_or_else(|| vec![arg]);
            match next {
                Next::Skip => {}
                Next::Program => name = many.drain(..).next(),
                Next::Plain if name.is_none() => name = many.drain(..).next(),
                Next::Plain | Next::Arguments => args.append(&mut many),
            }
            // A list goes on behind a comma; the next plain word is another parameter's.
            next = if next == Next::Arguments { Next::Arguments } else { Next::Plain };
            if next == Next::Arguments {
                next = Next::Plain;
            }
        }
        let Some(name) = name else { return args };
        let mut argv = vec![name];
        for arg in args {
            match arg.value() {
                Some(text) => {
                    let mut words = super::super::cmd::arguments(&text);
                    argv.append(&mut words);
                }
                None => argv.push(arg),
            }
        }
        argv
    }

    /// The elements of a group of plain values.
    fn operands(&self, word: &Word) -> Option<Vec<Arg>> {
        if word.shape != Shape::Group || !word.members.is_empty() {
            return None;
        }
        let [script] = word.inner.as_slice() else { return None };
        Some(self.texts(script)).filter(|args| !args.is_empty())
    }
}
