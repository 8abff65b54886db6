use proptest::prelude::*;

use super::super::load::{File, load};
use super::super::model::Mount;
use super::super::testing::context;
use super::*;

fn name() -> ProjectName {
    ProjectName::parse("worca").unwrap()
}

fn initial() -> Initial {
    Initial {
        image: "localhost/worca:dev".into(),
        port: 4317,
        user: 1000,
        group: 1000,
        git_name: "Ann O'Neil".into(),
        git_email: "ann@example.test".into(),
        memory: "4g".into(),
        cpus: 2,
        processes: 2048,
    }
}

#[test]
fn the_projects_overlay_reads_well() {
    let mounts = ["/home/ann/dev/api", "/tmp/a:b", "/tmp/quote'\"x $HOME"]
        .map(|path| ProjectMount::new(path).unwrap());
    insta::assert_snapshot!(projects(&mounts));
    insta::assert_snapshot!(projects(&[]));
}

#[test]
fn the_first_env_explains_each_setting() {
    insta::assert_snapshot!(env(&initial()));
}

#[test]
fn the_main_file_carries_the_name_of_its_box() {
    assert!(compose(&name()).starts_with("# Written by `worca container`"));
    assert_eq!(compose(&name()), TEMPLATE);
    let other = compose(&ProjectName::parse("second-box").unwrap());
    assert_eq!(other.lines().filter(|line| *line == "name: second-box").count(), 1);
    assert!(!other.contains("name: worca\n"));
}

#[test]
fn the_env_is_read_back_as_it_was_meant() {
    let set = dotenv::parse(".env", &env(&initial()), &Default::default()).unwrap();
    assert_eq!(set["WORCA_GIT_NAME"], "Ann O'Neil");
    assert_eq!(set["WORCA_IMAGE"], "localhost/worca:dev");
    assert_eq!(set.len(), 9);
}

#[test]
fn c067_no_written_file_names_a_model_key() {
    let mount = ProjectMount::new("/home/ann/dev/api").unwrap();
    for text in [compose(&name()), projects(&[mount]), env(&initial())] {
        for word in ["API_KEY", "AUTH_TOKEN", "OAUTH", "sk-ant", "PASSWORD"] {
            assert!(!text.contains(word), "`{word}` stands in:\n{text}");
        }
    }
}

#[test]
fn c071_a_path_that_cannot_be_mounted_is_refused_with_the_path_quoted() {
    let error = ProjectMount::new("/tmp/two\nlines").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the path `/tmp/two\\nlines` has a line break in it, and such a path cannot be mounted"
    );
    assert!(ProjectMount::new("/tmp/x\0").is_err());
    assert_eq!(ProjectMount::new("dev/api").unwrap_err().to_string(), "`dev/api` is not an absolute path");
    assert!(ProjectMount::new("").is_err());
    assert!(ProjectMount::new("C:relative").is_err());
}

#[test]
fn c071_a_windows_path_has_a_place_inside() {
    let mount = ProjectMount::new(r"C:\Users\Ann Lee\p").unwrap();
    assert_eq!((mount.source(), mount.target()), (r"C:\Users\Ann Lee\p", "/c/Users/Ann Lee/p"));
}

fn mounted(paths: &[&str]) -> (Vec<(String, String)>, Vec<String>) {
    let mounts: Vec<ProjectMount> = paths.iter().map(|path| ProjectMount::new(path).unwrap()).collect();
    let (compose, projects) = (compose(&name()), projects(&mounts));
    let files = [File { name: COMPOSE_FILE, text: &compose }, File { name: PROJECTS_FILE, text: &projects }];
    let project = load(&files, &context()).unwrap().project;
    let core = &project.services["core"];
    let binds = core.mounts.iter().filter_map(|mount| match mount {
        Mount::Bind { source, target, create_host_path: false, .. } => Some((source.clone(), target.clone())),
        _ => None,
    });
    let listed = serde_json::from_str(core.environment["WORCA_PROJECTS"].as_deref().unwrap()).unwrap();
    (binds.collect(), listed)
}

#[test]
fn c071_odd_paths_are_mounted_at_themselves() {
    let odd = [
        "/tmp/a:b",
        "/tmp/sp ace/ü",
        "/tmp/quote'\"x",
        "/tmp/$HOME/${SET:?}",
        "/tmp/- x: y #z",
        "/tmp/tab\t\u{7f}\u{85}\u{2028}",
    ];
    let (binds, listed) = mounted(&odd);
    assert_eq!(binds, odd.map(|path| (path.to_owned(), path.to_owned())));
    assert_eq!(listed, odd);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_path_is_read_back(name in "[^\0\n\r/]{1,40}") {
        prop_assume!(name != "." && name != "..");
        let path = format!("/tmp/{name}");
        let (binds, listed) = mounted(&[&path]);
        prop_assert_eq!(&binds, &[(path.clone(), path.clone())]);
        prop_assert_eq!(&listed, &[path]);
    }

    #[test]
    fn any_name_of_a_person_is_read_back(git_name in "[^\0]{0,40}") {
        let text = env(&Initial { git_name: git_name.clone(), ..initial() });
        let set = dotenv::parse(".env", &text, &Default::default()).unwrap();
        prop_assert_eq!(&set["WORCA_GIT_NAME"], &git_name);
    }
}
