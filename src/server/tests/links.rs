use std::time::{Duration, Instant};

use super::support::TestCore;
use crate::server::sessions::{LINK_LIFE, LINKS, SESSION_IDLE, SESSION_LIFE, SESSIONS, Sessions};

#[tokio::test]
async fn a_link_signs_a_browser_in_once() {
    let core = TestCore::start().await;
    let made = core.post("/api/links", &[("authorization", &core.bearer())], "{}").await.json();
    assert_eq!(made["expires_in_seconds"], 600);
    let url = made["url"].as_str().unwrap();
    let path = url.strip_prefix(&format!("http://localhost:{}", core.address.port())).unwrap();

    // What only looks at it does not use it up.
    assert_eq!(core.ask("HEAD", path, &[], None).await.status, 405);
    assert_eq!(core.get(path, &[("sec-purpose", "prefetch")]).await.status, 503);

    let first = core.get(path, &[]).await;
    assert_eq!((first.status, first.header("location")), (303, Some("/")));
    let cookie = first.header("set-cookie").unwrap();
    assert!(cookie.starts_with(&format!("worca_session_{}=", core.address.port())), "{cookie}");
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let pair = cookie.split(';').next().unwrap();
    assert_eq!(core.get("/api/status", &[("cookie", pair)]).await.status, 200);
    assert_eq!(core.get("/api/status", &[("cookie", &format!("a=b; {pair}; c=d"))]).await.status, 200);

    let second = core.get(path, &[]).await;
    assert_eq!(second.status, 403);
    assert!(second.header("set-cookie").is_none() && second.body.contains("worca container open"));
}

#[tokio::test]
async fn a_page_learns_without_an_error_whether_it_is_signed_in() {
    let core = TestCore::start().await;
    let cookie = core.cookie().await;
    let foreign = [("cookie", cookie.as_str()), ("sec-fetch-site", "cross-site")];
    for (headers, signed_in) in [
        (&[][..], false),
        (&[("cookie", "worca_session_1=x")][..], false),
        (&foreign[..], false),
        (&[("cookie", cookie.as_str())][..], true),
    ] {
        let answer = core.get("/api/session", headers).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.json(), serde_json::json!({ "signed_in": signed_in }), "{headers:?}");
    }
}

#[tokio::test]
async fn a_wrong_or_missing_link_signs_nobody_in() {
    let core = TestCore::start().await;
    for path in ["/sign-in", "/sign-in?token=", "/sign-in?token=x", "/sign-in?x=y&token=%00"] {
        let answer = core.get(path, &[]).await;
        assert_eq!(answer.status, 403, "{path}");
        assert!(answer.header("set-cookie").is_none());
    }
    assert_eq!(core.get("/api/status", &[("cookie", "worca_session_1=x")]).await.status, 401);
}

#[test]
fn a_link_that_is_ten_minutes_old_is_dead() {
    let sessions = Sessions::default();
    let now = Instant::now();
    let (early, late) = (sessions.make_link(now), sessions.make_link(now));
    let just_before = now + LINK_LIFE - Duration::from_millis(1);
    assert!(sessions.sign_in(early.expose(), just_before).is_some());
    assert!(sessions.sign_in(late.expose(), now + LINK_LIFE).is_none());
    assert!(sessions.sign_in(late.expose(), now).is_none(), "trying it too late uses it up");
}

#[test]
fn a_session_ends_when_nobody_uses_it_and_after_a_week_in_any_case() {
    let sessions = Sessions::default();
    let start = Instant::now();
    let sign_in = |now| sessions.sign_in(sessions.make_link(now).expose(), now).unwrap();
    let (idle, used) = (sign_in(start), sign_in(start));
    assert!(sessions.find(idle.expose(), start + SESSION_IDLE - Duration::from_secs(1)).is_some());
    assert!(sessions.find(idle.expose(), start + SESSION_IDLE * 2).is_none());
    assert!(sessions.find(idle.expose(), start + SESSION_IDLE).is_none(), "an ended session stays ended");
    let mut now = start;
    while now < start + SESSION_LIFE - SESSION_IDLE {
        now += SESSION_IDLE / 2;
        assert!(sessions.find(used.expose(), now).is_some());
    }
    assert!(sessions.find(used.expose(), start + SESSION_LIFE).is_none());
}

#[test]
fn links_and_sessions_are_capped_and_the_oldest_goes() {
    let sessions = Sessions::default();
    let now = Instant::now();
    let links: Vec<_> = (0..=LINKS).map(|_| sessions.make_link(now)).collect();
    assert!(sessions.sign_in(links[0].expose(), now).is_none());
    assert!(sessions.sign_in(links[1].expose(), now).is_some());

    let opened: Vec<_> = (0..=SESSIONS)
        .map(|place| {
            let now = now + Duration::from_secs(u64::try_from(place).unwrap() + 1);
            sessions.sign_in(sessions.make_link(now).expose(), now).unwrap()
        })
        .collect();
    let later = now + Duration::from_secs(1000);
    assert_eq!(sessions.count(later), SESSIONS);
    assert!(sessions.find(opened[0].expose(), later).is_none());
    assert!(sessions.find(opened[SESSIONS].expose(), later).is_some());
}
