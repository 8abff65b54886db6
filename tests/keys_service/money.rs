//! What calls use, who pays, and what is not made any more when a cap is reached.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Response, StatusCode};
use worca::amount::Amount;
use worca::ids::{PersonId, RunId};
use worca::keys::client::{MintRequest, Minted};
use worca::keys::credential::Kind;
use worca::keys::serve::Limits;
use worca::keys::slot::SlotName;
use worca::keys::wire::{Cap, CapScope, Caps, PassRefusal, RefusalKind, UsageQuery, UsageRow};

use crate::support::{
    Script, Seen, Stage, TOKEN, call, client, fed, message, one_stream, request, soon, until, wanted,
};

/// A stream of the Messages API that says its use as the real one does.
const STREAM: &str = concat!(
    "event: message_start\r\n",
    "data: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-opus-5\",\"usage\":{\"input_tokens\":472,",
    "\"cache_creation_input_tokens\":1500,\"cache_read_input_tokens\":90210,\"output_tokens\":1}}}\r\n\r\n",
    "event: content_block_delta\n",
    "data: {\"type\":\"content_block_delta\",\ndata: \"delta\":{\"type\":\"text_delta\",\"text\":\"gr\u{fc}n \u{1f33f}\"}}\n\n",
    "event: message_delta\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1345}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

fn json(_: &Seen) -> Script {
    Script::json(
        200,
        r#"{"type":"message","model":"claude-opus-5","content":[],"usage":{"input_tokens":1000,"output_tokens":100}}"#,
    )
}

/// What a pass has used, once it is closed.
async fn closed(stage: &Stage, minted: &Minted) -> (Vec<UsageRow>, Option<PassRefusal>) {
    let closing = stage.keys.client.revoke(&minted.id).await.unwrap();
    (closing.used, closing.refused)
}

fn counted(rows: &[UsageRow]) -> Vec<(&str, u64, u64, u64, u64, u64, u64)> {
    rows.iter()
        .map(|row| {
            let model = row.model.as_deref().unwrap_or("?");
            (model, row.calls, row.failed, row.input, row.output, row.cache_write, row.cache_read)
        })
        .collect()
}

async fn capped(stage: &Stage, cap: Amount) -> Minted {
    let wanted = MintRequest { cap: Some(cap), ..wanted(None) };
    stage.keys.client.mint(&wanted).await.unwrap()
}

#[tokio::test]
async fn c055_a_caller_that_goes_away_frees_the_provider_and_what_was_used_until_then_is_booked() {
    let (answer, script) = one_stream();
    let stage = Stage::set(script).await;
    let minted = stage.keys.mint(None).await;
    let mut body = client().request(message(&stage.keys, &minted.pass)).await.unwrap().into_body();
    let (begun, rest) = STREAM.split_at(STREAM.find("event: content").unwrap());
    let (delta, _) = rest.split_at(rest.find("event: message_delta").unwrap());
    for piece in [begun, delta, delta, delta] {
        answer.send(Bytes::from(piece)).await.unwrap();
        soon("the piece arrives", body.frame()).await.unwrap().unwrap();
    }
    drop(body);
    soon("the provider's side is dropped", answer.closed()).await;
    let used = closed(&stage, &minted).await.0;
    // Three times ten bytes of text, four to a token.
    assert_eq!(counted(&used), [("claude-opus-5", 1, 1, 472, 8, 1500, 90210)]);
    assert_eq!(used[0].estimated, 1);
}

#[tokio::test]
async fn c057_an_error_in_the_middle_of_a_stream_is_booked_as_a_failed_call_with_what_was_used() {
    let begun = STREAM.split("event: content").next().unwrap();
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n";
    let text = format!("{begun}{error}");
    let sent = text.clone();
    let stage = Stage::set(move |_| {
        let response = Response::builder().header("content-type", "text/event-stream");
        Script::Whole(response.body(Bytes::from(sent.clone())).unwrap())
    })
    .await;
    let minted = stage.keys.mint(None).await;
    assert_eq!(stage.ask(&minted.pass).await.text(), text);
    assert_eq!(counted(&closed(&stage, &minted).await.0), [("claude-opus-5", 1, 1, 472, 1, 1500, 90210)]);
}

#[tokio::test]
async fn c058_what_is_counted_does_not_depend_on_where_a_stream_is_cut() {
    let whole = Bytes::from_static(STREAM.as_bytes());
    let number = STREAM.find("1345").unwrap() + 2;
    let sign = STREAM.find('\u{1f33f}').unwrap() + 2;
    for cuts in [vec![], vec![number], vec![sign], vec![number, number + 1], (1..STREAM.len()).collect()] {
        let (answer, script) = one_stream();
        let stage = Stage::set(script).await;
        let minted = stage.keys.mint(None).await;
        let feed = async {
            let mut from = 0;
            for cut in cuts.iter().copied().chain([STREAM.len()]) {
                answer.send(whole.slice(from..cut)).await.unwrap();
                from = cut;
            }
            drop(answer);
        };
        let (got, ()) = tokio::join!(call(message(&stage.keys, &minted.pass)), feed);
        assert_eq!(got.body, whole, "{cuts:?}");
        let used = closed(&stage, &minted).await.0;
        assert_eq!(counted(&used), [("claude-opus-5", 1, 0, 472, 1345, 1500, 90210)], "{cuts:?}");
        assert_eq!(used[0].estimated, 0);
    }
}

#[tokio::test]
async fn c064_what_does_not_cost_is_not_booked() {
    let stage = Stage::set(json).await;
    let minted = stage.keys.mint(None).await;
    for (method, path) in
        [(Method::POST, "/anthropic/v1/messages/count_tokens"), (Method::GET, "/anthropic/v1/models")]
    {
        let answer = call(request(method, &stage.keys.url(path), Some(&minted.pass), "{}")).await;
        assert_eq!(answer.status, StatusCode::OK);
    }
    assert_eq!(closed(&stage, &minted).await, (vec![], None));
}

#[tokio::test]
async fn a_failed_call_is_booked_with_nothing_used_and_its_retry_with_what_it_used() {
    let first = Mutex::new(true);
    let stage = Stage::set(move |seen| {
        if std::mem::take(&mut *first.lock().unwrap()) {
            return Script::json(
                529,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#,
            );
        }
        json(seen)
    })
    .await;
    let minted = stage.keys.mint(None).await;
    for status in [529, 200] {
        assert_eq!(stage.ask(&minted.pass).await.status.as_u16(), status);
    }
    // The failed one named no model: it stands under the one that was asked for.
    let used = closed(&stage, &minted).await.0;
    assert_eq!(counted(&used), [("claude-opus-5", 1, 0, 1000, 100, 0, 0), ("m", 1, 1, 0, 0, 0, 0)]);
    // Opus 5: 5 and 25 dollars per million tokens, by the built-in prices.
    assert_eq!(used[0].cost_micros, 7500);
}

#[tokio::test]
async fn a_runs_budget_ends_in_402_that_names_it_and_counts_over_all_its_passes() {
    let stage = Stage::set(json).await;
    let run = RunId::random();
    let mint = || MintRequest { run: run.clone(), cap: Some(Amount::Tokens(1500)), ..wanted(None) };
    let first = stage.keys.client.mint(&mint()).await.unwrap();
    assert_eq!(stage.ask(&first.pass).await.status, StatusCode::OK);
    let second = stage.keys.client.mint(&mint()).await.unwrap();
    // One call may go over; the next one is not made.
    assert_eq!(stage.ask(&second.pass).await.status, StatusCode::OK);
    let refused = stage.ask(&second.pass).await;
    assert_eq!(refused.status, StatusCode::PAYMENT_REQUIRED);
    let sentence = format!("worca: the budget of run {run} is spent: 2,200 tokens of 1,500 tokens");
    assert!(
        refused.text().contains(&sentence) && refused.text().contains("billing_error"),
        "{}",
        refused.text()
    );
    assert_eq!(stage.upstream.seen().len(), 2);
    let why = closed(&stage, &second).await.1.unwrap();
    assert_eq!((why.kind, why.message), (RefusalKind::Budget, sentence));
    // With a larger one it goes on.
    let raised = MintRequest { cap: Some(Amount::Tokens(5000)), ..mint() };
    let third = stage.keys.client.mint(&raised).await.unwrap();
    assert_eq!(stage.ask(&third.pass).await.status, StatusCode::OK);
    assert_eq!(closed(&stage, &third).await.1, None);
}

#[tokio::test]
async fn a_standing_cap_is_set_shown_warned_of_reached_and_removed() {
    let stage = Stage::set(json).await;
    let keys = &stage.keys.client;
    let scope = CapScope::PersonDay(PersonId::local());
    let cap = |limit, spent| Caps { caps: vec![Cap { scope: scope.clone(), limit, spent }] };
    let limit = Amount::Tokens(1200);
    assert_eq!(keys.set_caps(&cap(limit, 99)).await.unwrap(), cap(limit, 0));
    let minted = stage.keys.mint(None).await;
    assert_eq!(stage.ask(&minted.pass).await.status, StatusCode::OK);
    assert_eq!(keys.caps().await.unwrap(), cap(limit, 1100));
    let renewed = keys.renew(std::slice::from_ref(&minted.id)).await.unwrap();
    assert_eq!(renewed.warnings.len(), 1);
    assert_eq!(renewed.warnings[0].reached.cap, "the day's budget of local");
    assert!(keys.renew(std::slice::from_ref(&minted.id)).await.unwrap().warnings.is_empty());
    assert_eq!(stage.ask(&minted.pass).await.status, StatusCode::OK);
    let ready = keys.ready(&PersonId::local(), &[SlotName::anthropic()]).await.unwrap();
    assert_eq!((ready.missing.len(), ready.spent.len(), ready.spent[0].spent), (0, 1, 2200));
    assert_eq!(stage.ask(&minted.pass).await.status, StatusCode::PAYMENT_REQUIRED);
    assert!(keys.remove_caps(&[scope]).await.unwrap().caps.is_empty());
    assert_eq!(stage.ask(&minted.pass).await.status, StatusCode::OK);
    let nowhere = Cap { scope: CapScope::SlotMonth(SlotName::parse("nowhere").unwrap()), limit, spent: 0 };
    assert!(keys.set_caps(&Caps { caps: vec![nowhere] }).await.unwrap_err().to_string().contains("nowhere"));
}

#[tokio::test]
async fn a_budget_in_dollars_needs_a_price_and_holds_nobody_back_who_is_not_billed() {
    let unpriced = Stage::set(json).await;
    let minted = capped(&unpriced, Amount::UsdMicros(1_000_000)).await;
    // The model of these tests' small message has no price.
    let refused = unpriced.ask(&minted.pass).await;
    assert_eq!(refused.status, StatusCode::PAYMENT_REQUIRED);
    assert!(refused.text().contains("the price table does not know this model"), "{}", refused.text());
    assert!(unpriced.upstream.seen().is_empty());

    let subscribed = Stage::with(Kind::Subscription, TOKEN, Limits::default(), json).await;
    let minted = capped(&subscribed, Amount::UsdMicros(1)).await;
    for _ in 0..2 {
        assert_eq!(subscribed.ask(&minted.pass).await.status, StatusCode::OK);
    }
    let used = closed(&subscribed, &minted).await.0;
    assert_eq!((used[0].cost_micros, used[0].unpriced, used[0].input), (0, 0, 2000));
}

#[tokio::test]
async fn a_pass_for_some_models_opens_no_other_and_no_request_that_is_unclear_goes_on() {
    let stage = Stage::set(json).await;
    let wanted = MintRequest { models: vec!["claude-*".into()], ..wanted(None) };
    let minted = stage.keys.client.mint(&wanted).await.unwrap();
    let ask = async |body: &str| {
        call(request(Method::POST, &stage.keys.url("/anthropic/v1/messages"), Some(&minted.pass), body)).await
    };
    for (body, status) in [
        (r#"{"model":"claude-x"}"#, 200),
        (r#"{"model":"other"}"#, 403),
        (r#"{"messages":[]}"#, 403),
        (r#"{"model":"claude-x","tools":[{"type":"advisor","model":"other"}]}"#, 403),
        (r#"{"model":"claude-x","model":"other"}"#, 400),
        (r#"{"model":7}"#, 400),
        (r#"{"model":"claude-x""#, 400),
        ("", 400),
    ] {
        let before = stage.upstream.seen().len();
        let answer = ask(body).await;
        assert_eq!(answer.status.as_u16(), status, "{body}: {}", answer.text());
        assert_eq!(stage.upstream.seen().len(), before + usize::from(status == 200), "{body}");
    }
    let why = closed(&stage, &minted).await.1.unwrap();
    assert_eq!(why.kind, RefusalKind::Model);
}

#[tokio::test]
async fn a_long_request_is_not_whole_at_the_provider_before_it_is_admitted() {
    let stage = Stage::set(json).await;
    let spent = capped(&stage, Amount::Tokens(0)).await;
    let others = MintRequest { models: vec!["claude-*".into()], ..wanted(None) };
    let others = stage.keys.client.mint(&others).await.unwrap();
    let open = stage.keys.mint(None).await;
    for (minted, status) in [(&spent, 402), (&others, 403), (&open, 200)] {
        for known in [true, false] {
            let start = r#"{"model":"m","x":""#;
            let body = format!("{start}{}\"}}", "y".repeat(3_000_000));
            let mut request = message(&stage.keys, &minted.pass);
            let answer = if known {
                *request.body_mut() = Full::new(Bytes::from(body.clone())).boxed_unsync();
                call(request).await
            } else {
                let (sender, fed) = fed();
                *request.body_mut() = fed;
                let text = Bytes::from(body.clone());
                let feed = async {
                    for piece in (0..text.len()).step_by(100_000) {
                        let end = text.len().min(piece + 100_000);
                        if sender.send(text.slice(piece..end)).await.is_err() {
                            break;
                        }
                    }
                    drop(sender);
                };
                tokio::join!(call(request), feed).0
            };
            assert_eq!(answer.status.as_u16(), status, "{}", answer.text());
            let seen = stage.upstream.seen();
            match status {
                // What is spent is known before anything is sent, which model is asked for only at the end.
                402 => assert!(seen.is_empty()),
                403 => assert!(seen.iter().all(|seen| !seen.whole)),
                _ => {
                    let seen = seen.last().unwrap();
                    assert_eq!((seen.whole, seen.length), (true, body.len() as u64));
                }
            }
        }
    }
}

#[tokio::test]
async fn many_callers_together_go_over_a_cap_by_less_than_one_call() {
    let stage = Arc::new(Stage::set(json).await);
    let run = RunId::random();
    let cap = Some(Amount::UsdMicros(40_000));
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..30 {
        let wanted = MintRequest { run: run.clone(), cap, ..wanted(None) };
        let minted = stage.keys.client.mint(&wanted).await.unwrap();
        let stage = stage.clone();
        all.spawn(async move {
            let body = r#"{"model":"claude-opus-5","max_tokens":400,"messages":[]}"#;
            let url = stage.keys.url("/anthropic/v1/messages");
            call(request(Method::POST, &url, Some(&minted.pass), body)).await.status.as_u16()
        });
    }
    let statuses = all.join_all().await;
    let made = statuses.iter().filter(|status| **status == 200).count();
    assert!(statuses.iter().all(|status| [200, 402].contains(status)), "{statuses:?}");
    let query = UsageQuery { run: Some(run), ..UsageQuery::default() };
    let spent = stage.keys.client.usage(&query).await.unwrap().rows[0].cost_micros;
    // 7,500 each.
    assert_eq!((made, spent), (6, 45_000));
}

#[tokio::test]
async fn the_books_are_asked_by_person_run_slot_model_and_day() {
    let stage = Stage::set(json).await;
    let minted = stage.keys.mint(None).await;
    stage.ask(&minted.pass).await;
    let rehearsal = stage.keys.mint(Some("rehearsal")).await;
    let url = stage.keys.url("/rehearsal/v1/messages");
    let body = r#"{"model":"m","max_tokens":10,"stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    assert_eq!(call(request(Method::POST, &url, Some(&rehearsal.pass), body)).await.status, StatusCode::OK);
    let query = UsageQuery { by: "slot,person,day".into(), ..UsageQuery::default() };
    let usage = until("both calls are booked", || async {
        let usage = stage.keys.client.usage(&query).await.unwrap();
        if usage.rows.len() == 2 { Ok(usage) } else { Err(format!("{usage:?}")) }
    })
    .await;
    let shown: Vec<_> = usage
        .rows
        .iter()
        .map(|row| {
            (row.slot.as_ref().unwrap().as_str(), row.person.clone(), row.calls, row.failed, row.cost_micros)
        })
        .collect();
    assert_eq!(shown[0], ("anthropic", Some(PersonId::local()), 1, 0, 7500));
    assert_eq!(shown[1], ("rehearsal", Some(PersonId::local()), 1, 0, 0));
    assert!(usage.rows[1].output > 0 && usage.rows.iter().all(|row| row.day.is_some()));
    let wrong = UsageQuery { by: "colour".into(), ..UsageQuery::default() };
    assert!(stage.keys.client.usage(&wrong).await.unwrap_err().to_string().contains("`by` takes"));
}
