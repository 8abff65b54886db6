use super::*;

fn environment(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

#[test]
fn every_place_is_named_at_once_and_no_value() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join(".claude")).unwrap();
    std::fs::write(home.path().join(".claude/.credentials.json"), "{\"claudeAiOauth\":{}}").unwrap();
    std::fs::write(home.path().join(".claude.json"), "{\"oauthAccount\":{\"name\":\"x\"}}").unwrap();
    let canary = format!("sk-ant-api03-{}", "c4nary".repeat(8));
    let error = check(
        environment(&[
            ("PATH", "/usr/bin"),
            ("ANTHROPIC_API_KEY", "anything"),
            ("openai_api_key", "anything"),
            ("MY_EXTRA", &format!("--key={canary}")),
        ]),
        Some(home.path()),
    )
    .unwrap_err();
    let text = crate::failure::Failure::from(error).render();
    assert!(!text.contains("c4nary"), "{text}");
    let text = text.replace(&home.path().display().to_string(), "HOME");
    insta::assert_snapshot!(text);
}

#[test]
fn an_ordinary_environment_and_home_pass() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join(".claude.json"), "{\"numStartups\":3,\"oauthAccount\":null}").unwrap();
    let ordinary = environment(&[
        ("PATH", "/usr/bin"),
        ("ANTHROPIC_API_KEY", ""),
        ("ANTHROPIC_BASE_URL", "http://keys:4318/anthropic"),
        ("DISK", "/dev/disk-by-id-sk-short"),
        ("TASK", "task-ask-for-a-long-name-that-is-no-key-at-all-really"),
    ]);
    assert!(check(ordinary, Some(home.path())).is_ok());
}

#[test]
fn a_key_is_known_by_its_shape_wherever_it_stands_in_a_value() {
    for value in [
        format!("sk-ant-oat01-{}", "a".repeat(40)),
        format!("https://user:sk-proj-{}@example.invalid", "b".repeat(40)),
        format!("{{\"key\": \"AIza{}\"}}", "c".repeat(35)),
    ] {
        let error = check(environment(&[("SOMETHING", &value)]), None).unwrap_err();
        assert_eq!(error.places, [Place::ValueOf("SOMETHING".into())]);
    }
}

#[test]
fn the_config_folder_that_the_environment_names_is_looked_at_too() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(".claude.json"), "{\"primaryApiKey\":\"x\"").unwrap();
    let folder_name = folder.path().display().to_string();
    let error = check(environment(&[("CLAUDE_CONFIG_DIR", &folder_name)]), None).unwrap_err();
    assert_eq!(error.places, [Place::File(folder.path().join(".claude.json"))]);
}
