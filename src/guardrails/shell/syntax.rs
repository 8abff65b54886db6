//! The syntax tree of a line, as far as it matters for what would be run: no operator of a list is kept, as both
//! sides are judged.

use std::cell::OnceCell;
use std::rc::Rc;

/// Longest piece of a line that a denial shows, in characters.
pub(super) const PART: usize = 200;

/// A list of commands, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Script {
    pub(super) pipelines: Vec<Pipeline>,
}

/// Commands that are joined by `|`.
#[derive(Debug, Clone)]
pub(super) struct Pipeline {
    pub(super) commands: Vec<Node>,
}

/// One command with its redirections.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) redirects: Vec<Redirect>,
    /// How it begins in the source, at most [`PART`] characters; only for simple commands.
    pub(super) text: String,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Simple {
        assigns: Vec<Assign>,
        words: Vec<Word>,
    },
    /// Subshells, groups, `if`, `while`, `until`: everything in them, in order.
    Group(Vec<Script>),
    /// `for` and `select` over words; `None`: over the positional parameters.
    Loop {
        variable: String,
        list: Option<Vec<Word>>,
        body: Script,
    },
    Case {
        subject: Word,
        arms: Vec<(Vec<Word>, Script)>,
    },
    /// `((…))`, or the head of `for ((…))`, with the loop's body.
    Arithmetic {
        parts: Vec<Part>,
        body: Script,
    },
    /// `[[ … ]]`.
    Condition(Vec<Word>),
    Function(Box<Node>),
    Coproc(Box<Node>),
}

/// `name=value`, `name+=value`, `name[i]=value`, `name=(…)`.
#[derive(Debug, Clone)]
pub(super) struct Assign {
    pub(super) name: String,
    pub(super) append: bool,
    pub(super) index: Vec<Part>,
    pub(super) value: Value,
}

#[derive(Debug, Clone)]
pub(super) enum Value {
    Word(Word),
    Array(Vec<Word>),
}

#[derive(Debug, Clone)]
pub(super) struct Word {
    pub(super) parts: Vec<Part>,
}

#[derive(Debug, Clone)]
pub(super) enum Part {
    /// Text; unquoted text may hold wildcards, braces and a tilde.
    Text {
        text: String,
        quoted: bool,
    },
    Param(Box<Param>),
    /// `$(…)` or backticks.
    Sub {
        script: Script,
        quoted: bool,
    },
    /// `$((…))`, `$[…]`.
    Arith(Vec<Part>),
    /// `<(…)`, `>(…)`.
    Process(Script),
    /// `name=(…)` as an argument of `declare` and the like.
    Array(Vec<Word>),
}

/// `$name`, `${name…}`.
#[derive(Debug, Clone)]
pub(super) struct Param {
    pub(super) name: String,
    pub(super) quoted: bool,
    pub(super) index: Vec<Part>,
    pub(super) op: Op,
}

#[derive(Debug, Clone)]
pub(super) enum Op {
    None,
    /// `${#x}`.
    Length,
    /// `${!x}`.
    Indirect,
    /// `${x:-word}` and its kin; the sign is one of `-`, `+`, `=`, `?`.
    Default(char, Vec<Part>),
    /// `${x#word}`, `${x/a/b}`, `${x:1:2}`, `${x@P}` …; the text begins after the sign.
    Edit(char, Vec<Part>),
}

#[derive(Debug, Clone)]
pub(super) struct Redirect {
    /// The descriptor, where one is written.
    pub(super) fd: Option<u32>,
    pub(super) kind: RedirectKind,
}

/// The text of a here-document, which the parser meets only after the command.
pub(super) type Body = Rc<OnceCell<Vec<Part>>>;

#[derive(Debug, Clone)]
pub(super) enum RedirectKind {
    /// `<`.
    Read(Word),
    /// `>`, `>>`, `<>`, `&>` and the like.
    Write(Word),
    /// `<&3`, `<&-`.
    CopyIn(Word),
    /// `>&2`, `>&-`, `>&file`.
    CopyOut(Word),
    HereDocument(Body),
    HereString(Word),
}

impl Redirect {
    /// Whether it is what the command reads as its standard input.
    pub(super) fn is_stdin(&self) -> bool {
        let reads = !matches!(self.kind, RedirectKind::Write(_) | RedirectKind::CopyOut(_));
        self.fd.map_or(reads, |fd| fd == 0)
    }
}

impl Word {
    /// The text of a word without any expansion and any quote.
    pub(super) fn plain(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Text { text, quoted: false }] => Some(text),
            _ => None,
        }
    }
}
