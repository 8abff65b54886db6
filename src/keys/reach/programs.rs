//! Where agent programs, clouds and shells keep credentials below a home: a table. Where each row is from stands
//! beside it.

/// What a path below a home begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    Home,
    /// `XDG_CONFIG_HOME`, or `.config`.
    Config,
    /// `XDG_DATA_HOME`, or `.local/share`.
    Data,
    /// `XDG_CACHE_HOME`, or `.cache`.
    Cache,
}

/// What is looked at in a file.
#[derive(Debug, Clone, Copy)]
pub(super) enum How {
    /// Whatever stands in it is a sign-in.
    SignIn,
    /// Keys by their names and shapes, and these names.
    Text(&'static [&'static str]),
    /// The same in a file that is there for nothing but credentials.
    Credentials(&'static [&'static str]),
}

/// The folder of one program with its files. A part of a file's path that is `*` means every entry.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) base: Base,
    pub(super) folder: &'static str,
    /// The variable that names another folder in its place.
    pub(super) moved_by: Option<&'static str>,
    pub(super) files: &'static [(&'static str, How)],
}

use How::{Credentials, SignIn, Text};

/// Claude Code's settings: helpers that print a key or refresh a cloud sign-in.
/// code.claude.com/docs/en/settings and /amazon-bedrock.
pub(super) const CLAUDE_SETTINGS: How = Text(&[
    "apiKeyHelper",
    "awsAuthRefresh",
    "awsCredentialExport",
    "gcpAuthRefresh",
    "proxyAuthHelper",
    "primaryApiKey",
]);
const CLAUDE_STATE: How = Text(&["oauthAccount", "primaryApiKey"]);
const PLAIN: How = Text(&[]);
const API_KEY: How = Text(&["apiKey", "api_key", "api-key"]);
const TOKENS: How =
    Credentials(&["accessToken", "access_token", "refreshToken", "refresh_token", "apiKey", "api_key"]);

pub(super) const PROGRAMS: &[Program] = &[
    // Measured with Claude Code 2.1.197: CLAUDE_CONFIG_DIR moves the folder and takes `.claude.json` into it.
    Program {
        name: "Claude Code",
        base: Base::Home,
        folder: ".claude",
        moved_by: Some("CLAUDE_CONFIG_DIR"),
        files: &[
            (".credentials.json", SignIn),
            (".claude.json", CLAUDE_STATE),
            ("config.json", CLAUDE_SETTINGS),
            ("settings.json", CLAUDE_SETTINGS),
            ("settings.local.json", CLAUDE_SETTINGS),
        ],
    },
    Program {
        name: "Claude Code",
        base: Base::Home,
        folder: "",
        moved_by: None,
        files: &[(".claude.json", CLAUDE_STATE)],
    },
    // codex-rs: auth.json and config.toml below CODEX_HOME; `experimental_bearer_token` of a model provider; .env.
    Program {
        name: "Codex",
        base: Base::Home,
        folder: ".codex",
        moved_by: Some("CODEX_HOME"),
        files: &[
            ("auth.json", SignIn),
            ("config.toml", Text(&["experimental_bearer_token"])),
            (".env", PLAIN),
        ],
    },
    // geminicli.com/docs/reference/configuration and /get-started/authentication.
    Program {
        name: "Gemini CLI",
        base: Base::Home,
        folder: ".gemini",
        moved_by: None,
        files: &[("oauth_creds.json", SignIn), (".env", PLAIN), ("settings.json", API_KEY)],
    },
    // opencode.ai/docs/providers and /docs/config.
    Program {
        name: "OpenCode",
        base: Base::Data,
        folder: "opencode",
        moved_by: None,
        files: &[("auth.json", SignIn)],
    },
    Program {
        name: "OpenCode",
        base: Base::Config,
        folder: "opencode",
        moved_by: Some("OPENCODE_CONFIG_DIR"),
        files: &[("opencode.json", API_KEY), ("opencode.jsonc", API_KEY), ("config.json", API_KEY)],
    },
    // aider.chat/docs/config/api-keys and /dotenv; OAuth of OpenRouter in .aider/oauth-keys.env.
    Program {
        name: "aider",
        base: Base::Home,
        folder: "",
        moved_by: None,
        files: &[
            (".aider.conf.yml", Text(&["openai-api-key", "anthropic-api-key", "api-key"])),
            (".aider/oauth-keys.env", PLAIN),
            (".aider/.env", PLAIN),
        ],
    },
    // goose: documentation/docs/guides/config-files.md.
    Program {
        name: "goose",
        base: Base::Config,
        folder: "goose",
        moved_by: None,
        files: &[("secrets.yaml", SignIn), ("config.yaml", API_KEY)],
    },
    // cursor.com/docs/cli/reference/authentication says "stored locally"; the files are those that the `quotas` crate
    // reads.
    Program {
        name: "Cursor",
        base: Base::Config,
        folder: "cursor",
        moved_by: None,
        files: &[("auth.json", SignIn), ("cli-config.json", TOKENS)],
    },
    // docs.github.com, "GitHub Copilot CLI configuration directory"; hosts.json and apps.json are those of its editors.
    Program {
        name: "GitHub Copilot",
        base: Base::Home,
        folder: ".copilot",
        moved_by: Some("COPILOT_HOME"),
        files: &[("config.json", Text(&["copilot_tokens", "copilotTokens", "accessToken", "token"]))],
    },
    Program {
        name: "GitHub Copilot",
        base: Base::Config,
        folder: "github-copilot",
        moved_by: None,
        files: &[("hosts.json", SignIn), ("apps.json", SignIn)],
    },
    // docs.continue.dev, config.yaml and its secrets in `.env`.
    Program {
        name: "Continue",
        base: Base::Home,
        folder: ".continue",
        moved_by: Some("CONTINUE_GLOBAL_DIR"),
        files: &[(".env", PLAIN), ("config.yaml", API_KEY), ("config.json", API_KEY), ("config.ts", API_KEY)],
    },
    // huggingface.co/docs/huggingface_hub/package_reference/environment_variables.
    Program {
        name: "Hugging Face",
        base: Base::Cache,
        folder: "huggingface",
        moved_by: Some("HF_HOME"),
        files: &[("token", SignIn), ("stored_tokens", SignIn)],
    },
    // docs.aws.amazon.com/cli/latest/userguide: cli-configure-files, cli-configure-sso, cli-configure-sourcing-external.
    Program {
        name: "AWS",
        base: Base::Home,
        folder: ".aws",
        moved_by: None,
        files: &[
            ("credentials", Credentials(AWS)),
            ("config", Text(AWS)),
            ("sso/cache/*", TOKENS),
            ("login/cache/*", TOKENS),
            ("cli/cache/*", Credentials(&["SecretAccessKey"])),
        ],
    },
    // google.auth._cloud_sdk: `application_default_credentials.json` below CLOUDSDK_CONFIG; gcloud's own beside it.
    Program {
        name: "Google Cloud",
        base: Base::Config,
        folder: "gcloud",
        moved_by: Some("CLOUDSDK_CONFIG"),
        files: &[
            ("application_default_credentials.json", SignIn),
            ("credentials.db", SignIn),
            ("access_tokens.db", SignIn),
            ("legacy_credentials/*/adc.json", SignIn),
        ],
    },
    // learn.microsoft.com/cli/azure/msal-based-azure-cli: plain files on Linux and macOS.
    Program {
        name: "Azure",
        base: Base::Home,
        folder: ".azure",
        moved_by: Some("AZURE_CONFIG_DIR"),
        files: &[
            ("msal_token_cache.json", Credentials(AZURE)),
            ("msal_token_cache.bin", SignIn),
            ("service_principal_entries.json", Credentials(AZURE)),
            ("service_principal_entries.bin", SignIn),
            ("accessTokens.json", Credentials(AZURE)),
        ],
    },
    Program {
        name: "Azure",
        base: Base::Home,
        folder: ".IdentityService",
        moved_by: None,
        files: &[("msal.cache", SignIn)],
    },
    // What a shell puts into the environment of whatever it starts, and the `.env` that aider and Gemini CLI read.
    Program {
        name: "the shell",
        base: Base::Home,
        folder: "",
        moved_by: None,
        files: &[
            (".env", PLAIN),
            (".bashrc", PLAIN),
            (".bash_profile", PLAIN),
            (".bash_login", PLAIN),
            (".profile", PLAIN),
            (".zshrc", PLAIN),
            (".zshenv", PLAIN),
            (".zprofile", PLAIN),
            (".config/fish/config.fish", PLAIN),
            (".config/environment.d/*", PLAIN),
        ],
    },
];

pub(super) const AWS: &[&str] = &[
    "aws_access_key_id",
    "aws_secret_access_key",
    "aws_session_token",
    "credential_process",
    "web_identity_token_file",
];
const AZURE: &[&str] =
    &["secret", "client_secret", "accessToken", "refreshToken", "refresh_token", "certificate"];

/// Files of the system that agents may read.
pub(super) const SYSTEM: &[(&str, How)] = &[
    ("/etc/environment", PLAIN),
    ("/etc/profile.d/*", PLAIN),
    ("/etc/claude-code/managed-settings.json", CLAUDE_SETTINGS),
    ("/etc/codex/config.toml", Text(&["experimental_bearer_token"])),
    ("/etc/gemini-cli/settings.json", API_KEY),
    ("/etc/gemini-cli/system-defaults.json", API_KEY),
];

/// Variables whose value is the path of one file with credentials.
pub(super) const FILES: &[(&str, &str, How)] = &[
    ("AWS_CONFIG_FILE", "AWS", Text(AWS)),
    ("AWS_SHARED_CREDENTIALS_FILE", "AWS", Credentials(AWS)),
    ("GOOGLE_APPLICATION_CREDENTIALS", "Google Cloud", SignIn),
    ("CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE", "Google Cloud", SignIn),
    ("HF_TOKEN_PATH", "Hugging Face", SignIn),
    ("OPENCODE_CONFIG", "OpenCode", API_KEY),
];

/// Names in a file of which only is known that it was mounted or put into a folder of secrets.
pub(super) const ANY: How = Text(&[
    "aws_secret_access_key",
    "SecretAccessKey",
    "private_key",
    "client_secret",
    "refresh_token",
    "refreshToken",
    "access_token",
    "accessToken",
    "apiKey",
    "api_key",
    "credential_process",
    "claudeAiOauth",
]);

/// The model catalogue and what stands beside it.
pub(super) const CATALOGUE: How =
    Text(&["apiKey", "api_key", "api-key", "auth_token", "authToken", "bearer_token"]);
