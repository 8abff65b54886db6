//! Promises about the model keys: they and what opens them are with the key service alone, and in no file.

use super::super::model::{Mount, Project, Service};
use super::{Asker, BrokenPromise, CORE, KEYS, Promise, shown};

/// Variables that agent programs take a model key from.
const MODEL_KEYS: [&str; 14] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AZURE_OPENAI_API_KEY",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "DEEPSEEK_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "TOGETHER_API_KEY",
    "XAI_API_KEY",
];

/// Beginnings of model keys, whatever the variable is called.
const KEY_BEGINNINGS: [&str; 3] = ["sk-ant-", "sk-or-v1-", "sk-proj-"];

/// Secrets of the written files, and who may have each.
const SECRETS: [(&str, &[&str]); 3] =
    [("vault_key", &[KEYS]), ("control", &[CORE, KEYS]), ("core_token", &[CORE])];

/// The volume of the key service.
const VAULT: &str = "vault";

pub(super) fn check(asker: &Asker<'_>, service: &Service, project: &Project) -> Result<(), BrokenPromise> {
    let name = asker.name.as_str();
    for (key, value) in &service.environment {
        let named = MODEL_KEYS.contains(&key.as_str());
        let looks = value.as_deref().is_some_and(|value| KEY_BEGINNINGS.iter().any(|b| value.starts_with(b)));
        if named || looks {
            let what = format!("has a model key in its variable `{}`", shown(key));
            return Err(asker.broken(Promise::NoModelKey, "environment", what));
        }
    }
    for grant in &service.secrets {
        let file = project.secrets.get(&grant.source).map(|secret| secret.file.as_str());
        for (secret, holders) in SECRETS {
            let own_file = project.secrets.get(secret).map(|secret| secret.file.as_str());
            let same = grant.source == secret || (file.is_some() && file == own_file);
            if same && !holders.contains(&name) {
                let what = format!("asks for the secret `{secret}`");
                return Err(asker.broken(Promise::KeysApart, "secrets", what));
            }
        }
    }
    let vault = project.volumes.get(VAULT).map(|volume| volume.name.as_str());
    for mount in &service.mounts {
        let Mount::Volume { source: Some(source), .. } = mount else { continue };
        let same = source == VAULT || project.volumes.get(source).map(|v| v.name.as_str()) == vault;
        if same && name != KEYS {
            return Err(asker.broken(
                Promise::KeysApart,
                "volumes",
                "asks for the volume of the key service",
            ));
        }
    }
    Ok(())
}
