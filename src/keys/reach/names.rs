//! Variables that carry a model or cloud key by their name, and what they carry. Names alone: no value is seen here.

/// Each name with what it carries. One that ends in `_` and such a name (`VITE_OPENAI_API_KEY`) counts as well.
///
/// The names are those that the vendors' and programs' own documents have: Claude Code and its Bedrock, Vertex and
/// Foundry pages, codex, geminicli.com, aider.chat/docs/config/api-keys, cursor.com/docs/cli, the AWS CLI's
/// `cli-configure-envvars`, `google.auth.environment_vars`, Azure Identity, huggingface_hub's environment variables.
const NAMES: &[(&str, &str)] = &[
    ("AI_GATEWAY_API_KEY", MODEL),
    ("ANTHROPIC_API_KEY", MODEL),
    ("ANTHROPIC_AUTH_TOKEN", MODEL),
    ("ANTHROPIC_AWS_API_KEY", MODEL),
    ("ANTHROPIC_CUSTOM_HEADERS", HEADERS),
    ("ANTHROPIC_FOUNDRY_API_KEY", MODEL),
    ("AWS_ACCESS_KEY_ID", CLOUD),
    ("AWS_BEARER_TOKEN_BEDROCK", MODEL),
    ("AWS_CONTAINER_AUTHORIZATION_TOKEN", CLOUD),
    ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", CLOUD),
    ("AWS_CONTAINER_CREDENTIALS_FULL_URI", FETCHES),
    ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", FETCHES),
    ("AWS_SECRET_ACCESS_KEY", CLOUD),
    ("AWS_SECURITY_TOKEN", CLOUD),
    ("AWS_SESSION_TOKEN", CLOUD),
    ("AWS_WEB_IDENTITY_TOKEN_FILE", FETCHES),
    ("AZURE_API_KEY", MODEL),
    ("AZURE_CLIENT_CERTIFICATE_PATH", CLOUD),
    ("AZURE_CLIENT_SECRET", CLOUD),
    ("AZURE_FEDERATED_TOKEN_FILE", FETCHES),
    ("AZURE_OPENAI_API_KEY", MODEL),
    ("AZURE_OPENAI_AD_TOKEN", MODEL),
    ("AZURE_PASSWORD", CLOUD),
    ("CEREBRAS_API_KEY", MODEL),
    ("CLAUDE_API_KEY", MODEL),
    ("CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR", FETCHES),
    ("CLAUDE_CODE_OAUTH_REFRESH_TOKEN", MODEL),
    ("CLAUDE_CODE_OAUTH_TOKEN", MODEL),
    ("CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR", FETCHES),
    ("CLOUDSDK_AUTH_ACCESS_TOKEN", CLOUD),
    ("CLOUDSDK_AUTH_ACCESS_TOKEN_FILE", CLOUD),
    ("CODEX_API_KEY", MODEL),
    ("COHERE_API_KEY", MODEL),
    ("COPILOT_GITHUB_TOKEN", MODEL),
    ("CURSOR_API_KEY", MODEL),
    ("DASHSCOPE_API_KEY", MODEL),
    ("DEEPSEEK_API_KEY", MODEL),
    ("FIREWORKS_API_KEY", MODEL),
    ("GEMINI_API_KEY", MODEL),
    ("GOOGLE_API_KEY", MODEL),
    ("GOOGLE_CLOUD_ACCESS_TOKEN", CLOUD),
    ("GOOGLE_CREDENTIALS", CLOUD),
    ("GOOGLE_GENERATIVE_AI_API_KEY", MODEL),
    ("GOOGLE_OAUTH_ACCESS_TOKEN", CLOUD),
    ("GROK_API_KEY", MODEL),
    ("GROQ_API_KEY", MODEL),
    ("HF_TOKEN", MODEL),
    ("HUGGINGFACEHUB_API_TOKEN", MODEL),
    ("HUGGINGFACE_API_KEY", MODEL),
    ("HUGGINGFACE_TOKEN", MODEL),
    ("HUGGING_FACE_HUB_TOKEN", MODEL),
    ("LITELLM_API_KEY", MODEL),
    ("LITELLM_MASTER_KEY", MODEL),
    ("MINIMAX_API_KEY", MODEL),
    ("MISTRAL_API_KEY", MODEL),
    ("MOONSHOT_API_KEY", MODEL),
    ("NVIDIA_API_KEY", MODEL),
    ("NVIDIA_NIM_API_KEY", MODEL),
    ("OPENAI_ADMIN_KEY", MODEL),
    ("OPENAI_API_KEY", MODEL),
    ("OPENCODE_API_KEY", MODEL),
    ("OPENROUTER_API_KEY", MODEL),
    ("PERPLEXITYAI_API_KEY", MODEL),
    ("PERPLEXITY_API_KEY", MODEL),
    ("REPLICATE_API_TOKEN", MODEL),
    ("TOGETHERAI_API_KEY", MODEL),
    ("TOGETHER_API_KEY", MODEL),
    ("VERTEX_API_KEY", MODEL),
    ("XAI_API_KEY", MODEL),
    ("ZAI_API_KEY", MODEL),
    ("ZHIPU_API_KEY", MODEL),
];

/// A model key.
pub(super) const MODEL: &str = "a model key, by its name";
/// A cloud key.
pub(super) const CLOUD: &str = "a cloud key, by its name";
const HEADERS: &str = "headers for the model's endpoint, which carry keys";
/// A way to a key.
pub(super) const FETCHES: &str = "a way to fetch a key, by its name";

/// What of a vendor's the name of a mounted secret can be.
const VENDORS: &[&str] = &[
    "anthropic",
    "aws",
    "azure",
    "bedrock",
    "claude",
    "codex",
    "copilot",
    "cursor",
    "deepseek",
    "gcp",
    "gemini",
    "google",
    "groq",
    "huggingface",
    "mistral",
    "openai",
    "openrouter",
    "vertex",
    "xai",
];
const CREDENTIALS: &[&str] = &["credential", "key", "login", "password", "secret", "token"];

/// What a variable of this name carries, in words.
pub(super) fn carried_by(name: &str) -> Option<&'static str> {
    let name = name.as_bytes();
    NAMES.iter().find_map(|(known, what)| {
        let start = name.len().checked_sub(known.len())?;
        let (before, rest) = (name.get(..start)?, name.get(start..)?);
        let whole = before.last().is_none_or(|byte| *byte == b'_');
        (whole && rest.eq_ignore_ascii_case(known.as_bytes())).then_some(*what)
    })
}

/// The variable whose value is the path of a file with a key (`OPENAI_API_KEY_FILE`).
pub(super) fn names_a_file(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    upper.strip_suffix("_FILE").is_some_and(|rest| carried_by(rest).is_some())
}

/// What a mounted secret of this name is, in words: the name of a variable, in whatever spelling, or a vendor's beside
/// a word for a credential.
pub(super) fn secret_by_name(name: &str) -> Option<&'static str> {
    let plain: String = name
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' })
        .collect();
    let stem = ["_txt", "_json", "_key", ""].iter().find_map(|end| carried_by(plain.strip_suffix(end)?));
    if stem.is_some() {
        return stem;
    }
    if plain == "vault_key" {
        return Some("the key of the vault, by its name");
    }
    let has = |words: &[&str]| words.iter().any(|word| plain.contains(word));
    (has(VENDORS) && has(CREDENTIALS)).then_some("a model or cloud key, by its name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_whole_in_any_case_and_behind_a_prefix() {
        for name in [
            "ANTHROPIC_API_KEY",
            "openai_api_key",
            "VITE_OPENAI_API_KEY",
            "AIDER_ANTHROPIC_API_KEY",
            "HF_TOKEN",
        ] {
            assert!(carried_by(name).is_some(), "{name}");
        }
        for name in [
            "PATH",
            "API_KEY",
            "ANTHROPIC_BASE_URL",
            "XOPENAI_API_KEY",
            "OPENAI_API_KEY_FILE",
            "AWS_REGION",
            "É_TOKEN",
            "",
        ] {
            assert_eq!(carried_by(name), None, "{name}");
        }
        assert!(
            names_a_file("openai_api_key_file") && !names_a_file("OPENAI_API_KEY") && !names_a_file("_FILE")
        );
    }

    #[test]
    fn secrets_are_known_by_the_name_of_a_variable_or_of_a_vendor() {
        for name in [
            "anthropic_api_key",
            "openai-api-key",
            "ANTHROPIC_API_KEY.txt",
            "gcp-credentials.json",
            "claude.token",
            "vault_key",
        ] {
            assert!(secret_by_name(name).is_some(), "{name}");
        }
        for name in ["core_token", "control", "database_password", "tls.key", "googly"] {
            assert_eq!(secret_by_name(name), None, "{name}");
        }
    }

    #[test]
    fn the_list_is_sorted_and_holds_nothing_twice() {
        let lower: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        let mut unique = lower.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), lower.len());
    }
}
