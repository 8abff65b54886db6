use super::*;
use std::path::Path;

/// A scripted engine on a Unix socket: answers `/version`, refuses versioned paths outside `min..=max` as Docker
/// does, and an empty container list inside them.
pub(in crate::container::engine) fn scripted(
    path: &Path,
    min: &'static str,
    max: &'static str,
) -> tokio::task::JoinSet<()> {
    use axum::response::IntoResponse as _;
    let listener = tokio::net::UnixListener::bind(path).unwrap();
    let answer = move |uri: axum::http::Uri| async move {
        if uri.path() == "/version" {
            let version = serde_json::json!({"Version": "29.0.0", "ApiVersion": max, "MinAPIVersion": min, "Os": "linux", "Arch": "amd64"});
            return axum::Json(version).into_response();
        }
        let bad = |message: String| {
            (axum::http::StatusCode::BAD_REQUEST, axum::Json(serde_json::json!({"message": message})))
                .into_response()
        };
        let Some(asked) =
            uri.path().strip_prefix("/v").and_then(|rest| ApiVersion::parse(rest.split('/').next()?))
        else {
            return bad("a path without a version".into());
        };
        if asked < ApiVersion::parse(min).unwrap() {
            return bad(format!("client version {asked} is too old. Minimum supported API version is {min}"));
        }
        if asked > ApiVersion::parse(max).unwrap() {
            return bad(format!("client version {asked} is too new. Maximum supported API version is {max}"));
        }
        axum::Json(serde_json::json!([])).into_response()
    };
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { axum::serve(listener, axum::Router::new().fallback(answer)).await.unwrap() });
    tasks
}

#[tokio::test]
async fn c069_new_and_old_engines_are_spoken_to_in_a_version_that_both_know() {
    let folder = tempfile::tempdir().unwrap();
    for (name, min, max, agreed) in
        [("new", "1.44", "1.52", "1.52"), ("old", "1.12", "1.41", "1.41"), ("newest", "1.44", "1.99", "1.53")]
    {
        let path = folder.path().join(name);
        let _tasks = scripted(&path, min, max);
        let engine = Engine::connect(&Address::Unix(path)).await.unwrap();
        assert_eq!(engine.version.api.to_string(), agreed);
        let listed = engine.docker.list_containers(None).await;
        assert!(listed.as_ref().is_ok_and(Vec::is_empty), "{name}: {listed:?}");
    }
}

#[tokio::test]
async fn c069_an_engine_outside_the_range_is_one_sentence_with_versions() {
    let folder = tempfile::tempdir().unwrap();
    for (name, min, max) in [("old", "1.12", "1.40"), ("new", "1.60", "1.70")] {
        let path = folder.path().join(name);
        let _tasks = scripted(&path, min, max);
        let error = Engine::connect(&Address::Unix(path)).await.unwrap_err();
        let text = format!("Docker Engine 29.0.0 speaks API {min} to {max}; 1.41 to 1.53 is needed");
        assert_eq!(error.to_string(), text);
    }
}

#[tokio::test]
async fn every_kind_of_dead_socket_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("file"), "").unwrap();
    std::os::unix::fs::symlink(at("gone"), at("dangling")).unwrap();
    drop(std::os::unix::net::UnixListener::bind(at("dead")).unwrap());
    let why = async |name: &str| Engine::connect(&Address::Unix(at(name))).await.unwrap_err().to_string();
    assert_eq!(why("missing").await, "not there");
    assert_eq!(why("dangling").await, format!("a link to `{}`, which does not exist", at("gone").display()));
    assert_eq!(why("file").await, "not a socket");
    assert_eq!(why("dead").await, "nothing listens on it");
}

#[tokio::test]
async fn a_server_that_is_no_engine_is_said_to_be_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("web");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        axum::serve(listener, axum::Router::new().fallback(|| async { "hello" })).await.unwrap();
    });
    let error = Engine::connect(&Address::Unix(path)).await.unwrap_err();
    assert!(matches!(error, ConnectError::NotEngine(_)), "{error}");
}
