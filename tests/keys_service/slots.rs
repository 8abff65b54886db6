//! Slots: where they go, what they offer, how their keys are put on, and whose keys those are.

use crate::ok;
use crate::support::{API_KEY, Answer, Place, Running, Seen, TOKEN, Upstream, call, request, wanted};
use hyper::{Method, StatusCode};
use worca::failure::Explain as _;
use worca::ids::PersonId;
use worca::keys::client::{MintRequest, Minted};
use worca::keys::credential::Kind;
use worca::keys::slot::{Endpoint, SlotName};
use worca::secret::Secret;

const OPENAI_KEY: &str = "sk-proj-canary-aVeryLongKeyThatIsEasyToFind-MNOP";

fn slot(name: &str) -> SlotName {
    SlotName::parse(name).unwrap()
}

fn person(name: &str) -> PersonId {
    PersonId::parse(name).unwrap()
}

fn at(upstream: &Upstream, prefix: &str) -> Endpoint {
    Endpoint::new(upstream.origin.clone(), prefix).unwrap()
}

async fn mint(keys: &Running, model: &str, whose: &str) -> Minted {
    let wanted = MintRequest { person: person(whose), ..wanted(Some(model)) };
    keys.client.mint(&wanted).await.unwrap()
}

async fn post(keys: &Running, path: &str, pass: &Secret) -> Answer {
    call(request(Method::POST, &keys.url(path), Some(pass), r#"{"model":"m","messages":[]}"#)).await
}

/// The headers in which a credential could stand, as the provider saw them.
fn credentials(seen: &Seen) -> Vec<(String, String)> {
    let mut found: Vec<_> = seen
        .headers
        .iter()
        .filter(|(name, _)| ["authorization", "x-api-key", "cookie"].contains(&name.as_str()))
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    found.sort();
    found
}

#[tokio::test]
async fn each_slot_reaches_its_own_place_with_its_own_key_in_its_own_way() {
    let place = Place::new();
    let (openai, gateway, local) =
        (Upstream::start(ok).await, Upstream::start(ok).await, Upstream::start(ok).await);
    let local_person = PersonId::local();
    place.put_of(&slot("openai"), &local_person, Kind::ApiKey, &at(&openai, ""), OPENAI_KEY);
    place.put_of(&slot("gateway"), &local_person, Kind::ApiKey, &at(&gateway, "/a/b"), "gateway-key");
    let keys = place
        .start_with(&format!(
            "version: 1\nslots:\n  openai: {{origin: '{}'}}\n  gateway: {{origin: '{}', prefix: /a/b, api: anthropic, auth: x-api-key}}\n  local: {{origin: '{}'}}\n",
            openai.origin, gateway.origin, local.origin
        ))
        .await;
    for (name, path, upstream, target, wanted) in [
        (
            "openai",
            "/v1/chat/completions",
            &openai,
            "/v1/chat/completions",
            vec![("authorization", format!("Bearer {OPENAI_KEY}"))],
        ),
        (
            "gateway",
            "/v1/messages?beta=true",
            &gateway,
            "/a/b/v1/messages?beta=true",
            vec![("x-api-key", "gateway-key".to_owned())],
        ),
        ("local", "/v1/responses", &local, "/v1/responses", vec![]),
    ] {
        let minted = mint(&keys, &format!("{name}/some-model"), "local").await;
        let answer = post(&keys, &format!("/{name}{path}"), &minted.pass).await;
        assert_eq!(answer.status, StatusCode::OK, "{name}: {}", answer.text());
        let seen = upstream.only();
        assert_eq!(seen.target, target, "{name}");
        let found: Vec<_> = credentials(&seen);
        let wanted: Vec<_> = wanted.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        assert_eq!(found, wanted, "{name}");
    }
    assert_eq!((openai.seen().len(), gateway.seen().len(), local.seen().len()), (1, 1, 1));
}

#[tokio::test]
async fn a_slot_offers_nothing_of_an_api_that_it_does_not_speak() {
    let place = Place::new();
    let upstream = Upstream::start(ok).await;
    place.put_of(&slot("openai"), &PersonId::local(), Kind::ApiKey, &at(&upstream, ""), OPENAI_KEY);
    let keys =
        place.start_with(&format!("version: 1\nslots:\n  openai: {{origin: '{}'}}\n", upstream.origin)).await;
    let minted = mint(&keys, "openai/m", "local").await;
    for path in [
        "/openai/v1/messages",
        "/openai/v1/files",
        "/openai/v1/organization/admin_api_keys",
        "/openai/v1/../v1/responses",
    ] {
        assert_eq!(post(&keys, path, &minted.pass).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    for path in ["/anthropic/v1/messages", "/local/v1/responses", "/rehearsal/v1/messages"] {
        assert_eq!(post(&keys, path, &minted.pass).await.status, StatusCode::FORBIDDEN, "{path}");
    }
    assert!(upstream.seen().is_empty());
    assert_eq!(post(&keys, "/openai/v1/responses", &minted.pass).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_slot_without_a_place_is_refused_by_name_of_the_file_that_gives_it_one() {
    let place = Place::new();
    let keys = place.start_with("version: 1\n").await;
    let error = keys.client.mint(&wanted(Some("local/m"))).await.unwrap_err();
    let file = place.folder.path().join("slots.yaml");
    let told = format!(
        "slot `local` goes nowhere yet: its `origin` belongs into the slots file `{}`",
        file.display()
    );
    assert_eq!((error.code(), error.to_string()), ("keys-refused", told.clone()));
    let ready = keys.client.ready(&PersonId::local(), &[slot("local")]).await.unwrap();
    assert_eq!(ready.missing[0].why, told);
}

#[tokio::test]
async fn each_persons_agents_use_that_persons_key_and_nobody_elses() {
    let place = Place::new();
    let upstream = Upstream::start(ok).await;
    let (ada, bob) = (person("ada"), person("bob@example.com"));
    let here = at(&upstream, "");
    place.put_of(&slot("anthropic"), &ada, Kind::ApiKey, &here, API_KEY);
    place.put_of(&slot("anthropic"), &bob, Kind::Subscription, &here, TOKEN);
    let keys = place
        .start_with(&format!("version: 1\nslots:\n  anthropic: {{origin: '{}'}}\n", upstream.origin))
        .await;
    for (whose, wanted) in [
        ("ada", ("x-api-key".to_owned(), API_KEY.to_owned())),
        ("bob@example.com", ("authorization".to_owned(), format!("Bearer {TOKEN}"))),
        ("ada", ("x-api-key".to_owned(), API_KEY.to_owned())),
    ] {
        let minted = mint(&keys, "opus", whose).await;
        assert_eq!(
            post(&keys, "/anthropic/v1/messages", &minted.pass).await.status,
            StatusCode::OK,
            "{whose}"
        );
        assert_eq!(credentials(&upstream.seen().pop().unwrap()), [wanted], "{whose}");
    }
    // `local` has none of its own, and neither has anybody whose name is near another's.
    for other in ["local", "ada.", "bob", "bob@example.co"] {
        let asked = MintRequest { person: person(other), ..wanted(None) };
        let error = keys.client.mint(&asked).await.unwrap_err();
        assert_eq!(error.code(), "no-credential", "{other}");
        let ready = keys.client.ready(&person(other), &[slot("anthropic")]).await.unwrap();
        assert_eq!(ready.missing.len(), 1, "{other}");
        assert!(!format!("{error} {ready:?}").contains("ada`"), "{error}");
    }
    // A pass whose person's key was taken away does not fall back to another's.
    let minted = mint(&keys, "opus", "ada").await;
    place.vault().remove(&slot("anthropic"), &ada).unwrap();
    let answer = crate::support::until("the removal counts", || async {
        let answer = post(&keys, "/anthropic/v1/messages", &minted.pass).await;
        if answer.status == StatusCode::OK { Err("still used".to_owned()) } else { Ok(answer) }
    })
    .await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert!(upstream.seen().iter().all(|seen| {
        let held = credentials(seen);
        held.len() == 1 && !held[0].1.contains("wp_")
    }));
}

#[tokio::test]
async fn a_key_goes_neither_to_another_origin_nor_below_another_prefix_than_its_own() {
    let place = Place::new();
    let (theirs, evil) = (Upstream::start(ok).await, Upstream::start(ok).await);
    place.put_of(
        &slot("gateway"),
        &PersonId::local(),
        Kind::ApiKey,
        &at(&theirs, "/tenant-1"),
        "gateway-key",
    );
    for (origin, prefix) in [
        (&evil.origin, "/tenant-1"),
        (&theirs.origin, "/tenant-2"),
        (&theirs.origin, "/"),
        (&theirs.origin, "/tenant-1/x"),
    ] {
        let keys = place
            .start_with(&format!(
                "version: 1\nslots:\n  gateway: {{origin: '{origin}', prefix: {prefix}, api: anthropic, auth: bearer}}\n"
            ))
            .await;
        let error = keys.client.mint(&wanted(Some("gateway/m"))).await.unwrap_err();
        assert_eq!(error.code(), "no-credential", "{origin}{prefix}");
        assert!(error.to_string().contains("/tenant-1`, and the slot is at"), "{error}");
        keys.end().await;
    }
    assert!(theirs.seen().is_empty() && evil.seen().is_empty());
}
