//! What is a key by its shape, and what is ordinary text.

use proptest::prelude::*;

use super::super::text;
use super::*;
use crate::keys::shapes;

#[test]
fn each_shape_is_known_in_quotes_in_a_url_behind_an_escape_and_in_a_line() {
    let mixed = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4";
    let start = |length: usize| mixed.get(..length).unwrap();
    for key in [
        format!("sk-ant-api03-{mixed}-_{mixed}AA"),
        format!("sk-ant-oat01-{mixed}"),
        format!("sk-ant-admin01-{mixed}"),
        format!("sk-proj-{mixed}_-{mixed}"),
        format!("sk-svcacct-{mixed}"),
        format!("sk-or-v1-{}", "0123456789abcdef".repeat(4)),
        format!("sk-{mixed}"),
        format!("AIza{}", start(35)),
        format!("ya29.a0{mixed}"),
        "AKIAQ3EGRRTZ5L7M2WPX".to_owned(),
        "ASIAQ3EGRRTZ5L7M2WPX".to_owned(),
        format!("ABSK{mixed}{mixed}="),
        format!("gsk_{mixed}"),
        format!("xai-{mixed}"),
        format!("hf_{}", start(34)),
        format!("pplx-{mixed}"),
        format!("r8_{}", start(37)),
        format!("nvapi-{mixed}"),
    ] {
        for frame in [
            "{}",
            "\"{}\"",
            "x={}&y",
            "https://u:{}@host/",
            "a\\n{}\\n",
            "%20{} ",
            "Bearer {},",
            "\u{feff}{}é",
        ] {
            let text = frame.replace("{}", &key);
            assert!(shapes::holds(text.as_bytes()).is_some(), "{text}");
            assert!(!shapes::without(&text).contains(&key), "{text}");
        }
        assert_eq!(shapes::holds(format!("word{key}").as_bytes()), None, "{key}");
    }
}

#[test]
fn ordinary_text_holds_no_key() {
    // Lines of code, prose, logs and documents that come near.
    for line in [
        "pip install sk-learn-extra-with-a-very-long-name-that-goes-on-and-on",
        "task-ant-colony-optimisation-run-20240102-with-many-words",
        "sk-ant-api03-...",
        "export ANTHROPIC_API_KEY_DOCS=https://docs.example/sk-ant-",
        "sk-ant-xxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "sk-your-key-here, sk-ant-your-api-key-goes-here-please",
        "AKIAIOSFODNN7EXAMPLE",
        "AKIA is how an access key begins; ASIATICBLACKBEARS live far away",
        "ASIAABCDEFGHIJKLMNOP",
        "gsk_group_size_keeps_growing_with_every_sample_of_data",
        "hf_hub_download(repo_id, filename, cache_dir=cache_directory)",
        "xai-explainability-toolkit-for-machine-learning-models",
        "r8_register_with_a_long_name_for_the_assembler_to_read",
        "AIzawa Takeshi's paper on long identifiers_that_are_not_keys",
        "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "sha512-oq5hZ0gT8n1xAGKq0T4m1JcVqkA4BOtGNRbYf4hBm8uZbq0r2iJh6Tg==",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        "550e8400-e29b-41d4-a716-446655440000",
        "wp_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA is a pass",
        "/dev/disk/by-id/ata-Samsung_SSD_870_EVO_1TB_S5Y1NJ0R123456",
        "The quick brown fox jumps over the lazy dog, ya29 times.",
    ] {
        assert_eq!(shapes::holds(line.as_bytes()), None, "{line}");
        assert_eq!(shapes::without(line), line);
    }
}

#[test]
fn the_sources_and_documents_of_this_repository_hold_no_key_by_shape() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut ahead: Vec<std::path::PathBuf> =
        ["docs", "guardrails", "compose", "images", "src", "scenarios"].map(|name| root.join(name)).into();
    let (mut files, mut wrong) = (0, Vec::new());
    while let Some(place) = ahead.pop() {
        if place.is_dir() {
            ahead.extend(std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()));
        } else if !place.display().to_string().contains("tests") {
            files += 1;
            let text = std::fs::read(&place).unwrap();
            let tests = text.windows(12).position(|some| some == b"#[cfg(test)]");
            let text = &text[..tests.unwrap_or(text.len())];
            wrong.extend(shapes::holds(text).map(|what| format!("{}: {what}", place.display())));
        }
    }
    assert!(files > 100 && wrong.is_empty(), "{files} files, {wrong:#?}");
}

#[test]
fn names_count_where_something_is_assigned_to_them_and_nowhere_else() {
    let lines = |text: &str| {
        text::look(text.as_bytes(), &["apiKey"])
            .into_iter()
            .map(|hit| hit.line.unwrap_or(0))
            .collect::<Vec<_>>()
    };
    for harmless in [
        "",
        "We read OPENAI_API_KEY from the environment, and apiKey too.",
        "OPENAI_API_KEY",
        "OPENAI_API_KEY=",
        "OPENAI_API_KEY= # set me",
        "OPENAI_API_KEY=\"\"\nNEXT=1",
        "OPENAI_API_KEY=$OTHER",
        "OPENAI_API_KEY=${{ secrets.X }}",
        "OPENAI_API_KEY=<your key>",
        "apiKey: {env:X}",
        "apiKey: process.env.X",
        "apiKey:\nnext: 1",
        "apiKey: null",
        "{\"apiKey\": \"\"}",
        "{\"apiKey\": {}}",
        "{\"apiKey\": [ ]}",
        "{\"apiKey\": null, \"x\": 1}",
        "{\"history\": \"set OPENAI_API_KEY=abc and \\\"apiKey\\\": \\\"x\\\" there\"}",
        "{\"apiKeyHelper\": \"x\"}",
        "# OPENAI_API_KEY=abc",
        "; apiKey = abc",
        "// apiKey: 'abc'",
        "echo ${OPENAI_API_KEY:-none}",
        "if [ \"$OPENAI_API_KEY\" = x ]",
        "MYOPENAI_API_KEY=abc",
    ] {
        assert_eq!(lines(harmless), Vec::<usize>::new(), "{harmless}");
    }
    for (text, line) in [
        ("OPENAI_API_KEY=abc", 1),
        ("a\nexport OPENAI_API_KEY='abc'", 2),
        ("OPENAI_API_KEY : abc", 1),
        ("cmd --openai_api_key=abc", 1),
        ("\r\n\r\napiKey = \"abc\"\r\n", 3),
        ("{\"x\": {\"apiKey\"  :\n  \"abc\"}}", 1),
        ("{'apiKey': 'abc'}", 1),
        ("config.apiKey = 'abc'", 1),
        ("env[\"OPENAI_API_KEY\"] = \"abc\"", 1),
        ("{\"apiKey\": [\"abc\"]}", 1),
    ] {
        assert_eq!(lines(text), [line], "{text}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic_and_no_hit_tells_a_value(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        text::look(&bytes, &["apiKey"]);
        shapes::without(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn whatever_stands_around_a_key_no_part_of_it_is_told(
        before in "(OPENAI_API_KEY|apiKey|\"x\"|[ \\n#={}:\"',$-]){0,6}",
        after in "[ -~\\n]{0,20}",
    ) {
        let text = format!("{before} {CANARY} {after}");
        for hit in text::look(text.as_bytes(), &["apiKey"]) {
            tells_nothing(&hit.what, CANARY);
        }
    }
}
