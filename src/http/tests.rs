use super::*;
use axum::routing::{get, post};
use axum::{Json, Router};

/// Serves `app` on a free loopback port until the returned set is dropped.
async fn serve(app: Router) -> (String, tokio::task::JoinSet<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { axum::serve(listener, app).await.unwrap() });
    (base, tasks)
}

#[tokio::test]
async fn a_call_carries_the_bearer_and_reads_json() {
    let app = Router::new().route(
        "/echo",
        post(|headers: axum::http::HeaderMap, Json(body): Json<serde_json::Value>| async move {
            Json(serde_json::json!({"body": body, "auth": headers["authorization"].to_str().unwrap()}))
        }),
    );
    let (base, _tasks) = serve(app).await;
    let client = Client::new(&base).unwrap().with_bearer(Secret::new("t0ken".into()));
    let answer: serde_json::Value = client.post("/echo", &serde_json::json!({"a": 1})).await.unwrap();
    assert_eq!(answer, serde_json::json!({"body": {"a": 1}, "auth": "Bearer t0ken"}));
}

#[tokio::test]
async fn a_refusal_speaks_with_the_services_own_sentence() {
    let app = Router::new().route(
        "/no",
        get(|| async {
            let body = serde_json::json!({"error": {"code": "not-mounted", "message": "it is\u{1b}[31m not there", "hint": "mount it", "exit": 78}});
            (axum::http::StatusCode::CONFLICT, Json(body))
        }),
    );
    let (base, _tasks) = serve(app).await;
    let error = Client::new(&base).unwrap().get::<serde_json::Value>("/no").await.unwrap_err();
    assert_eq!(error.to_string(), "it is [31m not there");
    assert_eq!((error.hint().as_deref(), error.exit()), (Some("mount it"), Exit::Refused));
}

#[tokio::test]
async fn an_answer_over_the_limit_and_one_that_is_not_json_are_errors() {
    let app = Router::new()
        .route("/large", get(|| async { vec![b' '; ANSWER_BYTES + 1] }))
        .route("/text", get(|| async { "secret text" }));
    let (base, _tasks) = serve(app).await;
    let client = Client::new(&base).unwrap();
    assert!(matches!(client.get::<serde_json::Value>("/large").await, Err(CallError::Answer { .. })));
    let error = client.get::<serde_json::Value>("/text").await.unwrap_err();
    assert!(matches!(error, CallError::Answer { .. }) && !error.to_string().contains("secret"), "{error}");
}

#[tokio::test]
async fn a_silent_service_ends_by_the_time_limit_and_a_closed_port_at_once() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let client = Client::new(&base).unwrap().with_time_limit(Duration::from_millis(50));
    assert!(matches!(client.get::<()>("/").await, Err(CallError::TooSlow { .. })));
    drop(listener);
    assert!(matches!(client.get::<()>("/").await, Err(CallError::Unreachable { .. })));
}

#[test]
fn only_plain_http_origins_are_addresses() {
    for wrong in ["", "localhost:4317", "https://core", "http://core/path", "file:///etc/passwd"] {
        assert!(Client::new(wrong).is_err(), "{wrong}");
    }
    assert_eq!(Client::new("http://core:4317/").unwrap().base(), "http://core:4317");
}
