//! The slots file: slots of the person's own, and other places for the built-in ones. Read once, at start.
//!
//!     version: 1
//!     slots:
//!       gateway:
//!         origin: https://gate.example
//!         prefix: /api/anthropic     # before every path; none when it is left out
//!         api: anthropic             # or openai, or [anthropic, openai]
//!         auth: bearer               # or x-api-key, or none
//!         plain: true                # take http:// beyond this machine

use std::path::Path;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, IntoDeserializer as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use super::{Api, Auth, Endpoint, Origin, ParseOriginError, Slot, SlotName, Slots, Upstream};
use crate::failure::{Exit, Explain};
use crate::keys::own_file::{self, Wrong};

/// The version of the format that this program reads.
const VERSION: u32 = 1;
/// The largest file, in bytes.
const MOST_BYTES: u64 = 64 * 1024;
/// The most slots, with the built-in ones.
const MOST_SLOTS: usize = 64;

/// A slots file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReadSlotsError {
    /// It is not there, or closed to us.
    #[error("the slots file `{file}` cannot be read")]
    Read {
        /// Which.
        file: String,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// More than anybody writes.
    #[error("the slots file `{0}` is larger than {kib} KiB", kib = MOST_BYTES / 1024)]
    Large(String),
    /// It does not say what one should.
    #[error("{file}, line {line}, column {column}: {what}")]
    Wrong {
        /// Which.
        file: String,
        /// Where, counted from 1.
        line: u64,
        /// Where, counted from 1.
        column: u64,
        /// What is wrong.
        what: String,
    },
}

impl Explain for ReadSlotsError {
    fn code(&self) -> &'static str {
        "slots-file"
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Read { .. } => Some("give another with `--slots`, or leave it out".into()),
            Self::Large(_) | Self::Wrong { .. } => {
                Some("docs/keys.md, section \"Slots\", shows how one is written".into())
            }
        }
    }
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: Spanned<u32>,
    #[serde(default)]
    slots: Written,
}

/// Names and what they stand for, in the file's order; each name with its place.
#[derive(Default)]
struct Written(Vec<(Spanned<String>, FileSlot)>);

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Written;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("slots by their names")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Written, A::Error> {
                let mut written = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    written.push(entry);
                }
                Ok(Written(written))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSlot {
    origin: Option<Spanned<String>>,
    prefix: Option<Spanned<String>>,
    api: Option<Spanned<Apis>>,
    auth: Option<Spanned<Auth>>,
    #[serde(default)]
    plain: bool,
}

/// One API, or a list of them.
struct Apis(Vec<Api>);

impl<'de> Deserialize<'de> for Apis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Apis;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("`anthropic`, `openai` or a list of them")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Apis, E> {
                Ok(Apis(vec![Api::deserialize(text.into_deserializer())?]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Apis, A::Error> {
                Ok(Apis(Vec::deserialize(SeqAccessDeserializer::new(list))?))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl Slots {
    /// The built-in slots with those of a file. `anthropic` goes to the origin given here when there is one,
    /// whatever the file says.
    ///
    /// # Errors
    /// When the file cannot be read or used.
    pub fn read(file: Option<&Path>, anthropic: Option<Origin>) -> Result<Self, ReadSlotsError> {
        let mut slots = Self::built_in(Origin::anthropic());
        if let Some(path) = file {
            let name = path.display().to_string();
            let failed = |cause| ReadSlotsError::Read { file: name.clone(), cause };
            let text = own_file::read(path, MOST_BYTES)
                .map_err(failed)?
                .ok_or_else(|| ReadSlotsError::Large(name.clone()))?;
            slots.add(&text, &name)?;
            slots.file = Some(name);
        }
        if let (Some(origin), Some(slot)) =
            (anthropic, slots.all.iter_mut().find(|slot| slot.name == SlotName::anthropic()))
        {
            slot.upstream = Upstream::Provider(origin.into());
        }
        Ok(slots)
    }

    /// Adds what a file says. `file` is what errors call it.
    ///
    /// # Errors
    /// When it says something else than it should, with the place.
    pub fn add(&mut self, text: &str, file: &str) -> Result<(), ReadSlotsError> {
        let wrong = |(location, what): Wrong| ReadSlotsError::Wrong {
            file: file.to_owned(),
            line: location.line(),
            column: location.column(),
            what,
        };
        let raw: File = own_file::parse(text).map_err(wrong)?;
        own_file::check_version(&raw.version, VERSION).map_err(wrong)?;
        for (name, slot) in raw.slots.0 {
            let at = name.referenced;
            let name = SlotName::parse(&name.value).map_err(|error| wrong((at, error.to_string())))?;
            self.set(name, at, slot).map_err(wrong)?;
        }
        Ok(())
    }

    fn set(&mut self, name: SlotName, at: Location, written: FileSlot) -> Result<(), Wrong> {
        // Their paths are not those of a slot.
        if ["control", "health"].contains(&name.as_str()) {
            return Err((
                at,
                format!("`{name}` cannot be the name of a slot: the service itself answers there"),
            ));
        }
        if name == SlotName::rehearsal() {
            return Err((at, "the slot `rehearsal` is a part of the service and cannot be changed".into()));
        }
        let endpoint = endpoint(&name, at, &written)?;
        let apis = written.api.map(|apis| apis_of(&apis)).transpose()?;
        let auth = written.auth.map(|auth| auth.value);
        if let Some(known) = self.all.iter_mut().find(|slot| slot.name == name) {
            if let Some(endpoint) = endpoint {
                known.upstream = Upstream::Provider(endpoint);
            }
            known.apis = apis.unwrap_or_else(|| known.apis.clone());
            known.auth = auth.unwrap_or(known.auth);
            return Ok(());
        }
        if self.all.len() >= MOST_SLOTS {
            return Err((at, format!("there are more than {MOST_SLOTS} slots")));
        }
        let endpoint = endpoint.ok_or_else(|| (at, format!("slot `{name}` needs an `origin`")))?;
        let apis = apis.ok_or_else(|| {
            (at, format!("slot `{name}` needs `api`: `anthropic`, `openai` or a list of them"))
        })?;
        let auth =
            auth.ok_or_else(|| (at, format!("slot `{name}` needs `auth`: `x-api-key`, `bearer` or `none`")))?;
        self.all.push(Slot { name, apis, upstream: Upstream::Provider(endpoint), auth });
        Ok(())
    }
}

fn endpoint(name: &SlotName, at: Location, written: &FileSlot) -> Result<Option<Endpoint>, Wrong> {
    let Some(text) = &written.origin else {
        let Some(prefix) = &written.prefix else { return Ok(None) };
        return Err((prefix.referenced, format!("slot `{name}` has a `prefix` and no `origin` before it")));
    };
    let origin = Origin::parse(&text.value, written.plain).map_err(|error| {
        let fix = match error {
            ParseOriginError::Plain(_) => "; add `plain: true` if that is meant",
            ParseOriginError::Malformed(_) | ParseOriginError::More(_) => "",
        };
        (text.referenced, format!("{error}{fix}"))
    })?;
    let (prefix, at) = written.prefix.as_ref().map_or(("", at), |prefix| (&prefix.value, prefix.referenced));
    Endpoint::new(origin, prefix).map(Some).map_err(|error| (at, error.to_string()))
}

fn apis_of(written: &Spanned<Apis>) -> Result<Vec<Api>, Wrong> {
    let apis = &written.value.0;
    let twice =
        apis.iter().enumerate().any(|(place, api)| apis.iter().skip(place + 1).any(|other| other == api));
    if apis.is_empty() || twice {
        return Err((written.referenced, "`api` names each API once, and one at least".into()));
    }
    Ok(apis.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(text: &str) -> Result<Slots, String> {
        let mut slots = Slots::built_in(Origin::anthropic());
        slots.add(text, "slots.yaml").map(|()| slots).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_adds_slots_and_moves_the_built_in_ones() {
        let slots = add(
            "version: 1\nslots:\n  gateway:\n    origin: https://gate.example\n    prefix: /api/anthropic\n    api: anthropic\n    auth: bearer\n  local:\n    origin: http://models.internal:11434\n    plain: true\n  openai:\n    origin: https://eu.api.openai.com\n  bare: {origin: 'http://127.0.0.1:9', api: [openai, anthropic], auth: none}\n",
        )
        .unwrap();
        let gateway = slots.get("gateway").unwrap();
        assert_eq!(gateway.endpoint().unwrap().to_string(), "https://gate.example/api/anthropic");
        assert_eq!((gateway.apis.as_slice(), gateway.auth), (&[Api::Anthropic][..], Auth::Bearer));
        let local = slots.get("local").unwrap();
        assert_eq!(local.endpoint().unwrap().to_string(), "http://models.internal:11434");
        assert_eq!((local.apis.len(), local.auth), (2, Auth::None));
        assert_eq!(slots.get("openai").unwrap().endpoint().unwrap().to_string(), "https://eu.api.openai.com");
        assert!(!slots.get("bare").unwrap().takes_key());
        assert_eq!(slots.iter().count(), 7);
    }

    #[test]
    fn what_is_wrong_is_told_with_line_and_column() {
        let gateway =
            |rest: &str| format!("version: 1\nslots:\n  gateway:\n    origin: https://gate.example\n{rest}");
        let told = [
            ("an unknown key", gateway("    apy: openai\n")),
            ("an unknown api", gateway("    api: gemini\n    auth: none\n")),
            ("an api twice", gateway("    api: [openai, openai]\n    auth: none\n")),
            ("no api", gateway("    auth: none\n")),
            ("no auth", gateway("    api: openai\n")),
            ("an odd prefix", gateway("    prefix: /a/../b\n    api: openai\n    auth: none\n")),
            ("a slot twice", gateway("    api: openai\n    auth: none\n  gateway: {}\n")),
            ("another version", "version: 2\nslots: {}\n".into()),
            ("no version", "slots: {}\n".into()),
            ("a name that is none", "version: 1\nslots:\n  Gate: {origin: 'https://a.example'}\n".into()),
            (
                "the service's own path",
                "version: 1\nslots:\n  control: {origin: 'https://a.example'}\n".into(),
            ),
            ("rehearsal", "version: 1\nslots:\n  rehearsal: {origin: 'https://a.example'}\n".into()),
            ("a prefix alone", "version: 1\nslots:\n  openai: {prefix: /x}\n".into()),
            ("in the clear", "version: 1\nslots:\n  local: {origin: 'http://models.internal'}\n".into()),
            (
                "a path in the origin",
                "version: 1\nslots:\n  local: {origin: 'https://a.example/v1'}\n".into(),
            ),
            ("a password", "version: 1\nslots:\n  local: {origin: 'https://me:hunter2@a.example'}\n".into()),
        ];
        let told: Vec<String> =
            told.iter().map(|(what, text)| format!("{what}: {}", add(text).expect_err(what))).collect();
        assert!(!told.concat().contains("hunter2"));
        insta::assert_snapshot!(told.join("\n"));
    }
}
