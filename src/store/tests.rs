use std::path::PathBuf;

use super::*;
use crate::clock::Millis;
use crate::events::{Event, RunStatus};
use crate::failure::Explain as _;
use crate::ids::{ProjectId, RunId};

struct Place {
    _folder: tempfile::TempDir,
    path: PathBuf,
    store: Store,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("worca.db");
    let store = Store::open(&path).unwrap();
    Place { _folder: folder, path, store }
}

async fn run_in(store: &Store) -> RunId {
    let project = store
        .register_project(NewProject {
            common_dir: "/p/.git".into(),
            checkout: "/p".into(),
            first_commit: "0".repeat(40),
            origin: None,
        })
        .await
        .unwrap();
    let id = RunId::random();
    store.insert_run(sample(&id, &project.id)).await.unwrap();
    id
}

fn sample(id: &RunId, project: &ProjectId) -> Run {
    Run {
        id: id.clone(),
        project: project.clone(),
        checkout: "/p".into(),
        title: "t".into(),
        prompt: "do it".into(),
        model: None,
        guardrails: "permissive".into(),
        author_name: "A".into(),
        author_email: "a@example.invalid".into(),
        branch: format!("worca/{id}/t"),
        base_commit: "1".repeat(40),
        status: RunStatus::Preparing,
        reason: None,
        created_at: Millis::now(),
        ended_at: None,
        end: RunEnd::default(),
        worktree_present: true,
    }
}

#[tokio::test]
async fn a_run_and_its_events_read_back_after_a_restart() {
    let place = place();
    let id = run_in(&place.store).await;
    place.store.set_run_status(&id, RunStatus::Running, None).await.unwrap();
    place.store.append_event(&id, Event::AgentText { text: "hello".into() }).await.unwrap();
    drop(place.store);

    let store = Store::open(&place.path).unwrap();
    assert_eq!(store.run(&id).await.unwrap().unwrap().status, RunStatus::Running);
    let events = store.events_after(Some(&id), 0, 100).await.unwrap();
    let kinds: Vec<_> = events.iter().map(|stored| stored.event.kind()).collect();
    assert_eq!(kinds, ["status", "status", "agent_text"]);
    assert_eq!(*store.watch_events().borrow(), events.last().unwrap().seq);
    assert_eq!(store.alive_runs().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_list_leaves_out_what_can_be_long() {
    let place = place();
    let id = run_in(&place.store).await;
    let end = RunEnd { answer: Some("long".into()), turns: Some(3), ..RunEnd::default() };
    place.store.set_run_end(&id, end).await.unwrap();
    let listed = place.store.runs(10).await.unwrap().remove(0);
    assert_eq!((listed.prompt.as_str(), &listed.end.answer, listed.end.turns), ("", &None, Some(3)));
    let whole = place.store.run(&id).await.unwrap().unwrap();
    assert_eq!((whole.prompt.as_str(), whole.end.answer.as_deref()), ("do it", Some("long")));
}

#[tokio::test]
async fn an_ended_run_stays_ended() {
    let place = place();
    let id = run_in(&place.store).await;
    assert!(place.store.set_run_status(&id, RunStatus::Stopped, None).await.unwrap());
    assert!(!place.store.set_run_status(&id, RunStatus::Done, None).await.unwrap());
    let run = place.store.run(&id).await.unwrap().unwrap();
    assert_eq!(run.status, RunStatus::Stopped);
    assert!(run.ended_at.is_some());
    assert!(place.store.alive_runs().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_project_is_one_row_however_often_it_is_registered() {
    let place = place();
    let new = NewProject {
        common_dir: "/p/.git".into(),
        checkout: "/p".into(),
        first_commit: "0".repeat(40),
        origin: None,
    };
    let first = place.store.register_project(new.clone()).await.unwrap();
    let again =
        place.store.register_project(NewProject { checkout: "/p/linked".into(), ..new }).await.unwrap();
    assert_eq!(first.id, again.id);
    assert_eq!(again.repository.checkout, "/p/linked");
}

#[tokio::test]
async fn an_event_is_on_disk_before_a_watcher_hears_of_it() {
    let place = place();
    let id = run_in(&place.store).await;
    let mut watch = place.store.watch_events();
    watch.mark_unchanged();
    let writer = place.store.clone();
    let run = id.clone();
    let append = async move { writer.append_event(&run, Event::Note { text: "n".into() }).await.unwrap() };
    let (seq, ()) = tokio::join!(append, async {
        watch.changed().await.unwrap();
        let seq = *watch.borrow();
        let other = rusqlite::Connection::open(&place.path).unwrap();
        let stored: i64 = other.query_row("SELECT max(seq) FROM events", [], |row| row.get(0)).unwrap();
        assert_eq!(stored, seq);
    });
    assert!(seq > 0);
}

#[tokio::test]
async fn c093_a_database_of_a_newer_program_is_refused_and_not_a_byte_changes() {
    let place = place();
    drop(place.store);
    let connection = rusqlite::Connection::open(&place.path).unwrap();
    connection.pragma_update(None, "journal_mode", "delete").unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    connection.execute_batch("DROP TABLE spawns").unwrap();
    drop(connection);
    let before = std::fs::read(&place.path).unwrap();

    let error = Store::open(&place.path).err().unwrap();
    assert!(matches!(error, OpenStoreError::Newer { found: 99, .. }), "{error}");
    assert!(error.to_string().contains("99") && error.hint().unwrap().contains("nothing was written"));
    assert_eq!(std::fs::read(&place.path).unwrap(), before);
}

#[tokio::test]
async fn c093_a_newer_number_that_stands_in_the_log_alone_is_refused_too() {
    let place = place();
    // A second writer, still open: its change is in the write-ahead log, not in the file's header.
    let connection = rusqlite::Connection::open(&place.path).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    let before = std::fs::read(&place.path).unwrap();
    assert!(matches!(Store::open(&place.path), Err(OpenStoreError::Newer { .. })));
    assert_eq!(std::fs::read(&place.path).unwrap(), before);
}

#[test]
fn a_file_that_is_no_database_is_named_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("worca.db");
    std::fs::write(&path, "not a database at all, and long enough to have a header ".repeat(10)).unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = Store::open(&path).err().unwrap();
    assert!(matches!(error, OpenStoreError::Damaged { .. } | OpenStoreError::Foreign { .. }), "{error:?}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn c091_a_slow_watcher_does_not_make_the_log_grow() {
    let place = place();
    let id = run_in(&place.store).await;
    // A client of the event stream that never reads on: it holds a watch and a page, and no transaction.
    let _watch = place.store.watch_events();
    let _page = place.store.events_after(Some(&id), 0, 10).await.unwrap();
    let run = id.clone();
    for _ in 0..20 {
        let run = run.clone();
        place
            .store
            .write(move |tx| {
                for _ in 0..2_000 {
                    super::events::append(tx, &run, &Event::AgentText { text: "x".repeat(200) })?;
                }
                Ok(())
            })
            .await
            .unwrap();
    }
    let wal = std::fs::metadata(place.path.with_extension("db-wal")).map_or(0, |file| file.len());
    assert!(wal < 20 * 1024 * 1024, "the write-ahead log has {wal} bytes");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_database_uses_write_ahead_logging_on_a_local_disk() {
    let place = place();
    let connection = rusqlite::Connection::open(&place.path).unwrap();
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

#[cfg(target_os = "linux")]
#[test]
fn c089_the_journal_is_chosen_by_the_file_system_before_the_first_read() {
    // 9p, NFS, FUSE and virtiofs; then ext4, XFS, overlay, tmpfs, Btrfs.
    for magic in [0x0102_1997, 0x6969, 0x6573_5546] {
        assert!(super::open::is_shared(magic), "{magic:x}");
    }
    for magic in [0xef53, 0x5846_5342, 0x794c_7630, 0x0102_1994, 0x9123_683e] {
        assert!(!super::open::is_shared(magic), "{magic:x}");
    }
}

#[tokio::test]
async fn c090_without_shared_memory_the_rollback_journal_serves() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("worca.db");
    // Where the shared memory file belongs stands a folder, so SQLite cannot make it.
    std::fs::create_dir(folder.path().join("worca.db-shm")).unwrap();
    let store = Store::open(&path).unwrap();
    let id = run_in(&store).await;
    assert_eq!(store.run(&id).await.unwrap().unwrap().status, RunStatus::Preparing);
    drop(store);
    assert!(Store::open(&path).is_ok());
}

#[test]
fn a_database_out_of_reach_is_a_sentence_with_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let error = Store::open(&folder.path().join("file/worca.db")).err().unwrap();
    assert!(matches!(error, OpenStoreError::Io { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("file"));
}
