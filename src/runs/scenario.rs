//! A rehearsal by a scenario of the person's own: its text comes with the run and stays in the run's folder, so that a
//! run which is taken up again plays the same one.

use std::path::PathBuf;

use super::{CreateRunError, Inner};
use crate::ids::RunId;
use crate::keys::slot::Choice;
use crate::keys::wire::Scenario;

/// The largest text of a scenario, in bytes.
pub const MAX_SCENARIO: usize = 64 * 1024;

/// A text belongs to a model that names a file, and only to that; a name must be a scenario that there is.
pub(super) fn check(choice: &Choice, text: Option<&str>) -> Result<(), CreateRunError> {
    let refused = |why: &str| Err(CreateRunError::Scenario(why.to_owned()));
    match (choice.scenario_file(), text) {
        (Some(_), Some(text)) if text.len() > MAX_SCENARIO => {
            refused(&format!("it is larger than {} KiB", MAX_SCENARIO / 1024))
        }
        (Some(_), Some(text)) => crate::keys::check_scenario(text).map_err(CreateRunError::Scenario),
        (Some(name), None) => refused(&format!("the text of `{name}` did not come with it")),
        (None, Some(_)) => refused("its text goes with a model such as `rehearsal/./name.yaml` alone"),
        (None, None) => match choice.scenario.as_deref() {
            Some(name) if !crate::keys::scenario_names().any(|known| known == name) => {
                let known: Vec<_> = crate::keys::scenario_names().collect();
                refused(&format!("there is no scenario `{name}`; there are {}", known.join(", ")))
            }
            _ => Ok(()),
        },
    }
}

impl Inner {
    pub(super) fn scenario_file(&self, run: &RunId) -> PathBuf {
        self.settings.home.run(run).join("scenario.yaml")
    }

    /// What the scripted model is to play; nothing for another model.
    pub(super) async fn scenario(&self, run: &RunId, choice: &Choice) -> std::io::Result<Option<Scenario>> {
        if choice.scenario_file().is_some() {
            let text = tokio::fs::read_to_string(self.scenario_file(run)).await?;
            return Ok(Some(Scenario::Text(text)));
        }
        Ok(choice.scenario.clone().map(Scenario::Named))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_goes_with_a_model_that_names_a_file_and_a_name_must_be_there() {
        let check = |model: Option<&str>, text: Option<&str>| check(&Choice::for_model(model).unwrap(), text);
        let text = include_str!("../../scenarios/hello.yaml");
        for model in ["rehearsal/./x.yaml", "rehearsal/../x.yaml", "rehearsal//home/x.yaml"] {
            check(Some(model), Some(text)).unwrap();
            assert!(check(Some(model), None).unwrap_err().to_string().contains("did not come"));
            let broken = check(Some(model), Some("nonsense: [")).unwrap_err().to_string();
            assert!(broken.starts_with("the scenario cannot be played: "), "{broken}");
            let long = " ".repeat(MAX_SCENARIO + 1);
            assert!(check(Some(model), Some(&long)).unwrap_err().to_string().contains("64 KiB"));
        }
        for model in [None, Some("opus"), Some("rehearsal"), Some("rehearsal/slow")] {
            check(model, None).unwrap();
            assert!(check(model, Some(text)).is_err());
        }
        let unknown = check(Some("rehearsal/none"), None).unwrap_err().to_string();
        assert!(unknown.contains("`none`") && unknown.contains("hello"), "{unknown}");
    }
}
