//! The time, as it is stored and sent: whole milliseconds since 1970, UTC.

use std::time::{SystemTime, UNIX_EPOCH};

/// A moment: milliseconds since 1970-01-01T00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Millis(pub i64);

impl Millis {
    /// Now. A clock before 1970 counts as 1970.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
    /// The moment that a text in RFC 3339 names.
    pub fn parse(text: &str) -> Option<Self> {
        use time::format_description::well_known::Rfc3339;
        let moment = time::OffsetDateTime::parse(text, &Rfc3339).ok()?;
        i64::try_from(moment.unix_timestamp_nanos() / 1_000_000).ok().map(Self)
    }
    /// The moment in RFC 3339, to the second; empty when it lies outside the years that format can write.
    pub fn rfc3339(self) -> String {
        use time::format_description::well_known::Rfc3339;
        time::OffsetDateTime::from_unix_timestamp(self.0.div_euclid(1000))
            .ok()
            .and_then(|moment| moment.format(&Rfc3339).ok())
            .unwrap_or_default()
    }
}
