use axum::http::Method;

use super::support::TestCore;
use crate::ids::RunId;
use crate::server::route::{Access, table};

/// Each path with something in its place, and a body that its handler refuses or ignores.
fn concrete(path: &str, run: &RunId) -> String {
    path.replace("{id}", run.as_str()).replace("{name}", "normal")
}

#[tokio::test]
async fn every_path_is_open_to_exactly_those_that_its_row_names() {
    let core = TestCore::start().await;
    let run = core.run().await;
    let cookie = core.cookie().await;
    let bearer = core.bearer();
    let own = format!("http://localhost:{}", core.address.port());
    let cookie = cookie.as_str();
    let callers: [(&str, Vec<(&str, &str)>); 10] = [
        ("none", vec![]),
        ("bad token", vec![("authorization", "Bearer nonsense-nonsense-nonsense")]),
        ("empty token", vec![("authorization", "Bearer ")]),
        ("good token", vec![("authorization", &bearer)]),
        ("cookie", vec![("cookie", cookie)]),
        ("cookie, own origin", vec![("cookie", cookie), ("origin", &own), ("sec-fetch-site", "same-origin")]),
        ("cookie, foreign origin", vec![("cookie", cookie), ("origin", "http://localhost:1")]),
        ("cookie, other site", vec![("cookie", cookie), ("sec-fetch-site", "same-site")]),
        ("bad token and cookie", vec![("cookie", cookie), ("authorization", "Bearer nonsense")]),
        ("good token, foreign host", vec![("authorization", &bearer), ("host", "evil.invalid:4317")]),
    ];
    for route in table() {
        let path = concrete(route.path, &run);
        for (who, headers) in &callers {
            let body = (route.method != Method::GET).then_some("{}");
            let answer = core.ask(route.method.as_str(), &path, headers, body).await;
            let reads = route.method == Method::GET;
            // The books are the key service's, and none answers here.
            let books = ["/api/costs", "/api/budgets"].contains(&route.path);
            let expected: &[u16] = match (*who, route.access) {
                ("good token" | "cookie" | "cookie, own origin", Access::Read) if books => &[502],
                ("good token, foreign host", _) => &[421],
                (_, Access::Open) => &[200, 403], // 403: a sign-in without a link
                ("good token", _) => &[200, 201, 202, 400, 404, 409],
                ("cookie" | "cookie, own origin", Access::Read) if reads => &[200, 404],
                ("cookie" | "cookie, own origin", _) => &[403],
                ("cookie, foreign origin" | "cookie, other site", _) => &[403],
                _ => &[401],
            };
            assert!(expected.contains(&answer.status), "{who} {} {path}: {answer:?}", route.method);
            if route.access == Access::Open && answer.status == 403 {
                assert_eq!(route.path, "/sign-in");
            }
        }
    }
}

#[tokio::test]
async fn c108_core_answers_to_loopback_names_with_any_port_and_to_no_other_name() {
    let core = TestCore::start().await;
    for host in [
        "127.0.0.1:4317",
        "localhost:4317",
        "[::1]:4317",
        "LOCALHOST:4317",
        "localhost:5000",
        "localhost.:4317",
        "localhost",
        "127.0.0.2",
        "box.example",
        "BOX.example:8443",
    ] {
        assert_eq!(core.get("/health", &[("host", host)]).await.status, 200, "{host}");
    }
    for host in [
        "evil.invalid:4317",
        "127.0.0.1.evil.invalid:4317",
        "localhost.evil.invalid",
        "evil.invalid",
        "10.0.0.1",
        "0.0.0.0:4317",
        "[::1].evil.invalid",
        "[::2]",
        "localhost:99999",
        "localhost:x",
        "user@localhost",
        "",
        "localhost,evil.invalid",
        "sub.box.example",
        "<missing>",
    ] {
        let answer = core.get("/health", &[("host", host)]).await;
        assert!([421, 400].contains(&answer.status), "{host}: {answer:?}");
    }
    let two = core.get("/health", &[("host", "localhost"), ("Host", "evil.invalid")]).await;
    assert_eq!(two.status, 421, "{two:?}");
    let line = core.get("http://evil.invalid/health", &[]).await;
    assert_eq!(line.status, 421, "{line:?}");
}

#[tokio::test]
async fn c109_a_change_needs_the_token_and_no_page_of_another_site_can_ask_for_it() {
    let core = TestCore::start().await;
    let cookie = core.cookie().await;
    let bearer = core.bearer();
    let token = ("authorization", bearer.as_str());

    // Without a credential, and with the browser's only: nothing, whatever the browser says of the origin.
    for path in ["/api/status", "/api/runs", "/api/openapi.json"] {
        assert_eq!(core.get(path, &[("sec-fetch-site", "cross-site")]).await.status, 401, "{path}");
        let with_cookie = [("sec-fetch-site", "cross-site"), ("cookie", cookie.as_str())];
        assert_eq!(core.get(path, &with_cookie).await.status, 403, "{path}");
    }
    for origin in ["null", "http://localhost.evil.invalid:4317", "file://", "", "http://localhost:4317:80"] {
        for credential in [token, ("cookie", cookie.as_str())] {
            let answer = core.post("/api/links", &[("origin", origin), credential], "{}").await;
            assert_eq!((answer.status, answer.code().as_str()), (403, "origin-foreign"), "{origin}");
        }
    }
    // No path hands out the token, and links are made for the token alone.
    let answer = core.post("/api/links", &[("cookie", cookie.as_str())], "{}").await;
    assert_eq!((answer.status, answer.code().as_str()), (403, "session-reads-only"));
    for path in ["/", "/health", "/assets/page.js", "/api/status"] {
        let answer = core.get(path, &[token]).await;
        assert!(!answer.body.contains(core.token.expose()), "{path}");
    }
    // The command line: the token and no origin.
    assert_eq!(core.post("/api/links", &[token], "{}").await.status, 201);
    // No other origin is invited.
    let options = core.ask("OPTIONS", "/api/runs", &[("origin", "http://evil.invalid")], None).await;
    assert_eq!(options.status, 405);
    assert!(options.header("access-control-allow-origin").is_none());
}

#[tokio::test]
async fn c112_health_says_ok_and_nothing_else() {
    let core = TestCore::start().await;
    let answer = core.get("/health", &[]).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, r#"{"status":"ok"}"#));
    assert!(answer.header("server").is_none());
    assert!(answer.header("set-cookie").is_none());
}

#[tokio::test]
async fn every_answer_carries_the_security_headers_errors_too() {
    let core = TestCore::start().await;
    let evil = [("host", "evil.invalid")];
    let requests: [(&str, &[(&str, &str)]); 5] =
        [("/", &[]), ("/api/runs", &[]), ("/nothing", &[]), ("/", &evil), ("/sign-in?token=x", &[])];
    for (path, headers) in requests {
        let answer = core.get(path, headers).await;
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
}

#[tokio::test]
async fn two_authorization_headers_are_refused() {
    let core = TestCore::start().await;
    let bearer = core.bearer();
    let twice = [("authorization", bearer.as_str()), ("Authorization", "Bearer other")];
    assert_eq!(core.get("/api/status", &twice).await.status, 401);
    assert_eq!(core.get("/api/status", &twice[..1]).await.status, 200);
}
