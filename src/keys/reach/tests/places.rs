//! Each place, and one beside it that is none.

use super::super::around::{homes_in, mounts_in};
use super::*;

/// The places that are found, below the home and with the line.
fn found(home: &Path, around: &Surroundings) -> Vec<String> {
    let findings = look(around).findings;
    let places = findings.iter().map(|finding| match &finding.place {
        Place::Variable(name) => format!("${name}"),
        Place::File { path, line } => {
            let path = path.strip_prefix(home).unwrap_or(path).display().to_string();
            line.map_or(path.clone(), |line| format!("{path}:{line}"))
        }
    });
    places.collect()
}

#[test]
fn each_place_in_a_home_is_found() {
    for (path, text, line) in [
        (".claude/.credentials.json", "{}", ""),
        (".claude.json", "{\"oauthAccount\":{\"emailAddress\":\"a@b\"}}", ":1"),
        (".claude.json", "{\n\"primaryApiKey\":\n\"abc\"}", ":2"),
        (".claude.json", "{\"mcpServers\":{\"x\":{\"env\":{\"OPENAI_API_KEY\":\"abc\"}}}}", ":1"),
        (".claude/settings.json", "{\"env\": {\n \"ANTHROPIC_AUTH_TOKEN\": \"abc\"}}", ":2"),
        (".claude/settings.json", "{\"apiKeyHelper\": \"/bin/key.sh\"}", ":1"),
        (".claude/settings.local.json", "{\"awsAuthRefresh\": \"aws sso login\"}", ":1"),
        (".claude/settings.json", "{\"awsCredentialExport\": \"x\"}", ":1"),
        (".claude/settings.json", "{\"\\u0061piKeyHelper\": \"x\"}", ""),
        (".codex/auth.json", "{\"OPENAI_API_KEY\":null}", ""),
        (".codex/config.toml", "[model_providers.x]\nexperimental_bearer_token = \"abc\"\n", ":2"),
        (".codex/.env", "OPENAI_API_KEY=abc", ":1"),
        (".gemini/oauth_creds.json", "{}", ""),
        (".gemini/.env", "\n\nexport GEMINI_API_KEY='abc'\n", ":3"),
        (".gemini/settings.json", "{\"security\":{\"auth\":{\"apiKey\":\"abc\"}}}", ":1"),
        (".local/share/opencode/auth.json", "{}", ""),
        (".config/opencode/opencode.json", "{\"provider\":{\"x\":{\"options\":{\"apiKey\":\"abc\"}}}}", ":1"),
        (".config/opencode/opencode.jsonc", "// mine\n{\"apiKey\": \"abc\"}", ":2"),
        (".aider.conf.yml", "model: x\nanthropic-api-key: abc\n", ":2"),
        (".aider.conf.yml", "api-key:\n  - gemini=abc\n", ":1"),
        (".aider/oauth-keys.env", "OPENROUTER_API_KEY=\"abc\"", ":1"),
        (".config/goose/secrets.yaml", "OPENAI_API_KEY: abc", ""),
        (".config/goose/config.yaml", "ANTHROPIC_API_KEY: abc", ":1"),
        (".config/cursor/auth.json", "{\"accessToken\":\"a\"}", ""),
        (".copilot/config.json", "{\"copilot_tokens\":{\"x\":\"abc\"}}", ":1"),
        (".config/github-copilot/apps.json", "{\"github.com\":{}}", ""),
        (".continue/config.yaml", "models:\n  - name: x\n    apiKey: abc\n", ":3"),
        (".continue/.env", "MY_KEY=AKIAQ3EGRRTZ5L7M2WPX", ":1"),
        (".cache/huggingface/token", "abc", ""),
        (".aws/credentials", "[default]\naws_access_key_id = abc\n", ":2"),
        (".aws/config", "[profile x]\ncredential_process = /bin/x\n", ":2"),
        (".aws/sso/cache/0123.json", "{\"accessToken\": \"abc\"}", ":1"),
        (".aws/cli/cache/0123.json", "{\"Credentials\": {\"SecretAccessKey\": \"abc\"}}", ":1"),
        (".config/gcloud/application_default_credentials.json", "{}", ""),
        (".config/gcloud/credentials.db", "SQLite format 3\0", ""),
        (".config/gcloud/legacy_credentials/a@b/adc.json", "{}", ""),
        (".azure/msal_token_cache.json", "{\"AccessToken\":{\"x\":{\"secret\":\"abc\"}}}", ":1"),
        (".azure/service_principal_entries.json", "[{\"client_secret\":\"abc\"}]", ":1"),
        (".IdentityService/msal.cache", "x", ""),
        (".env", "DEEPSEEK_API_KEY = abc # mine", ":1"),
        (".bashrc", "alias x='OPENAI_API_KEY=abc x'", ":1"),
        (".profile", "export  AWS_SECRET_ACCESS_KEY=\"abc\"", ":1"),
        (".config/fish/config.fish", "set -gx XAI_API_KEY abc", ":1"),
    ] {
        let (home, around) = home_of(&[(path, text)]);
        assert_eq!(found(home.path(), &around), [format!("{path}{line}")], "{path}: {text}");
    }
}

#[test]
fn folders_that_variables_name_are_looked_at_too() {
    for (variable, path) in [
        ("CLAUDE_CONFIG_DIR", ".credentials.json"),
        ("CODEX_HOME", "auth.json"),
        ("XDG_DATA_HOME", "opencode/auth.json"),
        ("XDG_CONFIG_HOME", "gcloud/application_default_credentials.json"),
        ("XDG_CACHE_HOME", "huggingface/token"),
        ("CLOUDSDK_CONFIG", "credentials.db"),
        ("AZURE_CONFIG_DIR", "msal_token_cache.bin"),
        ("HF_HOME", "token"),
    ] {
        let (_home, mut around) = home_of(&[]);
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), path, "x");
        around.environment = environment(&[(variable, folder.path().to_str().unwrap())]);
        assert_eq!(found(folder.path(), &around), [path], "{variable}");
        around.environment = environment(&[(variable, "")]);
        assert!(look(&around).findings.is_empty(), "{variable}");
    }
}

#[test]
fn files_that_variables_name_are_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "file", "abc");
    let path = folder.path().join("file");
    for variable in ["GOOGLE_APPLICATION_CREDENTIALS", "HF_TOKEN_PATH", "OPENAI_API_KEY_FILE"] {
        let mut around = Surroundings {
            environment: environment(&[(variable, path.to_str().unwrap())]),
            ..Surroundings::default()
        };
        assert_eq!(found(folder.path(), &around), ["file"], "{variable}");
        // Not when the variable names one of Worca's own.
        around.ours = vec![path.clone()];
        assert!(look(&around).findings.is_empty(), "{variable}");
    }
}

#[test]
fn names_of_model_and_cloud_keys_in_the_environment_refuse() {
    for name in [
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "AWS_BEARER_TOKEN_BEDROCK",
        "AWS_ACCESS_KEY_ID",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AZURE_CLIENT_SECRET",
        "CLOUDSDK_AUTH_ACCESS_TOKEN",
        "GEMINI_API_KEY",
        "HF_TOKEN",
        "NEXT_PUBLIC_OPENAI_API_KEY",
    ] {
        let around = Surroundings { environment: environment(&[(name, "x")]), ..Surroundings::default() };
        assert_eq!(look(&around).findings.len(), 1, "{name}");
        let empty = Surroundings { environment: environment(&[(name, " ")]), ..Surroundings::default() };
        assert!(look(&empty).findings.is_empty(), "{name}");
    }
}

#[test]
fn mounted_secrets_are_known_by_name_and_by_shape_and_worcas_own_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    put(at, "control", "a-control-secret-0123456789");
    put(at, "core_token", CANARY);
    put(at, "database_password", "hunter2hunter2");
    put(at, "tls.key", "-----BEGIN PRIVATE KEY-----\nMIIE\n");
    put(at, "anthropic_api_key", "whatever");
    put(at, "openai-key.txt", "whatever");
    put(at, "x", CANARY);
    put(
        at,
        "sub/deeper/y",
        "{\"type\":\"service_account\",\n\"private_key\":\"-----BEGIN PRIVATE KEY-----\"}",
    );
    put(at, "vault_key", "AAEC");
    let around = Surroundings {
        secrets: vec![at.to_owned()],
        ours: vec![at.join("control"), at.join("core_token")],
        ..Surroundings::default()
    };
    assert_eq!(
        found(at, &around),
        ["anthropic_api_key", "openai-key.txt", "sub/deeper/y:2", "vault_key", "x:1"]
    );
    tells_nothing(&refusal(&around).unwrap(), CANARY);
}

#[test]
fn other_mounts_are_looked_at_as_a_home_as_a_folder_of_credentials_and_as_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    put(at, "home/.codex/auth.json", "{}");
    put(at, "aws/credentials", "[default]\naws_secret_access_key=abc");
    put(at, "aws/notes.txt", "api_key: explained here; OPENAI_API_KEY");
    put(at, "adc.json", "{\"refresh_token\": \"abc\"}");
    put(at, "data/readme", "nothing");
    let mounts = ["home", "aws", "adc.json", "data", "gone"].map(|name| at.join(name)).to_vec();
    let around = Surroundings { mounts, ..Surroundings::default() };
    assert_eq!(found(at, &around), ["adc.json:1", "aws/credentials:2", "home/.codex/auth.json"]);
}

#[test]
fn a_mounted_project_refuses_for_a_whole_sign_in_and_not_for_its_settings() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    put(at, ".env", &format!("ANTHROPIC_API_KEY={CANARY}"));
    put(at, ".claude/settings.json", "{\"apiKeyHelper\":\"x\"}");
    put(at, "sub/.aws/credentials", "x");
    let around = Surroundings { projects: vec![at.to_owned()], ..Surroundings::default() };
    assert!(look(&around).findings.is_empty());
    put(at, ".aws/credentials", "aws_session_token = x");
    put(at, ".codex/auth.json", "x");
    assert_eq!(found(at, &around), [".aws/credentials:1", ".codex/auth.json"]);
}

#[test]
fn the_catalogue_is_looked_at_by_name_and_by_shape() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    put(at, "models/a.yaml", "models:\n  - name: a\n    api_key: abc\n");
    put(at, "models/b.json", &format!("{{\"headers\": \"{CANARY}\"}}"));
    put(at, "models/c.yaml", "api_key_env: OPENAI_API_KEY\napi_key: ${OPENAI_API_KEY}\nprice: 3\n");
    put(at, "models/vault.db", CANARY);
    put(at, "slots.yaml", "auth_token: abc");
    let catalogue = vec![at.join("models"), at.join("slots.yaml"), at.join("none")];
    let around = Surroundings { catalogue, ..Surroundings::default() };
    assert_eq!(found(at, &around), ["models/a.yaml:3", "models/b.json:1", "slots.yaml:1"]);
}

#[test]
fn the_project_itself_warns_by_file_and_line_once_and_never_by_value() {
    let (branch, checkout) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let key = format!("# mine\nANTHROPIC_API_KEY={CANARY}\nDEBUG=1\n");
    put(branch.path(), ".env", &key);
    put(checkout.path(), ".env", &key);
    put(checkout.path(), "apps/web/.env.local", "OPENAI_API_KEY=abc");
    for harmless in [".env.example", "node_modules/x/.env", "a/b/c/d/e/.env", "src/main.rs", ".git/.env"] {
        put(checkout.path(), harmless, &key);
    }
    put(checkout.path(), ".claude/settings.json", "{\"apiKeyHelper\":\"x\"}");
    let folders = [("the branch", branch.path().to_owned()), ("the checkout", checkout.path().to_owned())];
    let said = in_project(&folders).join("\n");
    tells_nothing(&said, CANARY);
    insta::assert_snapshot!(said);
    put(branch.path(), ".env", "ANTHROPIC_API_KEY=\nDEBUG=1\n");
    assert!(in_project(&folders[..1]).is_empty());
}

#[test]
fn homes_and_mounts_are_read_from_the_systems_lists() {
    let users = "root:x:0:0:root:/root:/bin/bash\nworca:x:1000:1000::/home/worca:/bin/sh\nbroken\nx:x:1:1::relative:\n";
    assert_eq!(homes_in(users), [Path::new("/root"), Path::new("/home/worca")]);
    let list = b"1 0 0:1 / / rw - overlay overlay rw\n2 1 0:2 / /proc rw - proc proc rw\n\
        3 1 8:1 /x /home/worca/my\\040keys ro - ext4 /dev/sda rw\n4 1 8:1 /h /etc/hosts rw - ext4 x rw\n\
        5 1 0:9 / /run/secrets/control ro - tmpfs tmpfs ro\n6 1 0:3 / /dev/shm rw - tmpfs shm rw\nbroken\n\n";
    assert_eq!(mounts_in(list), [Path::new("/home/worca/my keys"), Path::new("/run/secrets/control")]);
}
