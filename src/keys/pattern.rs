//! Names of models with `*` in them.

/// Whether a name fits a pattern in which `*` stands for any characters, also for none.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut sign, mut at) = (0, 0);
    // The last star, and where what it stands for ends so far. It alone is ever widened: what an earlier one stands for
    // is as short as can be, which leaves the most to the rest.
    let mut star = None;
    while let Some(byte) = name.get(at) {
        match (pattern.get(sign), star) {
            (Some(b'*'), _) => {
                star = Some((sign, at));
                sign += 1;
            }
            (Some(wanted), _) if wanted == byte => {
                sign += 1;
                at += 1;
            }
            (_, Some((last, end))) => {
                star = Some((last, end + 1));
                (sign, at) = (last + 1, end + 1);
            }
            (_, None) => return false,
        }
    }
    pattern.get(sign..).unwrap_or_default().iter().all(|sign| *sign == b'*')
}
