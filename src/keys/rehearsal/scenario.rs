//! Scenario files: what the scripted model says and does, turn by turn. The format is described in
//! scenarios/README.md; unknown keys are errors.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;

/// The version of the format that this program reads.
const VERSION: u32 = 1;
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
const MOST_TURNS: usize = 2000;

const EMBEDDED: [(&str, &str); 3] = [
    ("attack", include_str!("../../../scenarios/attack.yaml")),
    ("hello", include_str!("../../../scenarios/hello.yaml")),
    ("slow", include_str!("../../../scenarios/slow.yaml")),
];

static PARSED: LazyLock<BTreeMap<&'static str, Scenario>> = LazyLock::new(|| {
    let parse = |(name, text): (&'static str, &str)| match Scenario::parse(text) {
        Ok(scenario) => Some((name, scenario)),
        Err(error) => {
            tracing::error!(name, %error, "a built-in scenario cannot be read");
            None
        }
    };
    EMBEDDED.into_iter().filter_map(parse).collect()
});

/// The names of the scenarios that can be asked for.
pub fn scenario_names() -> impl Iterator<Item = &'static str> {
    EMBEDDED.into_iter().map(|(name, _)| name)
}

/// The scenario of this name.
pub(super) fn find(name: &str) -> Option<&'static Scenario> {
    PARSED.get(name)
}

/// A scenario file does not say what one should.
#[derive(Debug, thiserror::Error)]
pub(super) enum ParseScenarioError {
    #[error("it is not a scenario: {0}")]
    Yaml(String),
    #[error("it is of version {0}, and this program reads version {VERSION}")]
    Version(u32),
    #[error("turn {0} neither says nor does anything")]
    EmptyTurn(usize),
    #[error("turn {0} pauses for more than {seconds} s", seconds = LONGEST_PAUSE.as_secs())]
    Pause(usize),
    #[error("it has no turns, or more than {MOST_TURNS}")]
    Turns,
    #[error("its last turn uses a tool, so that it never ends")]
    Endless,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    #[serde(rename = "about")]
    _about: String,
    turns: Vec<FileTurn>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTurn {
    text: Option<String>,
    tool: Option<Tool>,
    #[serde(default)]
    pause_ms: u64,
    #[serde(default = "once")]
    repeat: usize,
}

fn once() -> usize {
    1
}

/// One use of a tool.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) input: serde_json::Map<String, serde_json::Value>,
}

/// What the model does when it is its turn.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Turn {
    pub(super) text: Option<String>,
    pub(super) tool: Option<Tool>,
    pub(super) pause: Duration,
}

/// A scenario, its repeated turns written out.
#[derive(Debug, PartialEq)]
pub(super) struct Scenario(Vec<Turn>);

impl Scenario {
    pub(super) fn parse(text: &str) -> Result<Self, ParseScenarioError> {
        let file: File =
            serde_saphyr::from_str(text).map_err(|error| ParseScenarioError::Yaml(error.to_string()))?;
        if file.version != VERSION {
            return Err(ParseScenarioError::Version(file.version));
        }
        let mut turns = Vec::new();
        for (number, turn) in (1..).zip(file.turns) {
            if turn.text.is_none() && turn.tool.is_none() {
                return Err(ParseScenarioError::EmptyTurn(number));
            }
            let pause = Duration::from_millis(turn.pause_ms);
            if pause > LONGEST_PAUSE {
                return Err(ParseScenarioError::Pause(number));
            }
            if turn.repeat == 0 || turn.repeat.saturating_add(turns.len()) > MOST_TURNS {
                return Err(ParseScenarioError::Turns);
            }
            let turn_once = Turn { text: turn.text, tool: turn.tool, pause };
            turns.extend(std::iter::repeat_n(turn_once, turn.repeat));
        }
        match turns.last() {
            None => Err(ParseScenarioError::Turns),
            Some(last) if last.tool.is_some() => Err(ParseScenarioError::Endless),
            Some(_) => Ok(Self(turns)),
        }
    }
    /// The turn after `spoken` turns. After the last one the model has nothing more to do, and says so.
    pub(super) fn turn(&self, spoken: usize) -> Turn {
        self.0
            .get(spoken)
            .cloned()
            .unwrap_or_else(|| says("The rehearsal is over: there is nothing left to do."))
    }
}

/// What is said to a request beside the conversation (a title, a summary).
pub(super) fn aside() -> Turn {
    says("Rehearsal")
}

fn says(text: &str) -> Turn {
    Turn { text: Some(text.to_owned()), tool: None, pause: Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_scenario_reads() {
        for (name, text) in EMBEDDED {
            Scenario::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(find(name).is_some(), "{name}");
        }
        assert!(find("../hello").is_none());
    }

    #[test]
    fn a_scenario_is_played_turn_by_turn_and_ends() {
        let text = "version: 1\nabout: a test\nturns:\n  - text: one\n    tool: {name: Bash, input: {command: 'true'}}\n    repeat: 2\n  - text: end\n";
        let scenario = Scenario::parse(text).unwrap();
        assert_eq!(scenario.turn(0), scenario.turn(1));
        assert_eq!(scenario.turn(0).tool.unwrap().input["command"], "true");
        assert_eq!(scenario.turn(2).text.as_deref(), Some("end"));
        assert!(scenario.turn(3).tool.is_none() && scenario.turn(3).text.is_some());
    }

    #[test]
    fn what_no_scenario_may_say_is_refused() {
        let with = |turns: &str| Scenario::parse(&format!("version: 1\nabout: a test\nturns:\n{turns}"));
        assert!(with("  - text: end\n").is_ok());
        assert!(matches!(with("  - text: end\n    txet: typo\n"), Err(ParseScenarioError::Yaml(_))));
        assert!(matches!(with("  - pause_ms: 1\n"), Err(ParseScenarioError::EmptyTurn(1))));
        assert!(matches!(with("  - text: end\n    pause_ms: 60001\n"), Err(ParseScenarioError::Pause(1))));
        assert!(matches!(with("  - text: end\n    repeat: 0\n"), Err(ParseScenarioError::Turns)));
        assert!(matches!(with("  - text: end\n    repeat: 2001\n"), Err(ParseScenarioError::Turns)));
        assert!(matches!(with("  - tool: {name: Bash, input: {}}\n"), Err(ParseScenarioError::Endless)));
        let newer = Scenario::parse("version: 2\nabout: a test\nturns:\n  - text: end\n");
        assert!(matches!(newer, Err(ParseScenarioError::Version(2))));
    }
}
