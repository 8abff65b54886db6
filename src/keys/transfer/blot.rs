//! Blots keys out of what comes back, with as many `*`, so that no length changes: the one that was put on, wherever
//! the chunks of an answer are cut; and in a provider's error whatever looks like one.

use bytes::{Bytes, BytesMut};
use memchr::memmem::Finder;

use crate::keys::shapes;

/// Replaces each occurrence of one byte string. It holds back what may be the beginning of an occurrence, which is
/// less than the string's length, and passes everything else on as it came.
pub(super) struct Blot {
    needle: Vec<u8>,
    held: BytesMut,
}

impl Drop for Blot {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.needle);
    }
}

impl Blot {
    /// `None` for an empty string, which stands everywhere.
    pub(super) fn new(needle: &[u8]) -> Option<Self> {
        (!needle.is_empty()).then(|| Self { needle: needle.to_vec(), held: BytesMut::new() })
    }
    /// What can go on once `data` has come.
    pub(super) fn push(&mut self, data: Bytes) -> Bytes {
        if self.held.is_empty() && self.begins(&data) == 0 && Finder::new(&self.needle).find(&data).is_none()
        {
            return data;
        }
        self.held.extend_from_slice(&data);
        blot_all(&mut self.held, &self.needle);
        let kept = self.begins(&self.held);
        self.held.split_to(self.held.len().saturating_sub(kept)).freeze()
    }
    /// What was held back, at the end.
    pub(super) fn finish(&mut self) -> Bytes {
        std::mem::take(&mut self.held).freeze()
    }
    /// How many bytes at the end of a text may be the beginning of an occurrence.
    fn begins(&self, text: &[u8]) -> usize {
        let ends = |length: &usize| self.needle.get(..*length).is_some_and(|start| text.ends_with(start));
        let longest = self.needle.len().saturating_sub(1).min(text.len());
        (1..=longest).rev().find(ends).unwrap_or(0)
    }
}

fn blot_all(text: &mut [u8], needle: &[u8]) {
    let finder = Finder::new(needle);
    let mut from = 0;
    while let Some(found) = text.get(from..).and_then(|rest| finder.find(rest)) {
        let start = from + found;
        from = start + needle.len();
        if let Some(place) = text.get_mut(start..from) {
            place.fill(b'*');
        }
    }
}

/// A wider net than [`shapes`] has: what stands in an error is cut short or has lost its letters at times, and here a
/// word too many does no harm. How it begins, and how many characters follow at least.
const SHAPES: &[(&[u8], usize)] = &[
    (b"sk-", 12),
    (b"sk_", 12),
    (b"wp_", 20),
    (b"AIza", 20),
    (b"ya29.", 12),
    (b"AKIA", 12),
    (b"ASIA", 12),
    (b"gsk_", 12),
    (b"xai-", 12),
    (b"hf_", 16),
    (b"pplx-", 16),
    (b"eyJ", 24),
    (b"Bearer ", 12),
    (b"bearer ", 12),
];

/// Blots a key, and everything that looks like one, out of a whole text.
pub(super) fn blot_keys(text: &mut [u8], needle: &[u8]) {
    if !needle.is_empty() {
        blot_all(text, needle);
    }
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~+/=*".contains(byte);
    for (start, least) in SHAPES {
        let finder = Finder::new(start);
        let mut from = 0;
        while let Some(found) = text.get(from..).and_then(|rest| finder.find(rest)) {
            let begins = from + found;
            from = begins + start.len();
            let word =
                begins.checked_sub(1).and_then(|at| text.get(at)).is_some_and(u8::is_ascii_alphanumeric);
            let Some(rest) = text.get_mut(from..) else { return };
            let length = rest.iter().take_while(|byte| part(byte)).count();
            if !word
                && length >= *least
                && let Some(key) = rest.get_mut(..length)
            {
                key.fill(b'*');
                from += length;
            }
        }
    }
    let mut from = 0;
    while let Some(key) = shapes::find(text, from) {
        from = key.end;
        if let Some(key) = text.get_mut(key.at..key.end) {
            key.fill(b'*');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(needle: &[u8], chunks: &[&[u8]]) -> Vec<u8> {
        let mut blot = Blot::new(needle).unwrap();
        let mut out = Vec::new();
        for chunk in chunks {
            out.extend_from_slice(&blot.push(Bytes::copy_from_slice(chunk)));
        }
        out.extend_from_slice(&blot.finish());
        out
    }

    #[test]
    fn a_key_is_blotted_out_also_where_it_is_cut_and_nothing_else_changes() {
        assert_eq!(run(b"key1", &[b"a key1 b"]), b"a **** b");
        assert_eq!(run(b"key1", &[b"a ke", b"y", b"1 b"]), b"a **** b");
        assert_eq!(run(b"key1", &[b"a ke", b"y2 kek", b"ey1ke"]), b"a key2 ke****ke");
        assert_eq!(run(b"aab", &[b"aa", b"aab", b"aa"]), b"aa***aa");
    }

    #[test]
    fn what_holds_no_part_of_the_key_goes_on_at_once_and_as_it_is() {
        let mut blot = Blot::new(b"sk-ant-api03-x").unwrap();
        let data = Bytes::from_static(b"data: {\"text\":\"hello\"}\n\n");
        assert_eq!(blot.push(data.clone()).as_ptr(), data.as_ptr());
        assert_eq!(&blot.push(Bytes::from_static(b"abc sk-a"))[..], b"abc ");
        assert_eq!(&blot.push(Bytes::from_static(b"bc"))[..], b"sk-abc");
    }

    #[test]
    fn what_looks_like_a_key_is_blotted_out_and_prose_is_not() {
        for (text, wanted) in [
            ("bad key sk-ant-api03-abcdefghijkl!", "bad key sk-**********************!"),
            ("Authorization: Bearer abc.def/ghi-jkl=", "Authorization: Bearer ****************"),
            ("{\"k\":\"AIzaSyA-0123456789abcdefgh\"}", "{\"k\":\"AIza**********************\"}"),
            ("the task-manager-of-a-thousand-things", "the task-manager-of-a-thousand-things"),
            ("risk-averse bearer of bad news", "risk-averse bearer of bad news"),
            ("sk-short", "sk-short"),
        ] {
            let mut text = text.as_bytes().to_vec();
            blot_keys(&mut text, b"");
            assert_eq!(String::from_utf8(text).unwrap(), wanted);
        }
        // What no beginning above covers, the shapes of the check for keys in reach do.
        let mut text = format!("no: nvapi-{}", "aB3-".repeat(12)).into_bytes();
        blot_keys(&mut text, b"");
        assert_eq!(String::from_utf8(text).unwrap(), format!("no: {}", "*".repeat(6 + 48)));
        let mut text = b"my own-key here".to_vec();
        blot_keys(&mut text, b"own-key");
        assert_eq!(text, b"my ******* here");
    }

    proptest! {
        #[test]
        fn wherever_it_is_cut_the_result_is_that_of_the_whole(
            text in "[ab]{0,40}", needle in "[ab]{1,4}", cuts in proptest::collection::vec(0usize..40, 0..6)
        ) {
            let whole = run(needle.as_bytes(), &[text.as_bytes()]);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts {
                chunks.push(&text.as_bytes()[from..cut]);
                from = cut;
            }
            chunks.push(&text.as_bytes()[from..]);
            let out = run(needle.as_bytes(), &chunks);
            prop_assert_eq!(out.len(), text.len());
            prop_assert!(!out.windows(needle.len()).any(|window| window == needle.as_bytes()));
            prop_assert_eq!(out, whole);
        }

        #[test]
        fn no_bytes_harm_it_or_change_their_number(text in proptest::collection::vec(any::<u8>(), 0..200), needle in proptest::collection::vec(any::<u8>(), 0..6)) {
            let mut blotted = text.clone();
            blot_keys(&mut blotted, &needle);
            prop_assert_eq!(blotted.len(), text.len());
        }
    }
}
