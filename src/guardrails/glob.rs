//! A glob on one word, read as it is matched: a hook is a process per tool call, and building a matcher ahead would
//! cost more than it saves.

/// Whether letters of both cases are one in file names here.
pub(super) const FOLDS_CASE: bool = cfg!(any(target_os = "macos", windows));

/// Whether `text` fits `pattern` as a whole: `*` is any run of letters, `?` one, `[a-z]` and `[!a-z]` one of a class,
/// `\` takes the next letter as it is. A bracket that does not close is a letter.
pub(super) fn fits(pattern: &str, text: &str, fold: bool) -> bool {
    letters_fit(&letters(pattern, fold), &letters(text, fold))
}

/// A text for [`letters_fit`].
pub(super) fn letters(text: &str, fold: bool) -> Vec<char> {
    if fold { text.chars().flat_map(char::to_lowercase).collect() } else { text.chars().collect() }
}

/// [`fits`] for texts that are matched more than once.
pub(super) fn letters_fit(pattern: &[char], text: &[char]) -> bool {
    let (mut at, mut here) = (0, 0);
    // Where the last `*` stands, and how much of the text it has taken: only the last one has to give back.
    let mut star: Option<(usize, usize)> = None;
    while let Some(letter) = text.get(here) {
        if pattern.get(at) == Some(&'*') {
            star = Some((at, here));
            at += 1;
            continue;
        }
        match one(pattern, at, *letter) {
            Some(next) => {
                at = next;
                here += 1;
            }
            None => match star {
                Some((stood, taken)) => {
                    star = Some((stood, taken + 1));
                    at = stood + 1;
                    here = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern.get(at..).is_some_and(|rest| rest.iter().all(|letter| *letter == '*'))
}

/// Where the pattern goes on after one letter that fits at `at`.
fn one(pattern: &[char], at: usize, letter: char) -> Option<usize> {
    match pattern.get(at)? {
        '?' => Some(at + 1),
        '\\' => match pattern.get(at + 1) {
            Some(next) => (*next == letter).then_some(at + 2),
            None => (letter == '\\').then_some(at + 1),
        },
        '[' => match class(pattern, at, letter) {
            Some((inside, end)) => inside.then_some(end),
            None => (letter == '[').then_some(at + 1),
        },
        own => (*own == letter).then_some(at + 1),
    }
}

/// Whether the letter is in the class at `at`, and where the pattern goes on; `None` when it does not close.
fn class(pattern: &[char], at: usize, letter: char) -> Option<(bool, usize)> {
    let mut next = at + 1;
    let not = matches!(pattern.get(next), Some('!' | '^'));
    if not {
        next += 1;
    }
    let first = next;
    let mut inside = false;
    loop {
        let mut low = *pattern.get(next)?;
        if low == ']' && next > first {
            return Some((inside != not, next + 1));
        }
        if low == '\\' {
            next += 1;
            low = *pattern.get(next)?;
        }
        let range = pattern.get(next + 1) == Some(&'-') && pattern.get(next + 2).is_some_and(|to| *to != ']');
        if range {
            let high = *pattern.get(next + 2)?;
            inside |= (low..=high).contains(&letter);
            next += 3;
        } else {
            inside |= low == letter;
            next += 1;
        }
    }
}

/// The one text that a pattern means; `None` when it means several.
pub(super) fn plain(pattern: &str) -> Option<String> {
    let mut text = String::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '*' | '?' | '[' => return None,
            '\\' => text.push(letters.next().unwrap_or('\\')),
            own => text.push(own),
        }
    }
    Some(text)
}

/// The words that `{a,b}` in a text means, outermost and inner ones; the text itself where there are more than
/// `most` or a brace does not close.
pub(super) fn alternatives(text: &str, most: usize) -> Vec<String> {
    let mut all = vec![text.to_owned()];
    let mut done = Vec::new();
    while let Some(next) = all.pop() {
        match first_brace(&next) {
            Some((start, options, end)) => {
                for option in options {
                    all.push(format!("{start}{option}{end}"));
                }
            }
            None => done.push(next),
        }
        if all.len() + done.len() > most {
            return vec![text.to_owned()];
        }
    }
    done
}

/// What stands before the first brace that closes, its options, and what stands behind it.
fn first_brace(text: &str) -> Option<(&str, Vec<&str>, &str)> {
    let open = text.find('{')?;
    let (start, rest) = text.split_at_checked(open)?;
    let inside = rest.strip_prefix('{')?;
    let mut depth = 0;
    let mut options = Vec::new();
    let mut from = 0;
    for (at, letter) in inside.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' if depth == 0 => {
                options.push(inside.get(from..at)?);
                from = at + 1;
            }
            '}' => {
                options.push(inside.get(from..at)?);
                return Some((start, options, inside.get(at + 1..)?));
            }
            _ => {}
        }
    }
    None
}
