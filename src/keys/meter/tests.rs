//! The observers against whole texts, and against the same texts cut anywhere.

use proptest::prelude::*;

use super::scan::{ITEM, Scalar, Scan};
use super::watch::Failure;
use super::*;
use crate::keys::slot::Api;

/// A stream of the Messages API, with what a careless reader trips over.
const MESSAGES: &str = concat!(
    "\u{feff}: a comment\r\n",
    "event: message_start\r\n",
    "data: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"role\":\"assistant\",\"model\":\"claude-opus-5\",\"content\":[],",
    "\"usage\":{\"input_tokens\":472,\"cache_creation_input_tokens\":1500,\"cache_read_input_tokens\":90210,",
    "\"cache_creation\":{\"ephemeral_5m_input_tokens\":1000,\"ephemeral_1h_input_tokens\":500},\"output_tokens\":3,\"service_tier\":\"standard\"}}}\r\n\r\n",
    "event: ping\rdata: {\"type\": \"ping\"}\r\r",
    "id: 7\ndata:{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Grüße, 世界 \\u00fc\\ud83d\\ude00 \\\"usage\\\":{\\\"output_tokens\\\":1}\"}}\n\n",
    "datax: {\"usage\":{\"output_tokens\":5}}\ndata: {\"type\":\"content_block_delta\",\"index\":1,\n",
    "data: \"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\": 1}\"}}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\r\n",
    "data: \"usage\":{\"output_tokens\":12345}}\r\n\r\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

const CHAT: &str = concat!(
    "data: {\"id\":\"c\",\"model\":\"gpt-5.4-2026-03-05\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}],\"usage\":null}\n\n",
    "data: {\"id\":\"c\",\"model\":\"gpt-5.4-2026-03-05\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello, you\"}}]}\n\n",
    "data: {\"id\":\"c\",\"model\":\"gpt-5.4-2026-03-05\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"a\\\":1}\"}}]}}]}\n\n",
    "data: {\"id\":\"c\",\"model\":\"gpt-5.4-2026-03-05\",\"choices\":[],\"service_tier\":\"priority\",\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":77,\"total_tokens\":1077,",
    "\"prompt_tokens_details\":{\"cached_tokens\":600,\"cache_write_tokens\":100,\"audio_tokens\":0},\"completion_tokens_details\":{\"reasoning_tokens\":64}}}\n\n",
    "data: [DONE]\n\n",
);

const RESPONSES: &str = concat!(
    "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"model\":\"gpt-6.1-sol\",\"usage\":null,\"error\":null}}\n\n",
    "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Hello\"}\n\n",
    "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"model\":\"gpt-6.1-sol\",\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"Hello\"}]}],",
    "\"usage\":{\"input_tokens\":50,\"input_tokens_details\":{\"cached_tokens\":20},\"output_tokens\":9,\"output_tokens_details\":{\"reasoning_tokens\":4},\"total_tokens\":59}}}\n\n",
);

fn watched(api: Api, events: bool, pieces: &[&[u8]]) -> (Counted, End) {
    let mut watch = Watch::new(api, events, Counted { input: 11, estimated: true, ..Counted::default() });
    let mut shown = watch.counted().clone();
    for piece in pieces {
        let changed = watch.see(piece);
        let now = watch.counted();
        // A name alone is no change of the count.
        assert_eq!(
            changed,
            Counted { model: None, ..now.clone() } != Counted { model: None, ..shown.clone() }
        );
        shown = now.clone();
    }
    let end = watch.end();
    (watch.counted().clone(), end)
}

fn bytes(text: &str) -> Vec<&[u8]> {
    text.as_bytes().chunks(1).collect()
}

fn of_messages() -> Counted {
    Counted {
        model: Some("claude-opus-5".into()),
        input: 472,
        output: 12345,
        cache_write_5m: 1000,
        cache_write_1h: 500,
        cache_read: 90210,
        estimated: false,
        fast: false,
    }
}

#[test]
fn the_streams_of_all_three_apis_are_counted_as_their_providers_say() {
    assert_eq!(watched(Api::Anthropic, true, &[MESSAGES.as_bytes()]), (of_messages(), End::Whole));
    let chat = Counted {
        model: Some("gpt-5.4-2026-03-05".into()),
        input: 300,
        output: 77,
        cache_write_5m: 100,
        cache_read: 600,
        fast: true,
        ..Counted::default()
    };
    assert_eq!(watched(Api::Openai, true, &[CHAT.as_bytes()]), (chat, End::Whole));
    let responses = Counted {
        model: Some("gpt-6.1-sol".into()),
        input: 30,
        output: 9,
        cache_read: 20,
        ..Counted::default()
    };
    assert_eq!(watched(Api::Openai, true, &[RESPONSES.as_bytes()]), (responses, End::Whole));
}

#[test]
fn byte_by_byte_and_with_any_line_ends_the_count_is_the_same() {
    for text in [MESSAGES, &MESSAGES.replace("\r\n", "\n"), &MESSAGES.replace('\r', "").replace('\n', "\r\n")]
    {
        assert_eq!(watched(Api::Anthropic, true, &bytes(text)), (of_messages(), End::Whole), "{text}");
    }
    assert_eq!(watched(Api::Openai, true, &bytes(CHAT)).0.output, 77);
}

#[test]
fn what_is_visible_counts_until_the_provider_says_how_much_there_was() {
    let cut = |end: &str| {
        let at = MESSAGES.find(end).unwrap();
        watched(Api::Anthropic, true, &[&MESSAGES.as_bytes()[..at]])
    };
    // Before anything: what was reckoned from the request.
    let (counted, end) = cut("event: message_start");
    assert_eq!((counted.input, counted.output, counted.estimated, end), (11, 0, true, End::Cut));
    // The start says three; so much is known.
    let (counted, _) = cut("id: 7");
    assert_eq!((counted.input, counted.output, counted.estimated), (472, 3, true));
    // `Grüße, 世界 ü😀 "usage":{"output_tokens":1}` is 51 bytes; then `{"a": 1}` is 8 more.
    let (counted, _) = cut("datax");
    assert_eq!((counted.output, counted.estimated), (51u64.div_ceil(4), true));
    let (counted, end) = cut("event: message_delta");
    assert_eq!((counted.output, counted.cache_read, end), (59u64.div_ceil(4), 90210, End::Cut));
    // A number that is cut is none.
    let (counted, _) = cut("345}}");
    assert_eq!((counted.output, counted.estimated), (59u64.div_ceil(4), true));
    // The last event's own empty line is missing, and it is whole all the same.
    let (counted, end) = cut("\r\nevent: message_stop");
    assert_eq!((counted.output, counted.estimated, end), (12345, false, End::Cut));
}

#[test]
fn a_provider_that_never_says_what_it_used_is_reckoned_from_what_can_be_seen() {
    let stream = CHAT.replace("\"usage\":{", "\"other\":{");
    let (counted, end) = watched(Api::Openai, true, &[stream.as_bytes()]);
    // `Hello, you` and `{"a":1}`
    assert_eq!((counted.input, counted.output, counted.estimated), (11, 17u64.div_ceil(4), true));
    assert_eq!(end, End::Whole);
    let text = r#"{"choices":[{"message":{"content":"Hello"}}]}"#;
    let (counted, end) = watched(Api::Openai, false, &[text.as_bytes()]);
    assert_eq!((counted.output, counted.estimated, end), ((text.len() as u64).div_ceil(4), true, End::Whole));
}

#[test]
fn an_error_in_a_stream_is_a_failure_with_what_was_used_so_far() {
    let begun = MESSAGES.split("event: message_delta").next().unwrap();
    for (error, kind, message) in [
        (r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#, "overloaded_error", "x"),
        (r#"{"error":{"message":"m","type":"server_error","code":500},"type":"error"}"#, "server_error", "m"),
        (
            r#"{"type":"error","code":"rate_limit_exceeded","message":"slow\ndown"}"#,
            "rate_limit_exceeded",
            "slow down",
        ),
        (
            r#"{"type":"response.failed","response":{"error":{"code":"server_error","message":"m"}}}"#,
            "server_error",
            "m",
        ),
        (r#"{"error":"it broke"}"#, "", "it broke"),
    ] {
        let text = format!("{begun}event: error\ndata: {error}\n\n");
        let (counted, end) = watched(Api::Anthropic, true, &[text.as_bytes()]);
        assert_eq!(end, End::Failed(Failure { kind: kind.into(), message: message.into() }), "{error}");
        assert_eq!((counted.input, counted.output), (472, 15));
    }
}

#[test]
fn json_answers_are_counted_wherever_their_use_stands_and_however_long_they_are() {
    let usage = r#""usage":{"input_tokens":5,"cache_read_input_tokens":7,"output_tokens":9,"speed":"fast","iterations":[{"type":"message","input_tokens":50,"output_tokens":2},{"type":"message","input_tokens":3,"output_tokens":2}]}"#;
    let long = "x\\\"y".repeat(100_000);
    for text in [
        format!(r#"{{"type":"message",{usage},"content":[{{"type":"text","text":"{long}"}}],"model":"m"}}"#),
        format!(
            " {{\"model\":\"m\",\"content\":[{{\"text\":\"{long}\",\"usage\":{{\"output_tokens\":1}}}}],{usage}}}\n"
        ),
    ] {
        for size in [1, 7, 64 * 1024] {
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            let (counted, end) = watched(Api::Anthropic, false, &pieces);
            // Rounds inside the call say more of the input than the whole does, and less of the output.
            assert_eq!((counted.input, counted.output, counted.cache_read), (53, 9, 7));
            assert_eq!((counted.fast, counted.estimated, end), (true, false, End::Whole));
        }
    }
    let (counted, end) = watched(Api::Openai, false, &[br#"{"model":"m","usage":{"prompt_tokens":3"#]);
    assert_eq!((counted.input, counted.estimated, end), (11, true, End::Cut));
}

fn asked(body: &[u8], size: usize) -> Result<Asked, UnclearError> {
    let mut scan = RequestScan::new();
    body.chunks(size.max(1)).for_each(|piece| scan.push(piece));
    scan.asked(body.len() as u64)
}

#[test]
fn a_request_says_its_model_and_its_limit_wherever_they_stand() {
    let long = "A".repeat(3_000_000);
    let body = format!(
        r#"{{"messages":[{{"role":"user","model":"not-this","max_tokens":1,"content":"{long}"}}],"stream":true,"tools":[{{"name":"t","input_schema":{{"model":"nor-this"}}}}],"max_tokens":4096,"mod\u0065l":"claude-opus-5"}}"#
    );
    let wanted = Asked {
        model: Some("claude-opus-5".into()),
        most_output: Some(4096),
        answers: 1,
        body_bytes: body.len() as u64,
        stream: true,
        ..Asked::default()
    };
    for size in [1, 1000, usize::MAX] {
        assert_eq!(asked(body.as_bytes(), size).as_ref(), Ok(&wanted));
    }
}

#[test]
fn a_request_cannot_hide_what_it_costs() {
    let asked = |body: &str| asked(body.as_bytes(), usize::MAX);
    let clear = |body: &str| asked(body).unwrap();
    assert_eq!(asked(r#"{"model":"a","model":"b"}"#), Err(UnclearError::TwoModels));
    assert_eq!(asked(r#"{"model":"a","Model":"b"}"#), Err(UnclearError::TwoModels));
    assert_eq!(clear(r#"{"model":"a","model":"a"}"#).model.as_deref(), Some("a"));
    assert_eq!(asked(r#"{"model":["a"]} "#).unwrap().model, None);
    assert_eq!(asked(r#"{"model":5}"#), Err(UnclearError::NoName));
    assert_eq!(asked(&format!(r#"{{"model":"{}"}}"#, "m".repeat(201))), Err(UnclearError::NoName));
    for broken in [
        "",
        "{",
        "{\"model\":\"a\"}x",
        "[1,]",
        "{'model':'a'}",
        "// c\n{}",
        "{\"model\":\"a\",}",
        "\u{feff}{}",
    ] {
        assert_eq!(asked(broken), Err(UnclearError::NoJson), "{broken}");
    }
    // The largest of several limits holds, and one that cannot be read is none.
    assert_eq!(clear(r#"{"max_tokens":5,"max_completion_tokens":9,"max_tokens":1}"#).most_output, Some(9));
    assert_eq!(clear(r#"{"max_tokens":5,"max_output_tokens":1e9}"#).most_output, None);
    assert_eq!(clear(r#"{"max_tokens":"5"}"#).most_output, None);
    assert_eq!(clear(r#"{"max_tokens":99999999999999999999}"#).most_output, None);
    assert_eq!(
        (clear(r#"{"n":3}"#).answers, clear(r#"{"n":"9"}"#).answers, clear("{}").answers),
        (3, 128, 1)
    );
    assert!(clear(r#"{"speed":"fast"}"#).fast && clear(r#"{"service_tier":"priority"}"#).fast);
    assert!(!clear(r#"{"service_tier":"auto","metadata":{"speed":"fast"}}"#).fast);
    // Models beside the first: stand-ins, and those of the provider's own tools.
    let others =
        clear(r#"{"model":"a","models":["b","c"],"tools":[{"type":"advisor","model":"d"},{"model":"b"}]}"#)
            .others;
    assert_eq!(others, ["b", "c", "d"]);
    let deep = format!("{}1{}", "[".repeat(1024), "]".repeat(1024));
    assert!(asked(&deep).is_ok());
    assert_eq!(asked(&format!("[{deep}]")), Err(UnclearError::NoJson));
}

/// All wanted scalars, with the way to them.
fn scanned(pieces: &[&[u8]]) -> (Vec<String>, bool) {
    let mut scan = Scan::new(&["a", "b"]);
    let mut seen = Vec::new();
    let mut note = |path: &[u8], scalar: Scalar<'_>| {
        let path: Vec<String> =
            path.iter().map(|step| if *step == ITEM { "*".into() } else { step.to_string() }).collect();
        let scalar = match scalar {
            Scalar::Text { start, bytes } => format!("{:?} {bytes}", String::from_utf8_lossy(start)),
            other => format!("{other:?}"),
        };
        seen.push(format!("{}={scalar}", path.join(".")));
    };
    pieces.iter().for_each(|piece| scan.push(piece, &mut note));
    (seen, scan.is_done())
}

fn cut<'a>(text: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    cuts.push(text.len());
    cuts.sort_unstable();
    let mut from = 0;
    cuts.into_iter().map(|to| &text[std::mem::replace(&mut from, to)..to]).collect()
}

proptest! {
    #[test]
    fn a_stream_cut_anywhere_counts_as_the_whole_one(cuts in proptest::collection::vec(0usize..4000, 0..12)) {
        for (api, text) in [(Api::Anthropic, MESSAGES), (Api::Openai, CHAT), (Api::Openai, RESPONSES)] {
            let whole = watched(api, true, &[text.as_bytes()]);
            prop_assert_eq!(watched(api, true, &cut(text.as_bytes(), &cuts)), whole);
        }
    }

    #[test]
    fn a_stream_that_ends_anywhere_counts_the_same_however_it_was_cut(
        end in 0usize..MESSAGES.len(), cuts in proptest::collection::vec(0usize..4000, 0..12)
    ) {
        let text = &MESSAGES.as_bytes()[..end];
        prop_assert_eq!(watched(Api::Anthropic, true, &cut(text, &cuts)), watched(Api::Anthropic, true, &[text]));
    }

    #[test]
    fn what_the_scan_takes_is_json_and_all_json_is_taken(
        parts in proptest::collection::vec(
            proptest::sample::select(vec![
                "{", "}", "[", "]", ",", ":", " ", "\n", "\"a\"", "\"b\"", "\"c\"", "\"\\u0061\"", "\"\\ud83d\\ude00\"",
                "\"é\\\"\\\\\"", "12", "-0.5e3", "true", "false", "null", "\"", "tru", "{\"a\":", "{\"c\":", "[\"a\",",
            ]), 0..14),
        cuts in proptest::collection::vec(0usize..200, 0..6)
    ) {
        let text = parts.concat();
        let (seen, done) = scanned(&[text.as_bytes()]);
        // A number at the top has no end of its own, and is no request and no answer either.
        let whole = serde_json::from_str::<serde_json::Value>(&text).is_ok_and(|value| !value.is_number() || text.ends_with(char::is_whitespace));
        prop_assert_eq!(done, whole, "{}", text);
        prop_assert_eq!(scanned(&cut(text.as_bytes(), &cuts)), (seen, done));
    }

    #[test]
    fn texts_are_told_as_a_json_reader_tells_them(text in "\\PC{0,80}", ascii in any::<bool>()) {
        let value = serde_json::json!({"x": {"a": 1}, "a": text});
        let mut json = value.to_string();
        if ascii {
            json = json.chars().map(|c| match c {
                c if c.is_ascii() => c.to_string(),
                c => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
            }).collect();
        }
        let start = String::from_utf8_lossy(&text.as_bytes()[..text.len().min(256)]).into_owned();
        prop_assert_eq!(scanned(&[json.as_bytes()]).0, vec![format!("1={start:?} {}", text.len())]);
    }
}
