//! Files that are made to hold the look up, lead it astray or hide from it.
#![cfg(target_os = "linux")]

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

fn pipe(path: &Path) {
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, rustix::fs::Mode::from(0o600), 0)
        .unwrap();
}

fn whats(around: &Surroundings) -> Vec<String> {
    look(around).findings.iter().map(|finding| finding.what.clone()).collect()
}

#[test]
fn a_pipe_a_socket_and_a_device_are_not_opened_and_refuse_with_a_reason() {
    let (home, around) = home_of(&[(".codex/x", "")]);
    let auth = home.path().join(".codex/auth.json");
    let says = "not looked at (Codex): it is a pipe, a socket or a device";
    pipe(&auth);
    assert_eq!(whats(&around), [says]);
    std::fs::remove_file(&auth).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(&auth).unwrap();
    assert_eq!(whats(&around), [says]);
    drop(listener);
    std::fs::remove_file(&auth).unwrap();
    // A link out of the home to something that would never end.
    for endless in ["/dev/zero", "/dev/tty"] {
        symlink(endless, &auth).unwrap();
        assert_eq!(whats(&around), [says], "{endless}");
        std::fs::remove_file(&auth).unwrap();
    }
    let elsewhere = tempfile::tempdir().unwrap();
    pipe(&elsewhere.path().join("pipe"));
    symlink(elsewhere.path().join("pipe"), &auth).unwrap();
    assert_eq!(whats(&around), [says]);
}

#[test]
fn circles_of_links_and_links_to_nothing_are_nothing_and_a_link_to_a_key_is_one() {
    let (home, around) = home_of(&[("dotfiles/auth", "x"), (".codex/x", "")]);
    let at = |path: &str| home.path().join(path);
    symlink(at(".claude/.credentials.json"), at("b")).unwrap();
    std::fs::create_dir(at(".claude")).unwrap();
    symlink(at("b"), at(".claude/.credentials.json")).unwrap();
    symlink(at(".aws"), at(".aws")).unwrap();
    symlink("/nowhere", at(".gemini")).unwrap();
    assert!(whats(&around).is_empty());
    symlink(at("dotfiles/auth"), at(".codex/auth.json")).unwrap();
    assert_eq!(whats(&around), ["a sign-in or key (Codex)"]);
    let secrets = tempfile::tempdir().unwrap();
    symlink(secrets.path(), secrets.path().join("again")).unwrap();
    let around = Surroundings { secrets: vec![secrets.path().to_owned()], ..Surroundings::default() };
    let said = whats(&around);
    assert!(said.iter().all(|what| what.contains("it lies too deep")) && said.len() == 1, "{said:?}");
}

#[test]
fn huge_files_and_folders_refuse_with_a_reason_and_are_not_read() {
    let (home, around) = home_of(&[(".bashrc", ""), (".aws/sso/cache/0", "{}")]);
    let file = std::fs::OpenOptions::new().write(true).open(home.path().join(".bashrc")).unwrap();
    // Sparse: a terabyte that takes no space.
    file.set_len(1 << 40).unwrap();
    assert_eq!(whats(&around), ["not looked at (the shell): it is larger than what is read"]);
    file.set_len(0).unwrap();
    for number in 0..1_001 {
        put(home.path(), &format!(".aws/sso/cache/{number}"), "{}");
    }
    assert_eq!(whats(&around), ["not looked at (AWS): it has more entries than are looked at"]);
    let secrets = tempfile::tempdir().unwrap();
    for number in 0..1_001 {
        put(secrets.path(), &number.to_string(), "x");
    }
    let around = Surroundings { secrets: vec![secrets.path().to_owned()], ..Surroundings::default() };
    assert_eq!(whats(&around), ["not looked at (mounted secret): it has more entries than are looked at"]);
}

#[test]
fn binary_files_and_names_that_are_no_text_are_looked_at() {
    let mut bytes = vec![0u8, 255, 254, 128, b'\n'];
    bytes.extend_from_slice(CANARY.as_bytes());
    bytes.extend_from_slice(&[0, 255, b'"', b'\\', 0xc3]);
    let (home, mut around) = home_of(&[]);
    std::fs::write(home.path().join(".bashrc"), &bytes).unwrap();
    let findings = look(&around).findings;
    assert_eq!(findings.len(), 1);
    assert!(findings[0].place.to_string().ends_with("line 2"), "{findings:?}");
    tells_nothing(&refusal(&around).unwrap(), CANARY);
    // Names of bytes, and a path with a NUL, which no system call takes.
    let odd = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"\xff\xfe");
    around.environment = vec![(odd.to_owned(), odd.to_owned())];
    around.homes = vec!["/nul\0name".into(), home.path().join(odd)];
    around.secrets = vec!["/nul\0name".into()];
    around.mounts = vec!["/nul\0name".into(), "".into()];
    assert!(look(&around).findings.is_empty());
}

#[test]
fn a_file_that_its_owner_closed_by_its_mode_refuses_and_one_of_somebody_else_does_not() {
    let (home, around) = home_of(&[(".codex/auth.json", "x")]);
    let auth = home.path().join(".codex/auth.json");
    let close = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    for (path, open) in [(auth.clone(), 0o600), (home.path().join(".codex"), 0o700)] {
        close(&path, 0o000);
        // Root reads it all the same; then it is a sign-in. Either way it is named.
        let said = whats(&around);
        assert_eq!(said.len(), 1, "{said:?}");
        let closed = "not looked at (Codex): its mode closes it, which its owner can change";
        assert!(said[0] == closed || said[0] == "a sign-in or key (Codex)", "{said:?}");
        close(&path, open);
    }
    // What an engine makes where the file of a mount is missing.
    std::fs::remove_file(&auth).unwrap();
    std::fs::create_dir(&auth).unwrap();
    assert!(whats(&around).is_empty());
}

#[test]
fn a_project_of_traps_is_said_and_does_not_hold_anything_up() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    pipe(&at(".env"));
    symlink("/dev/zero", at(".env.local")).unwrap();
    symlink(folder.path(), at("again")).unwrap();
    symlink("/", at("all")).unwrap();
    let said = in_project(&[("the branch", folder.path().to_owned())]);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said.iter().all(|sentence| sentence.contains("was not looked at")), "{said:?}");
    let said = super::super::project::within(&[("the branch", folder.path().to_owned())], 3);
    assert!(said.last().unwrap().contains("more files than are looked through"), "{said:?}");
}
