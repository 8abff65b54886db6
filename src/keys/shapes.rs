//! What model and cloud keys look like. Pure: bytes in, places out, and never the bytes again.

/// How a key goes on after its beginning.
struct Shape {
    begin: &'static str,
    /// At least so many letters follow, and at most.
    least: usize,
    most: usize,
    letters: Letters,
    what: &'static str,
}

#[derive(Clone, Copy)]
enum Letters {
    /// Letters, digits, `-`, `_`.
    Url,
    /// Letters and digits, both.
    Mixed,
    /// Capitals and digits, both.
    Capitals,
    /// Those of base 64.
    Base64,
}

const ANY: usize = usize::MAX;

const fn shape(begin: &'static str, least: usize, letters: Letters, what: &'static str) -> Shape {
    Shape { begin, least, most: ANY, letters, what }
}

const fn exact(begin: &'static str, length: usize, letters: Letters, what: &'static str) -> Shape {
    Shape { begin, least: length, most: length, letters, what }
}

/// The longer beginning first. Lengths as the scanners of secrets have them (gitleaks' rules), the least a little less.
const SHAPES: &[Shape] = &[
    shape("sk-ant-", 16, Letters::Url, "an Anthropic key"),
    shape("sk-proj-", 16, Letters::Url, "an OpenAI key"),
    shape("sk-svcacct-", 16, Letters::Url, "an OpenAI key"),
    shape("sk-admin-", 16, Letters::Url, "an OpenAI key"),
    shape("sk-or-v1-", 16, Letters::Url, "an OpenRouter key"),
    shape("sk-", 32, Letters::Mixed, "a model key (`sk-`)"),
    exact("AIza", 35, Letters::Url, "a Google API key"),
    shape("ya29.", 20, Letters::Url, "a Google access token"),
    exact("AKIA", 16, Letters::Capitals, "an AWS access key"),
    exact("ASIA", 16, Letters::Capitals, "an AWS access key"),
    shape("ABSK", 60, Letters::Base64, "a Bedrock key"),
    shape("bedrock-api-key-", 40, Letters::Base64, "a Bedrock key"),
    shape("gsk_", 32, Letters::Mixed, "a Groq key"),
    shape("xai-", 32, Letters::Mixed, "an xAI key"),
    shape("hf_", 30, Letters::Mixed, "a Hugging Face token"),
    shape("pplx-", 32, Letters::Mixed, "a Perplexity key"),
    shape("r8_", 30, Letters::Mixed, "a Replicate token"),
    shape("csk-", 32, Letters::Mixed, "a Cerebras key"),
    shape("nvapi-", 40, Letters::Url, "an NVIDIA key"),
    shape("tgp_v1_", 30, Letters::Url, "a Together key"),
    shape("crsr_", 32, Letters::Mixed, "a Cursor key"),
];

/// Words of those who write `your-api-key-here`.
const MADE_UP: &[&[u8]] = &[b"your-", b"your_", b"placeholder", b"redacted", b"replace-me", b"change-me"];

/// A key in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shaped {
    /// Where it begins, in bytes.
    pub(super) at: usize,
    /// Where it ends.
    pub(super) end: usize,
    pub(super) what: &'static str,
}

/// The first key at or after a place.
pub(super) fn find(text: &[u8], from: usize) -> Option<Shaped> {
    (from..text.len()).find_map(|at| {
        let rest = text.get(at..)?;
        let shape = SHAPES.iter().find(|shape| rest.starts_with(shape.begin.as_bytes()))?;
        if !begins_a_word(text, at) {
            return None;
        }
        let body = rest.get(shape.begin.len()..)?;
        let length = body.iter().take_while(|byte| shape.letters.hold(**byte)).count();
        let body = body.get(..length)?;
        let fits = length >= shape.least && length <= shape.most && shape.letters.are_spread(body);
        (fits && !made_up(body)).then_some(Shaped {
            at,
            end: at + shape.begin.len() + length,
            what: shape.what,
        })
    })
}

/// Whether a key stands in a text.
pub(super) fn holds(text: &[u8]) -> Option<&'static str> {
    find(text, 0).map(|found| found.what)
}

/// The text with each key in it replaced.
pub(super) fn without(text: &str) -> String {
    let mut clean = String::new();
    let mut done = 0;
    while let Some(found) = find(text.as_bytes(), done) {
        // Shapes are of ASCII, so their ends are ends of characters.
        clean.push_str(text.get(done..found.at).unwrap_or_default());
        clean.push_str("(a key)");
        done = found.end;
    }
    clean.push_str(text.get(done..).unwrap_or_default());
    clean
}

impl Letters {
    fn hold(self, byte: u8) -> bool {
        match self {
            Self::Url => is_word(byte),
            Self::Mixed => byte.is_ascii_alphanumeric(),
            Self::Capitals => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='),
        }
    }
    /// Whether it is no plain word.
    fn are_spread(self, body: &[u8]) -> bool {
        match self {
            Self::Url | Self::Base64 => true,
            Self::Mixed | Self::Capitals => {
                body.iter().any(u8::is_ascii_digit) && body.iter().any(u8::is_ascii_alphabetic)
            }
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// Not in the middle of a word; the end of an escape (`\n`, `%20`) is none of it.
fn begins_a_word(text: &[u8], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).and_then(|place| text.get(place)).copied();
    match (before(3), before(2), before(1)) {
        (_, _, None) => true,
        (_, _, Some(last)) if last == b'_' || !is_word(last) => true,
        (_, Some(b'\\'), Some(b'n' | b't' | b'r' | b'b' | b'f')) => true,
        (Some(b'%'), Some(high), Some(low)) => high.is_ascii_hexdigit() && low.is_ascii_hexdigit(),
        _ => false,
    }
}

/// Text that stands where a key would.
fn made_up(body: &[u8]) -> bool {
    let filler = |byte: &u8| matches!(byte, b'x' | b'X' | b'-' | b'_' | b'0');
    if body.iter().all(filler) || body.ends_with(b"EXAMPLE") {
        return true;
    }
    let lower = body.to_ascii_lowercase();
    MADE_UP.iter().any(|word| lower.windows(word.len()).any(|some| some == *word))
}
