//! The control part, and the keys that stand behind it.

use crate::support::{API_KEY, CONTROL, Place, Stage, TOKEN, Upstream, call, request, until, wanted};
use hyper::{Method, StatusCode};
use worca::failure::{Exit, Explain as _};
use worca::ids::PersonId;
use worca::keys::client::{KeysClient, KeysError, MintRequest, Ready};
use worca::keys::credential::Kind;
use worca::keys::serve::Limits;
use worca::keys::slot::{Origin, SlotName};
use worca::secret::Secret;

use crate::ok;

#[tokio::test]
async fn the_control_part_is_closed_without_its_secret_also_to_a_pass() {
    let stage = Stage::set(ok).await;
    let minted = stage.keys.mint(None).await;
    let mint = serde_json::to_string(&wanted(None)).unwrap();
    let mut bodies = Vec::new();
    for bearer in
        [None, Some(&minted.pass), Some(&Secret::new("x".into())), Some(&Secret::new(API_KEY.into()))]
    {
        for (method, path) in [
            (Method::GET, "/control/status".to_owned()),
            (Method::POST, "/control/passes".into()),
            (Method::POST, "/control/passes/renew".into()),
            (Method::DELETE, format!("/control/passes/{}", minted.id)),
            (Method::GET, "/control/nothing".into()),
        ] {
            let answer = call(request(method, &stage.keys.url(&path), bearer, &mint)).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path}");
            bodies.push(answer.text());
        }
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    assert_eq!(stage.keys.client.status().await.unwrap().passes, 1);
    assert_eq!(stage.ask(&minted.pass).await.status, StatusCode::OK);
    let wrong = KeysClient::new(&stage.keys.url(""), &Secret::new("wrong".into())).unwrap();
    let error = wrong.status().await.unwrap_err();
    assert!(matches!(error, KeysError::Control(_)) && error.exit() == Exit::Refused, "{error}");
}

#[tokio::test]
async fn a_pass_is_refused_with_a_reason_where_it_would_open_nothing() {
    let place = Place::new();
    let limits = Limits { passes: 1, ..Limits::default() };
    let keys = place.start(Origin::anthropic(), limits).await;
    let error = keys.client.mint(&wanted(None)).await.unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        ("no-credential", "no key is saved for slot `anthropic`")
    );
    let mut unknown = wanted(None);
    unknown.slot = SlotName::parse("nowhere").unwrap();
    let refused = |error: KeysError| match error {
        KeysError::Refused { code, message } => (code, message),
        other => panic!("{other}"),
    };
    let (code, _) = refused(keys.client.mint(&unknown).await.unwrap_err());
    assert_eq!(code, "unknown-slot");
    let (code, message) = refused(keys.client.mint(&wanted(Some("rehearsal/nothing"))).await.unwrap_err());
    assert_eq!(code, "unknown-scenario");
    assert!(message.contains("hello") && message.contains("slow"), "{message}");
    keys.mint(Some("rehearsal")).await;
    let (code, _) = refused(keys.client.mint(&wanted(Some("rehearsal"))).await.unwrap_err());
    assert_eq!(code, "too-many-passes");
}

#[tokio::test]
async fn what_core_says_is_read_strictly() {
    let stage = Stage::set(ok).await;
    let control = Secret::new(CONTROL.into());
    for body in ["", "{", "[]", r#"{"ids":["k1"]}"#, r#"{"ids":[],"more":1}"#, r#"{"ids":["../../x"]}"#] {
        let answer =
            call(request(Method::POST, &stage.keys.url("/control/passes/renew"), Some(&control), body)).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body}");
    }
    let large = format!("{{\"ids\":[],\"{}\":1}}", "x".repeat(300 * 1024));
    let answer =
        call(request(Method::POST, &stage.keys.url("/control/passes/renew"), Some(&control), &large)).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    let answer = call(request(
        Method::POST,
        &stage.keys.url("/control/passes/renew"),
        Some(&control),
        r#"{"ids":[]}"#,
    ))
    .await;
    assert_eq!((answer.status, answer.text().as_str()), (StatusCode::OK, r#"{"alive":[],"gone":[]}"#));
}

#[tokio::test]
async fn a_key_saved_or_removed_by_another_process_counts_for_the_running_service() {
    let stage = Stage::set(ok).await;
    let minted = stage.keys.mint(None).await;
    assert_eq!(stage.ask(&minted.pass).await.status, StatusCode::OK);
    stage.place.vault().remove(&SlotName::anthropic(), &PersonId::local()).unwrap();
    let answer = until("the removal counts", || async {
        let answer = stage.ask(&minted.pass).await;
        if answer.status == StatusCode::OK { Err("still used".into()) } else { Ok(answer) }
    })
    .await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert!(answer.text().contains("no key is saved for slot `anthropic`"), "{}", answer.text());
    let status = stage.keys.client.status().await.unwrap();
    let ready = |name| status.slots.iter().find(|slot| slot.slot.as_str() == name).unwrap().ready;
    assert!(!ready("anthropic") && ready("rehearsal"), "{status:?}");
    stage.place.put(Kind::Subscription, &stage.upstream.origin, TOKEN);
    until("the new key counts", || async {
        let status = stage.keys.client.status().await.unwrap();
        if status.slots[0].kind == Some(Kind::Subscription) { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
    assert_eq!(stage.ask(&minted.pass).await.status, StatusCode::OK);
    assert_eq!(stage.upstream.seen().pop().unwrap().headers["authorization"], format!("Bearer {TOKEN}"));
}

#[tokio::test]
async fn a_key_never_goes_to_an_origin_that_it_was_not_saved_for() {
    let place = Place::new();
    place.put(Kind::ApiKey, &Origin::anthropic(), API_KEY);
    let elsewhere = Upstream::start(ok).await;
    let keys = place.start(elsewhere.origin.clone(), Limits::default()).await;
    let error = keys.client.mint(&wanted(None)).await.unwrap_err();
    assert_eq!(error.code(), "no-credential");
    assert!(error.to_string().contains("is for `https://api.anthropic.com`"), "{error}");
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn the_date_of_last_use_is_noted() {
    let stage = Stage::set(ok).await;
    let minted = stage.keys.mint(None).await;
    assert_eq!(stage.place.vault().list().unwrap()[0].last_used, None);
    stage.ask(&minted.pass).await;
    until("the date is written", || async {
        stage.place.vault().list().unwrap().remove(0).last_used.ok_or("none".to_owned())
    })
    .await;
}

#[tokio::test]
async fn all_that_a_run_would_lack_is_told_at_once_and_nothing_is_given_out_for_it() {
    let stage = Stage::set(ok).await;
    let slots = |names: &[&str]| names.iter().map(|name| SlotName::parse(name).unwrap()).collect::<Vec<_>>();
    let asked = slots(&["anthropic", "nowhere", "rehearsal"]);
    let ready = stage.keys.client.ready(&PersonId::local(), &asked).await.unwrap();
    let missing =
        |ready: &Ready| ready.missing.iter().map(|missing| missing.slot.to_string()).collect::<Vec<_>>();
    assert_eq!(missing(&ready), ["nowhere"]);
    let ada = PersonId::parse("ada").unwrap();
    let ready = stage.keys.client.ready(&ada, &asked).await.unwrap();
    assert_eq!(missing(&ready), ["anthropic", "nowhere"]);
    assert!(ready.missing.iter().all(|missing| !missing.why.is_empty()), "{ready:?}");
    // Nobody's key stands in for another's.
    let theirs = MintRequest { person: ada, ..wanted(None) };
    assert_eq!(stage.keys.client.mint(&theirs).await.unwrap_err().code(), "no-credential");
    assert_eq!(stage.keys.client.status().await.unwrap().passes, 0);
}
