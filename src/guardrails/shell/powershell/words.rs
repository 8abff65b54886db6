//! The words of a PowerShell line: names, strings, variables, groups, and the members behind them.

use super::parse::{Parser, is_blank, is_dash, is_double, is_quote, is_single};
use super::tree::{Member, Part, Shape, Stop, Word};

/// Where a bare word of a command ends.
const ENDS: &str = ";|&(){},\n\r<>";

impl Parser<'_> {
    /// One word of a command, at a character that is no blank.
    pub(super) fn word(&mut self) -> Result<Word, Stop> {
        let mut word = match self.peek() {
            Some('(' | '{') => return self.primary(false),
            Some('@')
                if self
                    .ahead(1)
                    .is_some_and(|c| "({".contains(c) || is_quote(c) || c == '_' || c.is_alphabetic()) =>
            {
                return self.primary(false);
            }
            Some('$') => self.primary(false)?,
            Some(c) if is_quote(c) => self.primary(false)?,
            _ => Word::new(Shape::Text, self.at),
        };
        if !word.members.is_empty() || word.shape == Shape::Group && self.peek().is_none_or(is_blank) {
            return Ok(word);
        }
        let first = self.at;
        while let Some(c) = self.peek() {
            match c {
                _ if is_blank(c) || ENDS.contains(c) => break,
                '`' => self.escape(&mut word),
                '$' => self.dollar(&mut word)?,
                _ if is_single(c) => self.single(&mut word)?,
                _ if is_double(c) => self.double(&mut word)?,
                // Typographic dashes count as `-` where a parameter starts.
                _ if is_dash(c) && self.at == first => {
                    word.push('-');
                    self.at += 1;
                }
                _ => {
                    word.push(c);
                    self.at += 1;
                }
            }
        }
        let single = matches!(word.parts.as_slice(), [Part::Variable(_)]) && !word.quoted;
        if !single && word.shape != Shape::Splat {
            word.shape = Shape::Text;
        }
        word.end = self.at;
        Ok(word)
    }

    /// One operand or operator of an expression.
    pub(super) fn operand(&mut self) -> Result<Word, Stop> {
        let start = self.at;
        let Some(c) = self.peek() else { return Ok(Word::new(Shape::Operator, start)) };
        if "$@({[".contains(c) || is_quote(c) {
            return self.primary(true);
        }
        let mut word = Word::new(Shape::Operator, start);
        if is_dash(c) && self.ahead(1).is_some_and(char::is_alphabetic) {
            self.at += 1;
            word.push('-');
            for c in self.name().to_lowercase().chars() {
                word.push(c);
            }
        } else if c.is_alphanumeric() || c == '_' {
            word.shape = Shape::Text;
            while let Some(c) = self.peek().filter(|c| c.is_alphanumeric() || "_.".contains(*c)) {
                // `1..5` is a range, `4.2` a number.
                if c == '.' && self.ahead(1) == Some('.') {
                    break;
                }
                word.push(c);
                self.at += 1;
            }
        } else if c == '.' && self.ahead(1) == Some('.') {
            word.push('.');
            word.push('.');
            self.at += 2;
        } else if c == '`' {
            self.at += 1;
            if self.peek().is_some() {
                self.at += 1;
            }
        } else {
            word.push(c);
            self.at += 1;
            if c == '=' && self.peek() == Some('=') {
                self.at += 1;
            }
        }
        word.end = self.at;
        Ok(word)
    }

    /// A value that starts with a sign of its own, and its members. `value`: in an expression.
    fn primary(&mut self, value: bool) -> Result<Word, Stop> {
        let start = self.at;
        let mut word = Word::new(Shape::Text, start);
        match (self.peek(), self.ahead(1)) {
            (Some('('), _) => {
                self.at += 1;
                word.shape = Shape::Group;
                word.inner.push(self.script(Some(')'))?);
                word.parts.push(Part::Result);
            }
            (Some('{'), _) => {
                self.at += 1;
                word.shape = Shape::Block;
                word.inner.push(self.script(Some('}'))?);
            }
            (Some('@'), Some('(')) => {
                self.at += 2;
                word.shape = Shape::Group;
                word.inner.push(self.script(Some(')'))?);
                word.parts.push(Part::Result);
            }
            (Some('@'), Some('{')) => {
                self.at += 2;
                word.shape = Shape::Table;
                self.table(&mut word)?;
            }
            (Some('@'), Some(quote)) if is_quote(quote) => self.here_string(&mut word, is_double(quote))?,
            (Some('@'), _) => {
                self.at += 1;
                word.shape = Shape::Splat;
                let name = self.name();
                if name.is_empty() {
                    word.shape = Shape::Text;
                    word.push('@');
                } else {
                    word.parts.push(Part::Variable(name.to_lowercase()));
                }
            }
            (Some('['), _) => {
                word.shape = Shape::Type;
                for c in self.type_name()?.chars() {
                    word.push(c);
                }
            }
            (Some('$'), _) => {
                self.dollar(&mut word)?;
                word.shape = match word.parts.as_slice() {
                    [Part::Variable(_)] => Shape::Variable,
                    [Part::Result] => Shape::Group,
                    _ => Shape::Text,
                };
            }
            (Some(c), _) if is_single(c) => self.single(&mut word)?,
            (Some(c), _) if is_double(c) => self.double(&mut word)?,
            _ => {}
        }
        self.members(&mut word, value)?;
        word.end = self.at;
        Ok(word)
    }

    /// `.name`, `::name`, `[index]`, `(arguments)` behind a value.
    fn members(&mut self, word: &mut Word, value: bool) -> Result<(), Stop> {
        loop {
            let before = self.at;
            if value {
                self.skip(false)?;
            }
            if self.peek() == Some('?') && matches!(self.ahead(1), Some('.' | '[')) {
                self.at += 1;
            }
            let glued = self.at == before;
            match (self.peek(), self.ahead(1)) {
                (Some('['), _) if word.shape != Shape::Type && (glued || self.at == before + 1) => {
                    self.at += 1;
                    let call = Some(self.script(Some(']'))?);
                    word.members.push(Member { name: None, call, index: true });
                }
                (Some('.'), Some(next)) if next != '.' && (glued || value) && (value || !is_blank(next)) => {
                    self.at += 1;
                    if !self.member(word, value)? {
                        self.at = before;
                        return Ok(());
                    }
                }
                (Some(':'), Some(':')) => {
                    self.at += 2;
                    self.member(word, true)?;
                }
                _ => {
                    self.at = before;
                    return Ok(());
                }
            }
        }
    }

    /// The name of a member and its arguments. False: there is none.
    fn member(&mut self, word: &mut Word, value: bool) -> Result<bool, Stop> {
        if value {
            self.skip(true)?;
        }
        let mut name = Word::new(Shape::Text, self.at);
        match self.peek() {
            Some('(') => {
                let group = self.group()?;
                name.parts.push(Part::Result);
                name.inner = group.inner;
            }
            Some('$') => self.dollar(&mut name)?,
            Some(c) if is_single(c) => self.single(&mut name)?,
            Some(c) if is_double(c) => self.double(&mut name)?,
            _ => {
                while let Some(c) = self.peek() {
                    if c == '`' {
                        self.escape(&mut name);
                    } else if c.is_alphanumeric() || c == '_' {
                        name.push(c);
                        self.at += 1;
                    } else {
                        break;
                    }
                }
                if name.parts.is_empty() {
                    return Ok(false);
                }
            }
        }
        let known = name.plain().map(str::to_lowercase);
        word.inner.append(&mut name.inner);
        // `.Where[int]( … )`: type arguments.
        let call = match self.peek() {
            Some('(') => {
                self.at += 1;
                Some(self.script(Some(')'))?)
            }
            Some('{') => {
                self.at += 1;
                Some(self.script(Some('}'))?)
            }
            _ => None,
        };
        word.members.push(Member { name: known, call, index: false });
        Ok(true)
    }

    fn group(&mut self) -> Result<Word, Stop> {
        let mut word = Word::new(Shape::Group, self.at);
        self.at += 1;
        word.inner.push(self.script(Some(')'))?);
        word.parts.push(Part::Result);
        word.end = self.at;
        Ok(word)
    }

    /// `@{ key = value; … }`; its start is taken.
    fn table(&mut self, word: &mut Word) -> Result<(), Stop> {
        let opened = self.at.saturating_sub(1);
        self.depth += 1;
        if self.depth > self.limit {
            return Err(Stop::Deep);
        }
        let mut script = super::tree::Script::default();
        loop {
            self.skip(true)?;
            match self.peek() {
                None => return Err(Stop::Unreadable(opened, "a table `@{` that does not end")),
                Some('}') => {
                    self.at += 1;
                    break;
                }
                Some(';' | ',' | '=' | '|' | '&' | ')') => self.at += 1,
                Some(_) => {
                    let before = self.at;
                    let key = self.operand()?;
                    word.inner.extend(key.inner);
                    self.skip(true)?;
                    if self.peek() == Some('=') {
                        self.at += 1;
                        self.skip(true)?;
                        script.pipelines.push(self.pipeline(Some('}'))?);
                    }
                    if self.at == before {
                        self.at += 1;
                    }
                }
            }
        }
        self.depth -= 1;
        word.inner.push(script);
        Ok(())
    }

    /// `[type]` with whatever brackets are in it; gives what is between them.
    pub(super) fn type_name(&mut self) -> Result<String, Stop> {
        let start = self.at;
        let mut depth = 0_u32;
        let mut name = String::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            match c {
                '[' => depth += 1,
                ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return Ok(name);
            }
            if depth > 1 || c != '[' {
                name.push(c);
            }
        }
        Err(Stop::Unreadable(start, "a `[` that does not end"))
    }

    /// A backtick and what it escapes.
    fn escape(&mut self, word: &mut Word) {
        self.at += 1;
        let Some(c) = self.peek() else { return };
        self.at += 1;
        match c {
            '\n' => {}
            '\r' => {
                if self.peek() == Some('\n') {
                    self.at += 1;
                }
            }
            'n' => word.push('\n'),
            't' => word.push('\t'),
            'r' => word.push('\r'),
            '0' => word.push('\0'),
            'a' => word.push('\u{7}'),
            'b' => word.push('\u{8}'),
            'f' => word.push('\u{c}'),
            'v' => word.push('\u{b}'),
            // PowerShell 7: `u{70} and `e. Windows PowerShell takes them for the letter.
            'u' if self.peek() == Some('{') => {
                let digits: String = self
                    .chars
                    .get(self.at + 1..)
                    .unwrap_or_default()
                    .iter()
                    .take(6)
                    .take_while(|c| c.is_ascii_hexdigit())
                    .collect();
                let end = self.at + 1 + digits.len();
                match u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32) {
                    Some(named) if self.chars.get(end) == Some(&'}') => {
                        word.push(named);
                        self.at = end + 1;
                    }
                    _ => word.push('u'),
                }
            }
            other => word.push(other),
        }
    }

    fn single(&mut self, word: &mut Word) -> Result<(), Stop> {
        let start = self.at;
        self.at += 1;
        word.quoted = true;
        loop {
            match self.peek() {
                None => return Err(Stop::Unreadable(start, "a quote that does not end")),
                Some(c) if is_single(c) => {
                    self.at += 1;
                    if !self.peek().is_some_and(is_single) {
                        return Ok(());
                    }
                    word.push('\'');
                    self.at += 1;
                }
                Some(c) => {
                    word.push(c);
                    self.at += 1;
                }
            }
        }
    }

    fn double(&mut self, word: &mut Word) -> Result<(), Stop> {
        let start = self.at;
        self.at += 1;
        word.quoted = true;
        loop {
            match self.peek() {
                None => return Err(Stop::Unreadable(start, "a quote that does not end")),
                Some('`') => self.escape(word),
                Some('$') => self.dollar(word)?,
                Some(c) if is_double(c) => {
                    self.at += 1;
                    if !self.peek().is_some_and(is_double) {
                        return Ok(());
                    }
                    word.push('"');
                    self.at += 1;
                }
                Some(c) => {
                    word.push(c);
                    self.at += 1;
                }
            }
        }
    }

    /// `@'` … `'@`, `@"` … `"@`, each on lines of their own.
    fn here_string(&mut self, word: &mut Word, expands: bool) -> Result<(), Stop> {
        let start = self.at;
        self.at += 2;
        word.quoted = true;
        while self.peek().is_some_and(is_blank) {
            self.at += 1;
        }
        if self.peek() == Some('\r') {
            self.at += 1;
        }
        if self.peek() != Some('\n') {
            return Err(Stop::Unreadable(start, "a here-string whose first line is not empty"));
        }
        // The end may follow at once, so the line end before it is looked at, not taken.
        loop {
            match self.peek() {
                None => return Err(Stop::Unreadable(start, "a here-string that does not end")),
                Some('\n') => {
                    let closes = |c: char| if expands { is_double(c) } else { is_single(c) };
                    if self.ahead(1).is_some_and(closes) && self.ahead(2) == Some('@') {
                        self.at += 3;
                        return Ok(());
                    }
                    self.at += 1;
                    word.push('\n');
                }
                Some('`') if expands => self.escape(word),
                Some('$') if expands => self.dollar(word)?,
                Some(c) => {
                    word.push(c);
                    self.at += 1;
                }
            }
        }
    }

    /// `$name`, `${name}`, `$( … )`, or the sign alone.
    fn dollar(&mut self, word: &mut Word) -> Result<(), Stop> {
        let start = self.at;
        self.at += 1;
        match self.peek() {
            Some('(') => {
                self.at += 1;
                word.inner.push(self.script(Some(')'))?);
                word.parts.push(Part::Result);
            }
            Some('{') => {
                self.at += 1;
                let mut name = String::new();
                loop {
                    match self.peek() {
                        None => return Err(Stop::Unreadable(start, "a `${` that does not end")),
                        Some('}') => break,
                        Some('`') => {
                            self.at += 1;
                            name.extend(self.peek());
                        }
                        Some(c) => name.push(c),
                    }
                    self.at += 1;
                }
                self.at += 1;
                word.parts.push(Part::Variable(name.to_lowercase()));
            }
            Some('$' | '?' | '^') => {
                word.parts.push(Part::Variable(self.peek().into_iter().collect()));
                self.at += 1;
            }
            Some(c) if c.is_alphanumeric() || c == '_' => {
                let mut name = self.name();
                if self.peek() == Some(':') && self.ahead(1).is_some_and(|c| c.is_alphanumeric() || c == '_')
                {
                    self.at += 1;
                    name.push(':');
                    name.push_str(&self.name());
                }
                word.parts.push(Part::Variable(name.to_lowercase()));
            }
            _ => word.push('$'),
        }
        Ok(())
    }
}
