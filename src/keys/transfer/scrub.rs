//! Blots a key out of a body that goes by, wherever the chunks are cut, without changing its length.

use bytes::{Bytes, BytesMut};

/// Replaces each occurrence of one byte string by as many `*`. It holds back what may be the beginning of an
/// occurrence, which is less than the string's length.
#[derive(Debug)]
pub(super) struct Scrub {
    needle: Vec<u8>,
    held: BytesMut,
}

impl Drop for Scrub {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.needle);
    }
}

impl Scrub {
    /// `None` for an empty string, which stands everywhere.
    pub(super) fn new(needle: &[u8]) -> Option<Self> {
        (!needle.is_empty()).then(|| Self { needle: needle.to_vec(), held: BytesMut::new() })
    }
    /// What can go on once `data` has come.
    pub(super) fn push(&mut self, data: &[u8]) -> Bytes {
        self.held.extend_from_slice(data);
        self.blot();
        let kept = (1..self.needle.len())
            .rev()
            .find(|length| self.needle.get(..*length).is_some_and(|start| self.held.ends_with(start)))
            .unwrap_or(0);
        self.held.split_to(self.held.len().saturating_sub(kept)).freeze()
    }
    /// What was held back, at the end.
    pub(super) fn finish(mut self) -> Bytes {
        std::mem::take(&mut self.held).freeze()
    }
    fn blot(&mut self) {
        let mut from = 0;
        while let Some(found) = self.held.get(from..).and_then(|rest| {
            rest.windows(self.needle.len()).position(|window| window == self.needle.as_slice())
        }) {
            let start = from + found;
            from = start + self.needle.len();
            if let Some(place) = self.held.get_mut(start..from) {
                place.fill(b'*');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(needle: &[u8], chunks: &[&[u8]]) -> Vec<u8> {
        let mut scrub = Scrub::new(needle).unwrap();
        let mut out = Vec::new();
        for chunk in chunks {
            out.extend_from_slice(&scrub.push(chunk));
        }
        out.extend_from_slice(&scrub.finish());
        out
    }

    #[test]
    fn a_key_is_blotted_out_also_where_it_is_cut_and_nothing_else_changes() {
        assert_eq!(run(b"key1", &[b"a key1 b"]), b"a **** b");
        assert_eq!(run(b"key1", &[b"a ke", b"y", b"1 b"]), b"a **** b");
        assert_eq!(run(b"key1", &[b"a ke", b"y2 kek", b"ey1ke"]), b"a key2 ke****ke");
        assert_eq!(run(b"aab", &[b"aa", b"aab", b"aa"]), b"aa***aa");
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
    }
}
