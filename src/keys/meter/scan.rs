//! A push scanner for JSON: it is fed a text in whatever pieces, tells the few scalars that somebody wants with the
//! way to them, and keeps nothing of the rest. What it takes is what RFC 8259 takes, so that no text means one
//! thing here and another at the provider.

use memchr::memchr2;

/// The deepest nesting that is taken.
const DEEPEST: usize = 1024;
/// How deep a wanted scalar may lie.
const PATH: usize = 8;
/// How much of a wanted text is told, in bytes.
const TOLD: usize = 256;
/// The step of a path that is any entry of a list.
pub(super) const ITEM: u8 = u8::MAX;

/// A wanted scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar<'a> {
    /// A text: its beginning, and its whole length in bytes, both without escapes.
    Text { start: &'a [u8], bytes: u64 },
    /// A number; `None` when it is not a whole one from 0 on.
    Number(Option<u64>),
    /// `true` or `false`.
    Bool(bool),
    /// `null`.
    Null,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Value,
    FirstValue,
    Key,
    FirstKey,
    Colon,
    Text(Escape),
    Number,
    /// What is left of it, and what it says.
    Literal(&'static [u8], Option<bool>),
    After,
    Done,
    Broken,
}

/// Where in an escape a text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    Sign,
    Hex { left: u8, value: u32 },
}

/// The scanner. `words` are the keys that matter; their place in the list, from 1, is the step of a path.
#[derive(Debug)]
pub(super) struct Scan {
    words: &'static [&'static str],
    state: State,
    depth: usize,
    /// A bit for each open bracket: set for an object.
    objects: [u64; DEEPEST / 64],
    path: [u8; PATH],
    /// Below this depth nothing is wanted; 0 when something may be.
    dark: usize,
    /// Whether the text that is being read is a key.
    key: bool,
    told: [u8; TOLD],
    kept: usize,
    bytes: u64,
    /// The first half of a character that JSON writes as two escapes.
    high: Option<u32>,
    number: Option<u64>,
}

impl Scan {
    pub(super) fn new(words: &'static [&'static str]) -> Self {
        Self {
            words,
            state: State::Value,
            depth: 0,
            objects: [0; DEEPEST / 64],
            path: [0; PATH],
            dark: 0,
            key: false,
            told: [0; TOLD],
            kept: 0,
            bytes: 0,
            high: None,
            number: None,
        }
    }
    /// Begins with another text.
    pub(super) fn restart(&mut self) {
        self.state = State::Value;
        self.depth = 0;
        self.dark = 0;
    }
    /// Whether a whole text has come.
    pub(super) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Takes the next piece, and tells `see` each wanted scalar that ends in it.
    pub(super) fn push(&mut self, mut data: &[u8], see: &mut impl FnMut(&[u8], Scalar<'_>)) {
        while let Some((byte, rest)) = data.split_first() {
            match self.state {
                State::Broken => return,
                State::Text(Escape::None) => data = self.text(data, see),
                State::Text(escape) => {
                    self.escaped(escape, *byte);
                    data = rest;
                }
                State::Number => match byte {
                    b'0'..=b'9' => {
                        let digit = u64::from(byte - b'0');
                        self.number = self.number.and_then(|n| n.checked_mul(10)?.checked_add(digit));
                        data = rest;
                    }
                    b'+' | b'-' | b'.' | b'e' | b'E' => {
                        self.number = None;
                        data = rest;
                    }
                    // What ends a number is looked at again.
                    _ => self.end(Scalar::Number(self.number), see),
                },
                State::Literal(wanted, meant) => {
                    match wanted.split_first() {
                        Some((sign, [])) if sign == byte => {
                            self.end(meant.map_or(Scalar::Null, Scalar::Bool), see);
                        }
                        Some((sign, wanted)) if sign == byte => self.state = State::Literal(wanted, meant),
                        _ => self.state = State::Broken,
                    }
                    data = rest;
                }
                _ => {
                    if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                        self.structure(*byte);
                    }
                    data = rest;
                }
            }
        }
    }

    fn structure(&mut self, byte: u8) {
        self.state = match (self.state, byte) {
            (State::FirstValue, b']') | (State::FirstKey, b'}') => self.close(),
            (State::Value | State::FirstValue, b'{') => self.open(true),
            (State::Value | State::FirstValue, b'[') => self.open(false),
            (State::Value | State::FirstValue, b'"') => self.begin_text(false),
            (State::Key | State::FirstKey, b'"') => self.begin_text(true),
            (State::Value | State::FirstValue, b'-') => {
                self.number = None;
                State::Number
            }
            (State::Value | State::FirstValue, digit @ b'0'..=b'9') => {
                self.number = Some(u64::from(digit - b'0'));
                State::Number
            }
            (State::Value | State::FirstValue, b't') => State::Literal(b"rue", Some(true)),
            (State::Value | State::FirstValue, b'f') => State::Literal(b"alse", Some(false)),
            (State::Value | State::FirstValue, b'n') => State::Literal(b"ull", None),
            (State::Colon, b':') => State::Value,
            (State::After, b',') if self.in_object() => State::Key,
            (State::After, b',') => State::Value,
            (State::After, b'}') if self.in_object() => self.close(),
            (State::After, b']') if !self.in_object() => self.close(),
            _ => State::Broken,
        };
    }

    fn open(&mut self, object: bool) -> State {
        if self.depth == DEEPEST {
            return State::Broken;
        }
        if self.dark == 0 && !self.wanted() {
            self.dark = self.depth + 1;
        }
        let (word, bit) = (self.depth / 64, 1u64 << (self.depth % 64));
        if let Some(bits) = self.objects.get_mut(word) {
            *bits = if object { *bits | bit } else { *bits & !bit };
        }
        self.depth += 1;
        self.step(if object { 0 } else { ITEM });
        if object { State::FirstKey } else { State::FirstValue }
    }

    fn close(&mut self) -> State {
        self.depth = self.depth.saturating_sub(1);
        if self.depth < self.dark {
            self.dark = 0;
        }
        self.after()
    }

    fn after(&self) -> State {
        if self.depth == 0 { State::Done } else { State::After }
    }

    fn in_object(&self) -> bool {
        let at = self.depth.saturating_sub(1);
        self.objects.get(at / 64).is_some_and(|bits| bits & (1 << (at % 64)) != 0)
    }

    /// Sets the last step of the path.
    fn step(&mut self, step: u8) {
        if let Some(place) = self.depth.checked_sub(1).and_then(|at| self.path.get_mut(at)) {
            *place = step;
        }
    }

    /// Whether the value that the path leads to may matter.
    fn wanted(&self) -> bool {
        self.dark == 0 && self.path.get(..self.depth).is_some_and(|path| path.last() != Some(&0))
    }

    fn begin_text(&mut self, key: bool) -> State {
        self.key = key;
        self.kept = 0;
        self.bytes = 0;
        self.high = None;
        State::Text(Escape::None)
    }

    /// Goes through a text until it ends, an escape begins, or the piece is over.
    fn text<'a>(&mut self, data: &'a [u8], see: &mut impl FnMut(&[u8], Scalar<'_>)) -> &'a [u8] {
        let found = memchr2(b'"', b'\\', data);
        let (plain, rest) = data.split_at_checked(found.unwrap_or(data.len())).unwrap_or((data, &[]));
        if self.dark == 0 && !plain.is_empty() {
            self.keep(plain);
        }
        let Some((sign, rest)) = rest.split_first() else { return rest };
        if *sign == b'\\' {
            self.state = State::Text(Escape::Sign);
        } else if self.key {
            let step = if self.dark == 0 { self.word() } else { 0 };
            self.step(step);
            self.state = State::Colon;
        } else {
            if self.wanted()
                && let (Some(path), Some(start)) = (self.path.get(..self.depth), self.told.get(..self.kept))
            {
                see(path, Scalar::Text { start, bytes: self.bytes });
            }
            self.state = self.after();
        }
        rest
    }

    fn escaped(&mut self, escape: Escape, byte: u8) {
        let next = match (escape, byte) {
            (Escape::Sign, b'u') => Some(Escape::Hex { left: 4, value: 0 }),
            (Escape::Sign, sign) => {
                let meant = match sign {
                    b'"' | b'\\' | b'/' => Some(sign),
                    b'b' => Some(8),
                    b'f' => Some(12),
                    b'n' => Some(b'\n'),
                    b'r' => Some(b'\r'),
                    b't' => Some(b'\t'),
                    _ => None,
                };
                meant.map(|meant| {
                    self.keep(&[meant]);
                    Escape::None
                })
            }
            (Escape::Hex { left, value }, digit) => char::from(digit).to_digit(16).map(|digit| {
                let value = value * 16 + digit;
                if left > 1 {
                    return Escape::Hex { left: left - 1, value };
                }
                self.unit(value);
                Escape::None
            }),
            (Escape::None, _) => None,
        };
        self.state = next.map_or(State::Broken, State::Text);
    }

    /// One unit of UTF-16, as JSON escapes characters.
    fn unit(&mut self, unit: u32) {
        match (self.high.take(), unit) {
            (_, 0xd800..=0xdbff) => self.high = Some(unit),
            (Some(high), 0xdc00..=0xdfff) => {
                self.keep_char(0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00));
            }
            _ => self.keep_char(unit),
        }
    }

    fn keep_char(&mut self, code: u32) {
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        self.keep(character.encode_utf8(&mut [0; 4]).as_bytes());
    }

    fn keep(&mut self, plain: &[u8]) {
        self.bytes = self.bytes.saturating_add(plain.len() as u64);
        let free = self.told.get_mut(self.kept..).unwrap_or_default();
        let taken = free.len().min(plain.len());
        if let (Some(free), Some(plain)) = (free.get_mut(..taken), plain.get(..taken)) {
            free.copy_from_slice(plain);
            self.kept += taken;
        }
    }

    /// The step that the key means. No case of letters hides one: some readers do not look at it.
    fn word(&self) -> u8 {
        let key = self.told.get(..self.kept).filter(|_| self.bytes <= TOLD as u64).unwrap_or_default();
        let place = self.words.iter().position(|word| word.as_bytes().eq_ignore_ascii_case(key));
        place.and_then(|place| u8::try_from(place + 1).ok()).unwrap_or(0)
    }

    /// A scalar has ended.
    fn end(&mut self, scalar: Scalar<'_>, see: &mut impl FnMut(&[u8], Scalar<'_>)) {
        if self.wanted()
            && let Some(path) = self.path.get(..self.depth)
        {
            see(path, scalar);
        }
        self.state = self.after();
    }
}
