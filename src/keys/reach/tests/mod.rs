use super::*;

mod corpus;
mod hostile;
mod places;

use std::ffi::OsString;
use std::path::Path;

/// A value that no output may hold a run of.
pub(super) const CANARY: &str = "sk-ant-api03-c4nary-q7Xw9Lk2Vb5Nh8Rt1Zp3Md6Fg0Js4";

pub(super) fn environment(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// A home of one's own with these files, and nothing else that is looked at.
pub(super) fn home_of(files: &[(&str, &str)]) -> (tempfile::TempDir, Surroundings) {
    let home = tempfile::tempdir().unwrap();
    for (path, text) in files {
        put(home.path(), path, text);
    }
    let around = Surroundings { homes: vec![home.path().to_owned()], ..Surroundings::default() };
    (home, around)
}

pub(super) fn put(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

pub(super) fn refusal(around: &Surroundings) -> Option<String> {
    let error = look(around).judge(Closes::Nothing).err()?;
    Some(crate::failure::Failure::from(error).render())
}

/// No eight letters of the value in a row.
pub(super) fn tells_nothing(text: &str, value: &str) {
    for run in value.as_bytes().windows(8) {
        let run = std::str::from_utf8(run).unwrap();
        assert!(!text.contains(run), "`{run}` of the value stands in: {text}");
    }
}

#[test]
fn every_place_is_named_at_once_and_no_value() {
    let (home, mut around) = home_of(&[
        (".claude/.credentials.json", &format!("{{\"claudeAiOauth\":{{\"accessToken\":\"{CANARY}\"}}}}")),
        (".claude.json", &format!("{{\n \"oauthAccount\": {{\"name\":\"x\"}},\n \"note\": \"{CANARY}\"\n}}")),
        (".bashrc", &format!("# mine\nexport OPENAI_API_KEY={CANARY}\n")),
    ]);
    around.environment = environment(&[
        ("PATH", "/usr/bin"),
        ("ANTHROPIC_API_KEY", CANARY),
        ("openai_api_key", "anything"),
        ("MY_EXTRA", &format!("--key={CANARY}")),
    ]);
    let text = refusal(&around).unwrap();
    tells_nothing(&text, CANARY);
    insta::assert_snapshot!(text.replace(&home.path().display().to_string(), "HOME"));
}

#[test]
fn an_ordinary_environment_and_home_pass() {
    let (_home, mut around) = home_of(&[
        (".claude.json", "{\"numStartups\":3,\"oauthAccount\":null,\"primaryApiKey\":\"\"}"),
        (".claude/settings.json", "{\"model\":\"opus\",\"permissions\":{\"deny\":[\"Read(.env)\"]}}"),
        (".codex/config.toml", "model = \"gpt\"\n[model_providers.x]\nenv_key = \"OPENAI_API_KEY\"\n"),
        (".gemini/settings.json", "{\"theme\":\"dark\",\"apiKey\":\"$GEMINI_API_KEY\"}"),
        (".aws/config", "[default]\nregion = eu-central-1\nsso_start_url = https://x.awsapps.com/start\n"),
        (".azure/msal_token_cache.json", "{}"),
        (
            ".bashrc",
            "[ -n \"${OPENAI_API_KEY:-}\" ] && echo set\n# export OPENAI_API_KEY=mine\nexport X=$ANTHROPIC_API_KEY\n",
        ),
        (".env", "OPENAI_API_KEY=\nANTHROPIC_API_KEY=\"\"\nGEMINI_API_KEY=${FROM_VAULT}\n"),
        (".codex/auth.json", ""),
        (".local/share/opencode/log", CANARY),
    ]);
    around.environment = environment(&[
        ("PATH", "/usr/bin"),
        ("ANTHROPIC_API_KEY", ""),
        ("ANTHROPIC_BASE_URL", "http://keys:4318/anthropic"),
        ("CLAUDE_CODE_USE_BEDROCK", "1"),
        ("AWS_REGION", "eu-central-1"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/adc.json"),
        ("DISK", "/dev/disk-by-id-sk-short"),
        ("TASK", "task-ask-for-a-long-name-that-is-no-key-at-all-really"),
    ]);
    assert_eq!(refusal(&around), None);
}

#[test]
fn a_key_is_known_by_its_shape_wherever_it_stands_in_a_value() {
    for value in [
        format!("sk-ant-oat01-{}", "a".repeat(40)),
        format!("https://user:sk-proj-{}@example.invalid", "b".repeat(40)),
        format!("{{\"key\": \"AIza{}\"}}", "c".repeat(35)),
    ] {
        let around =
            Surroundings { environment: environment(&[("SOMETHING", &value)]), ..Surroundings::default() };
        let findings = look(&around).findings;
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].place, Place::Variable("SOMETHING".into()));
    }
}

#[test]
fn names_and_paths_that_hold_a_key_or_control_letters_are_shown_without_them() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), &format!("{CANARY}/.codex/auth.json"), "x");
    put(folder.path(), "a\u{1b}[2Jb\nc/.codex/auth.json", "x");
    let around = Surroundings {
        environment: environment(&[(CANARY, "1"), (&format!("X_{CANARY}"), CANARY)]),
        homes: vec![folder.path().join(CANARY), folder.path().join("a\u{1b}[2Jb\nc")],
        ..Surroundings::default()
    };
    let text = refusal(&around).unwrap();
    tells_nothing(&text, CANARY);
    assert!(
        text.contains("(a key)") && text.contains("\\u{1b}[2Jb\\nc") && !text.contains('\u{1b}'),
        "{text}"
    );
}

#[test]
fn what_the_kernel_closes_is_not_in_reach_and_has_to_be_closed() {
    let (home, mut around) = home_of(&[(".codex/auth.json", "{}")]);
    let other = tempfile::tempdir().unwrap();
    put(other.path(), ".bashrc", "export OPENAI_API_KEY=a\nexport GEMINI_API_KEY=b\n");
    around.other_homes = vec![other.path().to_owned()];
    let (own, machine) = (home.path().join(".codex/auth.json"), other.path().join(".bashrc"));

    let places = |closes| look(&around).judge(closes).unwrap_err().findings.len();
    assert_eq!((places(Closes::Nothing), places(Closes::Machine)), (3, 1));
    let mut closed = look(&around).judge(Closes::Home).unwrap();
    closed.sort();
    let mut both = vec![own, machine.clone()];
    both.sort();
    assert_eq!(closed, both);
    // What core itself holds is closed by nothing.
    around.environment = environment(&[("XAI_API_KEY", "a")]);
    assert_eq!(look(&around).judge(Closes::Home).unwrap_err().findings.len(), 1);
    around.environment.clear();
    around.homes.clear();
    assert_eq!(look(&around).judge(Closes::Machine).unwrap(), [machine]);
}

#[test]
fn an_empty_surrounding_is_no_finding() {
    assert_eq!(look(&Surroundings::default()), Report::default());
}
