use super::*;
use crate::container::engine::connect::tests::scripted;

/// A home, a root and a settings folder of its own.
fn surroundings(folder: &Path) -> Surroundings {
    Surroundings {
        home: Some(folder.join("home")),
        docker_config: Some(folder.join("home/.docker")),
        runtime: Some(folder.join("run/user")),
        root: folder.join("root"),
        ..Surroundings::default()
    }
}

fn engine_at(path: &Path) -> tokio::task::JoinSet<()> {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    scripted(path, "1.12", "1.41")
}

fn write_context(surroundings: &Surroundings, name: &str, host: &str) {
    let config = surroundings.docker_config.clone().unwrap();
    let id: String = Sha256::digest(name.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let folder = config.join("contexts/meta").join(id);
    std::fs::create_dir_all(&folder).unwrap();
    let meta = serde_json::json!({"Name": name, "Metadata": {}, "Endpoints": {"docker": {"Host": host, "SkipTLSVerify": false}}});
    std::fs::write(folder.join("meta.json"), meta.to_string()).unwrap();
    std::fs::write(
        config.join("config.json"),
        serde_json::json!({"auths": {}, "currentContext": name}).to_string(),
    )
    .unwrap();
}

#[tokio::test]
async fn c068_the_flag_comes_before_docker_host_before_the_context_before_known_places() {
    let folder = tempfile::tempdir().unwrap();
    let mut from = surroundings(folder.path());
    let socket = |name: &str| folder.path().join(name);
    let _tasks: Vec<_> = ["flag", "host", "context", "root/var/run/docker.sock"]
        .iter()
        .map(|n| engine_at(&socket(n)))
        .collect();
    let url = |name: &str| format!("unix://{}", socket(name).display());

    let found = discover(None, &from).await.unwrap();
    assert_eq!(found.engine.address, Address::Unix(socket("root/var/run/docker.sock")));
    write_context(&from, "desktop-linux", &url("context"));
    assert_eq!(discover(None, &from).await.unwrap().engine.address, Address::Unix(socket("context")));
    from.docker_context = Some("default".into());
    assert_eq!(discover(None, &from).await.unwrap().origin, "Docker");
    from.docker_host = Some(url("host"));
    assert_eq!(discover(None, &from).await.unwrap().engine.address, Address::Unix(socket("host")));
    let flag = url("flag");
    assert_eq!(discover(Some(&flag), &from).await.unwrap().engine.address, Address::Unix(socket("flag")));
}

#[tokio::test]
async fn c068_colima_orbstack_rootless_docker_and_podman_are_found_by_themselves() {
    for place in [
        "home/.docker/run/docker.sock",
        "home/.docker/desktop/docker.sock",
        "home/.colima/default/docker.sock",
        "home/.config/colima/default/docker.sock",
        "home/.orbstack/run/docker.sock",
        "run/user/docker.sock",
        "run/user/podman/podman.sock",
        "root/run/podman/podman.sock",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let _task = engine_at(&folder.path().join(place));
        let found = discover(None, &surroundings(folder.path())).await;
        assert_eq!(found.unwrap().engine.address, Address::Unix(folder.path().join(place)), "{place}");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut from = surroundings(folder.path());
    from.config = Some(folder.path().join("xdg"));
    let _task = engine_at(&folder.path().join("xdg/colima/default/docker.sock"));
    assert_eq!(discover(None, &from).await.unwrap().origin, "colima");
}

#[tokio::test]
async fn c068_the_error_lists_each_place_and_why_it_failed() {
    let folder = tempfile::tempdir().unwrap();
    let from = surroundings(folder.path());
    let link = folder.path().join("root/var/run/docker.sock");
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/nowhere/docker.sock", &link).unwrap();
    write_context(&from, "desktop-linux", "unix:///Users/u/.docker/run/docker.sock");
    let text = discover(None, &from).await.unwrap_err().to_string();
    for part in [
        "unix:///Users/u/.docker/run/docker.sock (the docker context `desktop-linux`): not there",
        "docker.sock (Docker): a link to `/nowhere/docker.sock`, which does not exist",
        "home/.orbstack/run/docker.sock (OrbStack): not there",
        "podman/podman.sock (rootless Podman): not there",
    ] {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
}

#[tokio::test]
async fn c068_a_context_whose_engine_is_gone_is_passed_over_with_a_notice() {
    let folder = tempfile::tempdir().unwrap();
    let from = surroundings(folder.path());
    let _task = engine_at(&folder.path().join("root/var/run/docker.sock"));
    write_context(&from, "desktop-linux", "unix:///Users/u/.docker/run/docker.sock");
    let found = discover(None, &from).await.unwrap();
    assert_eq!(found.origin, "Docker");
    assert!(found.notice.unwrap().contains("desktop-linux"));
}

#[tokio::test]
async fn an_engine_that_the_user_named_binds_even_when_another_answers() {
    let folder = tempfile::tempdir().unwrap();
    let mut from = surroundings(folder.path());
    let _task = engine_at(&folder.path().join("root/var/run/docker.sock"));
    assert!(matches!(discover(Some("unix:///nowhere.sock"), &from).await, Err(DiscoverError::Named(_))));
    from.docker_host = Some("unix:///nowhere.sock".into());
    let error = discover(None, &from).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the engine that `DOCKER_HOST` names, `unix:///nowhere.sock`, cannot be used: not there"
    );
    from.docker_host = None;
    from.docker_context = Some("gone".into());
    assert!(matches!(discover(None, &from).await, Err(DiscoverError::Context { .. })));
}

#[tokio::test]
async fn ssh_tls_and_nonsense_are_sentences_with_exit_2() {
    let folder = tempfile::tempdir().unwrap();
    let mut from = surroundings(folder.path());
    from.tls = true;
    for text in ["ssh://me@host.invalid", "tcp://host.invalid:2376", "nonsense"] {
        let error = discover(Some(text), &from).await.unwrap_err();
        assert!(matches!(error, DiscoverError::Address { .. }), "{error}");
        assert_eq!(error.exit(), Exit::Usage);
        assert!(error.hint().is_some());
    }
}

#[test]
fn a_denied_socket_names_the_docker_group() {
    let attempt = Attempt {
        origin: "Docker".into(),
        address: "unix:///var/run/docker.sock".into(),
        why: ConnectError::Permission,
    };
    let error = DiscoverError::Nowhere(vec![attempt]);
    assert!(error.hint().unwrap().contains("docker group") || error.hint().unwrap().contains("-aG docker"));
}
