//! How a long job tells what it is doing, without knowing whether a terminal, a test or nobody listens.

/// Somebody who is told.
pub trait Reporter: Send + Sync {
    /// Work on `what` goes on: `doing` is a participle such as "creating".
    fn step(&self, what: &str, doing: &str);
    /// Work on `what` is over: `did` is a participle such as "created".
    fn done(&self, what: &str, did: &str);
    /// So many of so many bytes of `what`. `total` is 0 while it is unknown.
    fn progress(&self, what: &str, done: u64, total: u64);
    /// A sentence worth knowing.
    fn note(&self, sentence: &str);
    /// A sentence that should not be overlooked.
    fn warn(&self, sentence: &str);
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Reporter for Silent {
    fn step(&self, _what: &str, _doing: &str) {}
    fn done(&self, _what: &str, _did: &str) {}
    fn progress(&self, _what: &str, _done: u64, _total: u64) {}
    fn note(&self, _sentence: &str) {}
    fn warn(&self, _sentence: &str) {}
}
