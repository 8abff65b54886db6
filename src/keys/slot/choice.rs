//! Which slot a run's model stands for: `[SLOT/]MODEL`.

use super::{ParseSlotNameError, SlotName};

/// The scenario that `--model rehearsal` alone plays.
pub const DEFAULT_SCENARIO: &str = "hello";

/// What `[SLOT/]MODEL` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The slot.
    pub slot: SlotName,
    /// The model as the slot's provider names it; `None` leaves it to the agent program. Of a rehearsal, the whole text.
    pub model: Option<String>,
    /// The scenario, for the rehearsal slot alone; a file's path when it begins with `./`, `../` or `/`.
    pub scenario: Option<String>,
}

impl Choice {
    /// What stands before the first `/` is the slot, and without one it is `anthropic`. `rehearsal` and
    /// `rehearsal/<scenario>` are played by the scripted model.
    ///
    /// # Errors
    /// When a `/` is there and what stands before it is no name of a slot.
    pub fn for_model(model: Option<&str>) -> Result<Self, ParseSlotNameError> {
        let Some(text) = model else {
            return Ok(Self { slot: SlotName::anthropic(), model: None, scenario: None });
        };
        let (slot, rest) = match text.split_once('/') {
            Some((slot, rest)) => (SlotName::parse(slot)?, Some(rest)),
            None if text == SlotName::rehearsal().as_str() => (SlotName::rehearsal(), None),
            None => (SlotName::anthropic(), Some(text)),
        };
        let rest = rest.filter(|rest| !rest.is_empty()).map(str::to_owned);
        if slot == SlotName::rehearsal() {
            let scenario = Some(rest.unwrap_or_else(|| DEFAULT_SCENARIO.to_owned()));
            return Ok(Self { slot, model: Some(text.to_owned()), scenario });
        }
        Ok(Self { slot, model: rest, scenario: None })
    }

    /// The path of the scenario's file, where it is one of the person's own.
    pub fn scenario_file(&self) -> Option<&str> {
        let is_path = |name: &&str| ["./", "../", "/"].iter().any(|start| name.starts_with(start));
        self.scenario.as_deref().filter(is_path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_the_first_slash_is_the_slot() {
        for (text, slot, model, scenario) in [
            ("opus", "anthropic", Some("opus"), None),
            ("rehearsals", "anthropic", Some("rehearsals"), None),
            ("anthropic/claude-x", "anthropic", Some("claude-x"), None),
            ("openrouter/anthropic/claude-x", "openrouter", Some("anthropic/claude-x"), None),
            ("local/", "local", None, None),
            ("rehearsal", "rehearsal", Some("rehearsal"), Some("hello")),
            ("rehearsal/slow", "rehearsal", Some("rehearsal/slow"), Some("slow")),
            ("rehearsal/./mine/x.yaml", "rehearsal", Some("rehearsal/./mine/x.yaml"), Some("./mine/x.yaml")),
            ("rehearsal//home/x.yaml", "rehearsal", Some("rehearsal//home/x.yaml"), Some("/home/x.yaml")),
        ] {
            let choice = Choice::for_model(Some(text)).unwrap();
            let found = (choice.slot.as_str(), choice.model.as_deref(), choice.scenario.as_deref());
            assert_eq!(found, (slot, model, scenario), "{text}");
            assert_eq!(choice.scenario_file(), scenario.filter(|name| name.contains('/')), "{text}");
        }
        let nothing = Choice::for_model(None).unwrap();
        assert_eq!((nothing.slot, nothing.model), (SlotName::anthropic(), None));
    }

    #[test]
    fn a_slot_that_can_be_none_is_refused() {
        for text in ["/x", "Open Router/x", "../x", "1/x"] {
            assert!(Choice::for_model(Some(text)).is_err(), "{text}");
        }
    }
}
