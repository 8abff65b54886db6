//! What a call asks for, as far as its price depends on it, and what it has used so far.

/// What stands in a request for a model's answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// The model. `None` where the request names none.
    pub model: Option<String>,
    /// Other models that the request lets in: those that stand in for the first, and those of the provider's tools.
    pub others: Vec<String>,
    /// The most tokens that an answer may have, where the request says so.
    pub most_output: Option<u64>,
    /// How many answers are asked for; 0 counts as one.
    pub answers: u64,
    /// The length of the request's body in bytes, or the most that it can be.
    pub body_bytes: u64,
    /// Whether the provider's dearer, faster mode is asked for.
    pub fast: bool,
    /// Whether the answer is to come as an event stream.
    pub stream: bool,
}

/// What a call has used, as far as is known. Each token counts in one place alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// The model that answered, as the provider names it.
    pub model: Option<String>,
    /// Input tokens that no cache gave or took.
    pub input: u64,
    /// Output tokens, with those that were thought and not said.
    pub output: u64,
    /// Input tokens written into a cache that keeps them for the shorter time.
    pub cache_write_5m: u64,
    /// Input tokens written into a cache that keeps them for the longer time.
    pub cache_write_1h: u64,
    /// Input tokens read from a cache.
    pub cache_read: u64,
    /// Whether some of it is reckoned from the length of the text, because the provider has not said it.
    pub estimated: bool,
    /// Whether it came in the provider's dearer, faster mode.
    pub fast: bool,
}

/// Bytes of a request per token of input, until the provider says how many there were.
const BYTES_PER_TOKEN: u64 = 4;

impl Asked {
    /// What the call has used as soon as it is sent, as far as can be reckoned.
    pub fn reckoned(&self) -> Counted {
        let input = self.body_bytes.div_ceil(BYTES_PER_TOKEN);
        Counted { input, estimated: true, fast: self.fast, ..Counted::default() }
    }
}

impl Counted {
    /// The tokens of the whole input.
    pub fn whole_input(&self) -> u64 {
        self.input
            .saturating_add(self.cache_write_5m)
            .saturating_add(self.cache_write_1h)
            .saturating_add(self.cache_read)
    }
    /// All tokens, of every kind.
    pub fn tokens(&self) -> u64 {
        self.whole_input().saturating_add(self.output)
    }
}
