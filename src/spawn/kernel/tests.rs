use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::places::{MAX_RULES, Places};
use crate::guardrails::Access::{self, Closed, Read, Write};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(folders: &[&str], files: &[&str]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for name in folders {
            std::fs::create_dir_all(folder.at(name)).unwrap();
        }
        for name in files {
            std::fs::write(folder.at(name), "x").unwrap();
        }
        folder
    }
    fn at(&self, name: &str) -> PathBuf {
        let folder = self.0.path().canonicalize().unwrap();
        if name.is_empty() { folder } else { folder.join(name) }
    }
    fn places(&self, places: &[(&str, Access)]) -> Places {
        let given = places.iter().map(|(name, access)| (self.at(name), *access)).collect();
        Places::resolve(&given).unwrap()
    }
    /// What is granted at and below this folder, in order.
    fn granted(&self, places: &[(&str, Access)]) -> Vec<(String, Access)> {
        let mut all = Vec::new();
        self.places(places)
            .grant(|granted| {
                if let Ok(below) = granted.path.strip_prefix(self.at("")) {
                    all.push((below.to_str().unwrap().to_owned(), granted.access));
                }
                Ok(())
            })
            .unwrap();
        all.sort();
        all
    }
}

fn shown(all: &[(&str, Access)]) -> Vec<(String, Access)> {
    all.iter().map(|(name, access)| ((*name).to_owned(), *access)).collect()
}

#[test]
fn what_holds_nothing_lesser_is_granted_whole() {
    let folder = Folder::new(&["a/b/c"], &["a/f"]);
    assert_eq!(folder.granted(&[("a", Read)]), shown(&[("a", Read)]));
    // More below only adds.
    let more = folder.granted(&[("a", Read), ("a/b/c", Write)]);
    assert_eq!(more, shown(&[("a", Read), ("a/b/c", Write)]));
    assert_eq!(folder.granted(&[("a", Read), ("a/b", Read)]), shown(&[("a", Read)]));
    assert_eq!(folder.granted(&[("a", Closed), ("a/none", Write)]), shown(&[]));
    assert_eq!(folder.granted(&[("", Write), ("a/none", Closed)]), shown(&[("", Write)]));
}

#[test]
fn what_holds_closed_places_is_granted_child_by_child_and_links_are_left_out() {
    let folder = Folder::new(&["a/b/c", "a/d", "a/b/e"], &["a/f", "a/b/secret", "a/b/g"]);
    symlink(folder.at("a/b/secret"), folder.at("a/link")).unwrap();
    symlink(folder.at("a/d"), folder.at("a/b/link")).unwrap();
    let granted = folder.granted(&[("a", Write), ("a/b/secret", Closed), ("a/b/c", Read)]);
    let expected = [("a/b/c", Read), ("a/b/e", Write), ("a/b/g", Write), ("a/d", Write), ("a/f", Write)];
    assert_eq!(granted, shown(&expected));
}

#[test]
fn a_folder_on_the_way_to_a_read_only_place_can_still_be_listed() {
    let folder = Folder::new(&["a/b", "a/d"], &["a/f"]);
    let granted = folder.granted(&[("a", Write), ("a/b", Read)]);
    assert_eq!(granted, shown(&[("a", Read), ("a/d", Write), ("a/f", Write)]));
}

#[test]
fn a_closed_place_that_is_a_link_closes_what_it_leads_to_and_the_lesser_of_two_names_holds() {
    let folder = Folder::new(&["a", "dot/ssh"], &["dot/ssh/key", "dot/other"]);
    symlink("../dot/ssh", folder.at("a/.ssh")).unwrap();
    let granted = folder.granted(&[("dot", Read), ("a", Write), ("a/.ssh", Closed)]);
    assert_eq!(granted, shown(&[("a", Write), ("dot/other", Read)]));
    let granted = folder.granted(&[("dot", Read), ("dot/ssh", Write), ("a", Closed), ("a/.ssh", Closed)]);
    assert_eq!(granted, shown(&[("dot/other", Read)]));
}

#[test]
fn a_link_where_an_agent_may_write_opens_nothing() {
    let folder = Folder::new(&["home", "secret/deep", "real"], &["secret/key"]);
    // An earlier agent of the run put a link where its folder for temporary files was.
    symlink(folder.at("secret"), folder.at("home/tmp")).unwrap();
    let places = [("home", Write), ("home/tmp", Write), ("secret", Closed), ("secret/deep", Read)];
    assert_eq!(folder.granted(&places), shown(&[("home", Write), ("secret/deep", Read)]));
    let places = [("home", Write), ("home/tmp", Write)];
    assert_eq!(folder.granted(&places), shown(&[("home", Write)]));
    // Where it may not write, a link is somebody else's and is followed (`/bin`).
    symlink(folder.at("real"), folder.at("bin")).unwrap();
    assert_eq!(folder.granted(&[("bin", Read)]), shown(&[("real", Read)]));
    // A home that is reached by a link, with all that lies in it.
    symlink(folder.at(""), folder.at("real/all")).unwrap();
    let places = [("real/all/secret", Closed), ("real/all/secret/deep", Write)];
    assert_eq!(folder.granted(&places), shown(&[("secret/deep", Write)]));
}

#[test]
fn what_is_no_absolute_path_is_refused() {
    for odd in ["a", "./a", "/a/../b", ""] {
        let given: BTreeMap<PathBuf, Access> = [(odd.into(), Read)].into();
        let why = Places::resolve(&given).unwrap_err();
        assert!(why.contains("is not an absolute path"), "{why}");
    }
}

#[test]
fn the_number_of_rules_is_bounded() {
    let folder = Folder::new(&["a"], &[]);
    for number in 0..=MAX_RULES {
        std::fs::write(folder.at(&format!("a/{number}")), "").unwrap();
    }
    std::fs::create_dir(folder.at("a/closed")).unwrap();
    let places = folder.places(&[("a", Write), ("a/closed", Closed)]);
    let why = places.grant(|_| Ok(())).unwrap_err();
    assert!(why.contains("more than 20000 files"), "{why}");
    assert!(why.contains("/a/"), "{why}");
}
