//! Prices against sums done by hand.

use super::*;

fn built_in() -> Prices {
    Prices::read(None).unwrap()
}

fn counted(model: &str, input: u64, output: u64) -> Counted {
    Counted { model: Some(model.into()), input, output, ..Counted::default() }
}

#[test]
fn the_built_in_table_reads_and_each_row_is_the_one_that_its_names_find() {
    let prices = built_in();
    assert!(prices.rows.len() > 40);
    for row in &prices.rows {
        for name in &row.models {
            let (slot, model) = name.split_once('/').unwrap();
            let found = prices.find(slot, &model.replace('*', "26-01-31")).unwrap();
            assert_eq!(found, row, "{name} is hidden by a row above it");
        }
        assert!(row.rates.output >= row.rates.input && row.rates.cache_read <= row.rates.input, "{row:?}");
        assert!(row.context.is_some() && row.max_output.is_some(), "{row:?}");
        if let Some((_, long)) = &row.long {
            assert!(long.input > row.rates.input && long.output > row.rates.output, "{row:?}");
        }
    }
}

#[test]
fn a_call_costs_what_a_sum_by_hand_says() {
    let prices = built_in();
    let used = Counted {
        model: Some("claude-sonnet-4-6".into()),
        input: 1000,
        output: 200,
        cache_write_5m: 4000,
        cache_write_1h: 500,
        cache_read: 100_000,
        ..Counted::default()
    };
    // 1000 × 3 + 200 × 15 + 4000 × 3.75 + 500 × 6 + 100 000 × 0.3 millionths of a dollar
    assert_eq!(prices.cost("anthropic", None, &used), Some(3000 + 3000 + 15_000 + 3000 + 30_000));
    // A millionth that is not whole is rounded up: one token at 0.1 dollars.
    assert_eq!(prices.cost("anthropic", None, &counted("claude-haiku-5-5", 1, 0)), Some(1));
    assert_eq!(prices.cost("anthropic", None, &counted("claude-haiku-5-5", 0, 0)), Some(0));
}

#[test]
fn the_whole_call_is_dearer_from_one_token_above_the_step() {
    let prices = built_in();
    let mut used = counted("claude-sonnet-4-5-20250929", 100_000, 10);
    used.cache_read = 100_000;
    assert_eq!(prices.cost("anthropic", None, &used), Some(300_000 + 30_000 + 150));
    used.input += 1;
    assert_eq!(prices.cost("anthropic", None, &used), Some(600_006 + 60_000 + 225));
}

#[test]
fn an_unknown_model_has_no_price_and_the_one_that_was_asked_for_stands_in() {
    let prices = built_in();
    let used = counted("claude-opus-9-20990101", 1000, 0);
    assert_eq!(prices.cost("anthropic", None, &used), None);
    assert_eq!(prices.cost("anthropic", Some("claude-opus-5"), &used), Some(5000));
    assert_eq!(prices.cost("elsewhere", Some("claude-opus-5"), &used), None);
    let asked = Asked { model: Some("claude-opus-9".into()), body_bytes: 300, ..Asked::default() };
    assert_eq!(prices.most("anthropic", &asked), None);
    assert_eq!(prices.most_tokens("anthropic", &asked), 100 + LARGEST_ANSWER);
    assert_eq!(prices.most("anthropic", &Asked::default()), None);
}

#[test]
fn the_prediction_is_the_body_at_the_dearest_input_and_the_largest_answer() {
    let prices = built_in();
    let asked = |most_output, body_bytes| Asked {
        model: Some("claude-opus-5".into()),
        most_output,
        body_bytes,
        ..Asked::default()
    };
    // 100 tokens at 10 (the one-hour cache) and 50 at 25.
    assert_eq!(prices.most("anthropic", &asked(Some(50), 300)), Some(1000 + 1250));
    // Without a limit: what the model can say. With one beyond it: the same.
    assert_eq!(prices.most("anthropic", &asked(None, 0)), Some(128_000 * 25));
    assert_eq!(prices.most("anthropic", &asked(Some(u64::MAX), 0)), Some(128_000 * 25));
    // No input is larger than the model's context.
    assert_eq!(prices.most("anthropic", &asked(Some(0), u64::MAX)), Some(1_000_000 * 10));
    let haiku = Asked { model: Some("claude-haiku-5-5".into()), ..asked(Some(100), 3 * 100_001) };
    assert_eq!(prices.most("anthropic", &haiku), Some(100_001 + 250));
}

#[test]
fn the_fast_mode_is_dearer_and_unknown_where_no_factor_stands() {
    let prices = built_in();
    let mut used = counted("claude-opus-5-5", 1000, 1000);
    used.fast = true;
    assert_eq!(prices.cost("anthropic", None, &used), Some(2 * 24_000));
    used.model = Some("claude-sonnet-5-5".into());
    assert_eq!(prices.cost("anthropic", None, &used), None);
    let asked = Asked { model: used.model, fast: true, ..Asked::default() };
    assert_eq!(prices.most("anthropic", &asked), None);
}

#[test]
fn rows_of_an_own_file_are_asked_first_and_the_others_after() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prices.yaml");
    let text = "version: 1\ndate: \"2027-01-02\"\nmodels:\n  - models: [\"gate/*\", anthropic/claude-opus-5]\n    input: 1.5\n    output: 2\n";
    std::fs::write(&file, text).unwrap();
    let prices = Prices::read(Some(&file)).unwrap();
    assert!(prices.date().ends_with("with own prices of 2027-01-02"), "{}", prices.date());
    assert_eq!(prices.cost("gate", None, &counted("any/thing", 1000, 1)), Some(1502));
    assert_eq!(prices.cost("anthropic", None, &counted("claude-opus-5", 1000, 1)), Some(1502));
    assert_eq!(prices.cost("anthropic", None, &counted("claude-opus-4-8", 1000, 1)), Some(5025));
    assert!(prices.knows("gate", "x") && !prices.knows("gates", "x"));
}

#[test]
fn a_wrong_table_is_refused_with_the_place() {
    let said = |text: &str| Prices::parse(text, "own.yaml").unwrap_err().to_string();
    let row = |row: &str| said(&format!("version: 1\ndate: \"2027-01-02\"\nmodels:\n  - {row}\n"));
    assert_eq!(
        said("version: 2\ndate: \"2027-01-02\"\nmodels: []\n"),
        "own.yaml:1:10: it is of version 2, and this program reads version 1"
    );
    assert!(said("version: 1\ndate: today\nmodels: []\n").starts_with("own.yaml:2:7: `date` is no day"));
    assert!(row("{models: [opus], input: 1, output: 1}").starts_with("own.yaml:4:15: a model is written as"));
    assert!(row("{models: [], input: 1, output: 1}").contains("names no model"));
    for price in ["-1", "100001", ".nan", ".inf"] {
        let said = row(&format!("{{models: [a/b], input: {price}, output: 1}}"));
        assert!(said.contains("a price is a number of dollars"), "{price}: {said}");
    }
    assert!(row("{models: [a/b], input: 1, output: 1, cache: 1}").contains("cache"));
    assert!(matches!(Prices::read(Some(Path::new("/nowhere/x"))), Err(ReadPricesError::Read { .. })));
}

#[test]
fn stars_stand_for_anything_and_cost_no_time() {
    assert!(fits("a/*", "a", "b/c"));
    assert!(fits("*/m", "slot", "x/m"));
    assert!(fits("a/b*c*", "a", "bcc"));
    assert!(fits("a/**", "a", ""));
    assert!(!fits("a/b", "a", "bc") && !fits("a/bc", "a", "b") && !fits("a/*c", "a", "cb"));
    assert!(!fits(&format!("a/{}b", "*a".repeat(100)), "a", &"a".repeat(10_000)));
}

#[test]
fn a_table_that_is_no_plain_file_or_too_long_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("prices.yaml");
    std::fs::File::create(&path).unwrap().set_len(MOST_BYTES + 1).unwrap();
    assert!(matches!(Prices::read(Some(&path)), Err(ReadPricesError::Large(_))));
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
        let error = Prices::read(Some(&pipe)).unwrap_err();
        assert!(matches!(error, ReadPricesError::Read { .. }), "{error}");
    }
}
