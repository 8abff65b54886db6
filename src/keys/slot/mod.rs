//! Slots: each pins one upstream, what may be asked of it, and how the key is put on. A request names a slot,
//! never a host.

mod ask;
mod choice;
mod file;
mod name;
mod origin;

pub use ask::{Api, Ask};
pub use choice::{Choice, DEFAULT_SCENARIO};
pub use file::ReadSlotsError;
pub use name::{ParseSlotNameError, SlotName};
pub use origin::{ANTHROPIC_ORIGIN, Endpoint, Origin, ParseOriginError, ParsePrefixError};

const OPENAI_ORIGIN: &str = "https://api.openai.com";
const OPENROUTER_ORIGIN: &str = "https://openrouter.ai";
/// What OpenRouter has before the paths of both APIs.
const OPENROUTER_PREFIX: &str = "/api";

/// How a key is put on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Auth {
    /// As `x-api-key`.
    XApiKey,
    /// As `Authorization: Bearer`.
    Bearer,
    /// Not at all: the slot takes no key.
    None,
}

impl Auth {
    /// The word for it, in a slots file and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::XApiKey => "x-api-key",
            Self::Bearer => "bearer",
            Self::None => "none",
        }
    }
}

/// Who answers what a slot is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Upstream {
    /// A provider, reached over the network.
    Provider(Endpoint),
    /// Nobody yet: a slots file has to say where.
    Unset,
    /// The scripted model in this program, which needs no key.
    Rehearsal,
}

/// One slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// What requests call it.
    pub name: SlotName,
    /// Which languages it speaks: they decide the paths that it offers, and how usage is read.
    pub apis: Vec<Api>,
    /// Who answers.
    pub upstream: Upstream,
    /// How its key is put on.
    pub auth: Auth,
}

impl Slot {
    /// Whether a key can be saved for it.
    pub fn takes_key(&self) -> bool {
        self.auth != Auth::None
    }
    /// Where it goes, when it goes anywhere.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        match &self.upstream {
            Upstream::Provider(endpoint) => Some(endpoint),
            Upstream::Unset | Upstream::Rehearsal => None,
        }
    }
}

/// The slots that this service has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slots {
    all: Vec<Slot>,
    /// The slots file that was read, as messages name it.
    file: Option<String>,
}

impl Slots {
    /// The built-in ones, with `anthropic` at this origin.
    pub fn built_in(anthropic: Origin) -> Self {
        let own = |text: &str, prefix: &str| {
            // Both texts are ours and a test reads them; what could not be read would be a slot without a place.
            let endpoint =
                Origin::parse(text, false).ok().and_then(|origin| Endpoint::new(origin, prefix).ok());
            endpoint.map_or(Upstream::Unset, Upstream::Provider)
        };
        let slot = |name: SlotName, apis: &[Api], upstream: Upstream, auth: Auth| Slot {
            name,
            apis: apis.to_vec(),
            upstream,
            auth,
        };
        let both = [Api::Anthropic, Api::Openai];
        let all = vec![
            slot(
                SlotName::anthropic(),
                &[Api::Anthropic],
                Upstream::Provider(anthropic.into()),
                Auth::XApiKey,
            ),
            slot(SlotName::openai(), &[Api::Openai], own(OPENAI_ORIGIN, ""), Auth::Bearer),
            slot(SlotName::openrouter(), &both, own(OPENROUTER_ORIGIN, OPENROUTER_PREFIX), Auth::Bearer),
            slot(SlotName::local(), &both, Upstream::Unset, Auth::None),
            slot(SlotName::rehearsal(), &[Api::Anthropic], Upstream::Rehearsal, Auth::None),
        ];
        Self { all, file: None }
    }
    /// The slot of this name.
    pub fn get(&self, name: &str) -> Option<&Slot> {
        self.all.iter().find(|slot| slot.name.as_str() == name)
    }
    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.all.iter()
    }
    /// The slots file that was read, as messages name it.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_built_in_slot_has_its_place_its_language_and_its_way_with_keys() {
        let slots = Slots::built_in(Origin::anthropic());
        let found: Vec<String> = slots
            .iter()
            .map(|slot| {
                let apis: Vec<&str> = slot.apis.iter().map(|api| api.as_str()).collect();
                let place = slot.endpoint().map_or_else(|| "-".to_owned(), ToString::to_string);
                format!("{} {} {place} {}", slot.name, apis.join("+"), slot.auth.as_str())
            })
            .collect();
        let wanted = [
            "anthropic anthropic https://api.anthropic.com x-api-key",
            "openai openai https://api.openai.com bearer",
            "openrouter anthropic+openai https://openrouter.ai/api bearer",
            "local anthropic+openai - none",
            "rehearsal anthropic - none",
        ];
        assert_eq!(found, wanted);
    }
}
