//! A rehearsal by a file of the person's own: the file is read here, because core may not see it.

use std::path::Path;

use crate::failure::{Exit, Explain};
use crate::keys::slot::Choice;
use crate::runs::scenario::MAX_SCENARIO;

/// The scenario cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file.
    #[error("the scenario `{path}` cannot be read")]
    Read {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is no text.
    #[error("the scenario `{0}` is not UTF-8 text")]
    Text(String),
    /// It is over the limit.
    #[error("the scenario `{0}` is larger than {limit} KiB", limit = MAX_SCENARIO / 1024)]
    Large(String),
}

impl Explain for ScenarioError {
    fn code(&self) -> &'static str {
        "scenario"
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Read { .. } => Some("a built-in one has no path: `--model rehearsal/hello`".into()),
            Self::Text(_) | Self::Large(_) => None,
        }
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

/// The model as it is sent, and the text that it plays. A path becomes the file's name: what leads to it is nobody
/// else's business, and a model's name has no spaces.
///
/// # Errors
/// When the model names a file that cannot be read, is no text, or is too large.
pub async fn of_model(model: Option<String>) -> Result<(Option<String>, Option<String>), ScenarioError> {
    // What is no model's name is core's to refuse.
    let choice = Choice::for_model(model.as_deref()).ok();
    let Some(path) = choice.and_then(|choice| choice.scenario_file().map(str::to_owned)) else {
        return Ok((model, None));
    };
    let read = path.clone();
    let reading = tokio::task::spawn_blocking(move || {
        use std::io::Read as _;
        let mut bytes = Vec::new();
        let most = u64::try_from(MAX_SCENARIO + 1).unwrap_or(u64::MAX);
        std::fs::File::open(read)?.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    let bytes = reading
        .await
        .unwrap_or_else(|_| Err(std::io::Error::other("the program is ending")))
        .map_err(|source| ScenarioError::Read { path: path.clone(), source })?;
    if bytes.len() > MAX_SCENARIO {
        return Err(ScenarioError::Large(path));
    }
    let text = String::from_utf8(bytes).map_err(|_| ScenarioError::Text(path.clone()))?;
    Ok((Some(format!("rehearsal/./{}", sent_name(&path))), Some(text)))
}

fn sent_name(path: &str) -> String {
    let name = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or("scenario");
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    name.chars().take(100).map(|c| if fits(c) { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_path_is_read_and_becomes_a_name_and_another_model_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("my scenario ü.yaml");
        std::fs::write(&file, "say: hello\n").unwrap();
        let model = format!("rehearsal/{}", file.display());
        let (sent, text) = of_model(Some(model)).await.unwrap();
        assert_eq!(sent.as_deref(), Some("rehearsal/./my-scenario--.yaml"));
        assert_eq!(text.as_deref(), Some("say: hello\n"));
        assert!(crate::agents::claude::is_name(sent.as_deref().unwrap()));
        for model in ["opus", "rehearsal", "rehearsal/slow"] {
            assert_eq!(of_model(Some(model.into())).await.unwrap(), (Some(model.into()), None));
        }
        assert_eq!(of_model(None).await.unwrap(), (None, None));
    }

    #[tokio::test]
    async fn what_cannot_be_played_is_said_before_core_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        let refused = async |name: &str, bytes: &[u8]| {
            let file = folder.path().join(name);
            std::fs::write(&file, bytes).unwrap();
            of_model(Some(format!("rehearsal/{}", file.display()))).await.unwrap_err().to_string()
        };
        assert!(refused("a", &[0xff, 0xfe]).await.contains("is not UTF-8"));
        assert!(refused("b", &vec![b' '; MAX_SCENARIO + 1]).await.contains("larger than 64 KiB"));
        let gone = of_model(Some("rehearsal/./none/of/these.yaml".into())).await.unwrap_err();
        assert!(
            gone.to_string().contains("`./none/of/these.yaml` cannot be read") && gone.exit() == Exit::Usage
        );
    }
}
