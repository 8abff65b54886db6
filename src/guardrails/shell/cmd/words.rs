//! A line of the command prompt in words and operators: carets, quotes, variables.

/// A piece of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Bit {
    Text(String),
    /// `%name%` or `!name!`, in small letters; also the variable of a `for`.
    Variable(String),
    /// A variable that is cut or changed on the way.
    Changed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(Vec<Bit>),
    /// `&`, `&&`, `||`, a line's end.
    Next,
    Pipe,
    Open,
    Close,
    /// A redirection; its file is the next word.
    Redirect,
}

/// A token and where it stands, in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) token: Token,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Whether a quote stands at its start.
    pub(super) quoted: bool,
}

/// The tokens of a line.
pub(super) fn tokens(chars: &[char]) -> Vec<Placed> {
    let mut lexer = Lexer { chars, at: 0, found: Vec::new(), fresh: true };
    lexer.run();
    lexer.found
}

struct Lexer<'a> {
    chars: &'a [char],
    at: usize,
    found: Vec<Placed>,
    /// Whether the next word is a command's name.
    fresh: bool,
}

impl Lexer<'_> {
    fn peek(&self, by: usize) -> Option<char> {
        self.chars.get(self.at + by).copied()
    }

    fn put(&mut self, token: Token, length: usize) {
        self.fresh = !matches!(token, Token::Redirect);
        self.found.push(Placed { token, start: self.at, end: self.at + length, quoted: false });
        self.at += length;
    }

    fn run(&mut self) {
        while let Some(c) = self.peek(0) {
            match (c, self.peek(1)) {
                ('^', Some('\n')) => self.at += 2,
                ('^', Some('\r')) if self.peek(2) == Some('\n') => self.at += 3,
                ('&', Some('&')) | ('|', Some('|')) => self.put(Token::Next, 2),
                ('&' | '\n' | '\r', _) => self.put(Token::Next, 1),
                ('|', _) => self.put(Token::Pipe, 1),
                ('(', _) => self.put(Token::Open, 1),
                (')', _) => self.put(Token::Close, 1),
                ('>' | '<', _) => self.redirect(),
                (digit, Some('>' | '<')) if digit.is_ascii_digit() => {
                    self.at += 1;
                    self.redirect();
                }
                (',' | ';' | '=', _) if self.fresh => self.at += 1,
                ('@', _) if self.fresh => self.at += 1,
                // A label, or a comment that looks like one: the rest of the line is no command.
                (':', _) if self.fresh => self.rest_of_line(),
                _ if c.is_whitespace() => self.at += 1,
                _ => self.word(),
            }
        }
    }

    fn rest_of_line(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n' && c != '\r') {
            self.at += 1;
        }
    }

    fn redirect(&mut self) {
        let mut length = 1;
        if self.peek(1) == self.peek(0) {
            length = 2;
        }
        if self.peek(length) == Some('&') && self.peek(length + 1).is_some_and(|c| c.is_ascii_digit()) {
            self.at += length + 2;
            return;
        }
        let fresh = self.fresh;
        self.put(Token::Redirect, length);
        self.fresh = fresh;
    }

    fn word(&mut self) {
        let start = self.at;
        let mut bits: Vec<Bit> = Vec::new();
        let mut quoted = false;
        let first = std::mem::replace(&mut self.fresh, false);
        // A redirection's file does not make the next word an argument.
        if matches!(self.found.last(), Some(placed) if placed.token == Token::Redirect) {
            self.fresh = first;
        }
        while let Some(c) = self.peek(0) {
            match c {
                '\n' | '\r' => break,
                '\\' if self.peek(1) == Some('"') => {
                    push(&mut bits, '"');
                    quoted = !quoted;
                    self.at += 2;
                }
                '"' => {
                    quoted = !quoted;
                    if bits.is_empty() {
                        bits.push(Bit::Text(String::new()));
                    }
                    self.at += 1;
                }
                '%' | '!' => self.variable(c, &mut bits),
                _ if quoted => {
                    push(&mut bits, c);
                    self.at += 1;
                }
                '^' => {
                    self.at += 1;
                    match self.peek(0) {
                        Some('\r') if self.peek(1) == Some('\n') => self.at += 2,
                        Some('\n') => self.at += 1,
                        Some(next) => {
                            push(&mut bits, next);
                            self.at += 1;
                        }
                        None => {}
                    }
                }
                '&' | '|' | '<' | '>' | ')' => break,
                '(' if first => break,
                ',' | ';' | '=' if first => break,
                _ if c.is_whitespace() => break,
                _ => {
                    push(&mut bits, c);
                    self.at += 1;
                }
            }
        }
        if self.at == start {
            push(&mut bits, self.peek(0).unwrap_or(' '));
            self.at += 1;
        }
        let quoted = self.chars.get(start) == Some(&'"');
        self.found.push(Placed { token: Token::Word(bits), start, end: self.at, quoted });
    }

    /// `%name%`, `%name:a=b%`, `%1`, `%~dp0`, `%i`, `%%i`, `!name!`.
    fn variable(&mut self, sign: char, bits: &mut Vec<Bit>) {
        let mut name = String::new();
        let mut changed = false;
        let mut length = 1;
        if sign == '%' && self.peek(1) == Some('%') {
            length = 2;
        } else {
            while let Some(c) =
                self.peek(length).filter(|c| !c.is_whitespace() && !"&|<>\"".contains(*c) && length < 300)
            {
                if c == sign && length > 1 {
                    self.at += length + 1;
                    bits.push(if changed { Bit::Changed } else { Bit::Variable(name.to_lowercase()) });
                    return;
                }
                changed = changed || c == ':' || c == '~';
                name.push(c);
                length += 1;
            }
            length = 1;
        }
        if sign == '!' {
            push(bits, '!');
            self.at += 1;
            return;
        }
        let mut end = length;
        if self.peek(end) == Some('~') {
            end += 1;
            while self.peek(end).is_some_and(|c| c.is_ascii_alphabetic())
                && self.peek(end + 1).is_some_and(|c| c.is_ascii_alphanumeric())
            {
                end += 1;
            }
        }
        match self.peek(end) {
            Some(c) if c.is_ascii_alphanumeric() || c == '*' => {
                bits.push(Bit::Variable(format!("%{c}")));
                self.at += end + 1;
            }
            _ => {
                push(bits, '%');
                self.at += length;
            }
        }
    }
}

fn push(bits: &mut Vec<Bit>, c: char) {
    match bits.last_mut() {
        Some(Bit::Text(text)) => text.push(c),
        _ => bits.push(Bit::Text(c.into())),
    }
}

/// The words of a command line as a program of Windows splits it.
pub(super) fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&'"') => {
                chars.next();
                word.get_or_insert_default().push('"');
            }
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            _ if c.is_whitespace() && !quoted => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}
