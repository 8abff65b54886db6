//! Wildcards: `*`, `?`, `[…]`.

/// Whether the pattern fits all of the text. Linear in both for one `*`, never worse than their product.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        let step = match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
                continue;
            }
            Some('?') => Some(1),
            Some('[') => class(&pattern, p, text.get(t).copied().unwrap_or_default()),
            Some(character) if text.get(t) == Some(character) => Some(1),
            _ => None,
        };
        match (step, star) {
            (Some(width), _) => {
                p += width;
                t += 1;
            }
            (None, Some((at, from))) => {
                star = Some((at, from + 1));
                p = at + 1;
                t = from + 1;
            }
            (None, None) => return false,
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|rest| *rest == '*')
}

/// The width of a class that begins here and holds the character.
fn class(pattern: &[char], at: usize, character: char) -> Option<usize> {
    let mut p = at + 1;
    let negated = matches!(pattern.get(p), Some('!' | '^'));
    if negated {
        p += 1;
    }
    let mut found = false;
    let first = p;
    loop {
        let low = *pattern.get(p)?;
        if low == ']' && p > first {
            return (found != negated).then_some(p + 1 - at);
        }
        if pattern.get(p + 1) == Some(&'-') && pattern.get(p + 2).is_some_and(|high| *high != ']') {
            let high = *pattern.get(p + 2)?;
            found |= (low..=high).contains(&character);
            p += 3;
        } else {
            found |= low == character;
            p += 1;
        }
    }
}
