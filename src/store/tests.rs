use std::path::PathBuf;

use super::*;
use crate::amount::{Amount, Unit};
use crate::clock::Millis;
use crate::events::{Event, ModelUsage, RunStatus, SpentBudget};
use crate::failure::Explain as _;
use crate::ids::{PassId, PersonId, ProjectId, RunId, SpawnId, StepName};

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
        payer: PersonId::local(),
        budget: Some(Amount::Tokens(100)),
        models: vec!["claude-*".into()],
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

/// A database as the first version left it: its shape, a run at its end, and a start of its agent.
fn first_database(path: &std::path::Path, run: &RunId, spawn: &SpawnId) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch(include_str!("migrations/0001_first.sql")).unwrap();
    connection.pragma_update(None, "application_id", 0x5772_4361).unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
    let sql = format!(
        "INSERT INTO projects VALUES ('{}', '/p/.git', '/p', '{zeros}', NULL, 1);
         INSERT INTO runs (id, project_id, title, prompt, guardrails, author_name, author_email, branch, base_commit,
             status, created_at, worktree) SELECT '{run}', id, 't', 'do it', 'permissive', 'A', 'a@example.invalid',
             'worca/{run}/t', '{zeros}', 'interrupted', 1, 'present' FROM projects;
         INSERT INTO events (run_id, at, kind, body)
             VALUES ('{run}', 2, 'note', '{{\"kind\":\"note\",\"text\":\"kept\"}}');
         INSERT INTO spawns (id, run_id, program, session, started_at, exit)
             VALUES ('{spawn}', '{run}', 'Claude Code 2.1.0', 'abc', 3, 'ended');",
        ProjectId::random(),
        zeros = "0".repeat(40),
    );
    connection.execute_batch(&sql).unwrap();
}

#[tokio::test]
async fn a_database_of_the_first_version_is_brought_up_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("worca.db");
    let (run, spawn) = (RunId::random(), SpawnId::random());
    first_database(&path, &run, &spawn);

    let store = Store::open(&path).unwrap();
    let found = store.run(&run).await.unwrap().unwrap();
    assert_eq!((found.status, found.guardrails.as_str()), (RunStatus::Interrupted, "permissive"));
    assert_eq!((found.payer, found.budget, found.models.len()), (PersonId::local(), None, 0));
    assert!(store.open_spawns().await.unwrap().is_empty(), "the books know nothing of what was before them");
    assert_eq!(store.events_after(Some(&run), 0, 10).await.unwrap().len(), 1);
    let old = store.last_spawn(&run).await.unwrap().unwrap();
    assert_eq!((old.id, old.guardrails, old.policy_digest, old.receipt), (spawn, None, None, None));
    assert_eq!(store.last_session(&run).await.unwrap().unwrap().session.as_deref(), Some("abc"));
    // What is new works on it at once, and a second open changes nothing more.
    assert_eq!(store.setting("a").await.unwrap(), None);
    store.set_setting("a", "on".into()).await.unwrap();
    assert!(store.resume_run(&run, None).await.unwrap());
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(store.setting("a").await.unwrap().as_deref(), Some("on"));
    let connection = rusqlite::Connection::open(&path).unwrap();
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 3);
}

#[tokio::test]
async fn what_held_an_agent_is_stored_with_its_start() {
    let place = place();
    let run = run_in(&place.store).await;
    let new = |set: &str| NewSpawn {
        id: SpawnId::random(),
        run: run.clone(),
        step: StepName::work(),
        program: "Claude Code 2.1.0".into(),
        pass: PassId::random(),
        guardrails: set.into(),
        policy_digest: "d".repeat(64),
    };
    let (first, second) = (new("normal"), new("strict"));
    for spawn in [&first, &second] {
        place.store.spawn_begins(spawn.clone()).await.unwrap();
    }
    place.store.spawn_session(&first.id, "s".into()).await.unwrap();
    place.store.spawn_receipt(&second.id, r#"{"hook":true}"#.into()).await.unwrap();
    let last = place.store.last_spawn(&run).await.unwrap().unwrap();
    assert_eq!((last.id, last.guardrails.as_deref()), (second.id, Some("strict")));
    assert_eq!(last.policy_digest, Some("d".repeat(64)));
    assert_eq!(last.receipt.as_deref(), Some(r#"{"hook":true}"#));
    // The second one never came as far as a session.
    assert_eq!(place.store.last_session(&run).await.unwrap().unwrap().id, first.id);
    assert_eq!(place.store.last_spawn(&RunId::random()).await.unwrap(), None);
}

#[tokio::test]
async fn a_parked_run_waits_and_needs_its_set_until_it_ends() {
    let place = place();
    let store = &place.store;
    let id = run_in(store).await;
    assert!(!store.resume_run(&id, None).await.unwrap(), "a run at work is not resumed");
    store.set_run_status(&id, RunStatus::Parked, Some("why".into())).await.unwrap();
    let run = store.run(&id).await.unwrap().unwrap();
    assert_eq!((run.status, run.reason.as_deref(), run.ended_at), (RunStatus::Parked, Some("why"), None));
    assert!(store.alive_runs().await.unwrap().is_empty(), "the next start of core leaves it alone");
    assert_eq!(store.runs_that_need_set("permissive").await.unwrap(), std::slice::from_ref(&id));
    assert!(store.runs_that_need_set("strict").await.unwrap().is_empty());
    assert!(!store.set_run_status(&id, RunStatus::Done, None).await.unwrap(), "it does not move by itself");

    assert!(store.resume_run(&id, None).await.unwrap());
    assert!(!store.resume_run(&id, None).await.unwrap(), "once");
    let run = store.run(&id).await.unwrap().unwrap();
    assert_eq!((run.status, run.reason), (RunStatus::Running, None));

    store.set_run_status(&id, RunStatus::Parked, None).await.unwrap();
    assert!(store.unpark_run(&id).await.unwrap() && !store.unpark_run(&id).await.unwrap());
    store.set_run_status(&id, RunStatus::Stopped, None).await.unwrap();
    assert!(store.runs_that_need_set("permissive").await.unwrap().is_empty());
    assert!(!store.resume_run(&id, None).await.unwrap(), "what is over stays over");

    // An interrupted run is resumed while its worktree is there, and not after.
    let other = run_in(store).await;
    store.set_run_status(&other, RunStatus::Interrupted, None).await.unwrap();
    assert_eq!(store.runs_that_need_set("permissive").await.unwrap(), std::slice::from_ref(&other));
    store.worktree_removed(&other).await.unwrap();
    assert!(store.runs_that_need_set("permissive").await.unwrap().is_empty());
    assert!(!store.resume_run(&other, None).await.unwrap());
}

#[tokio::test]
async fn a_start_is_closed_once_and_its_run_adds_up_all_of_them() {
    let place = place();
    let store = &place.store;
    let run = run_in(store).await;
    let begins = async || {
        let new = NewSpawn {
            id: SpawnId::random(),
            run: run.clone(),
            step: StepName::work(),
            program: "Claude Code 2.1.0".into(),
            pass: PassId::random(),
            guardrails: "normal".into(),
            policy_digest: "d".repeat(64),
        };
        store.spawn_begins(new.clone()).await.unwrap();
        new
    };
    let row = |model: &str, cost: u64| ModelUsage {
        slot: "anthropic".into(),
        model: model.into(),
        calls: 1,
        input: 10,
        output: 5,
        cache_write: 2,
        cache_read: 3,
        cost_micros: cost,
        ..ModelUsage::default()
    };
    let (first, second) = (begins().await, begins().await);
    assert!(store.open_spawns().await.unwrap().is_empty(), "both are at work");
    store.spawn_ended(&first.id, "ended".into()).await.unwrap();
    let open = store.open_spawns().await.unwrap();
    assert_eq!(open, [OpenSpawn { id: first.id.clone(), run: run.clone(), pass: first.pass }]);

    assert!(store.close_spawn(&first.id, &run, vec![row("a", 100), row("b", 1)]).await.unwrap());
    assert!(!store.close_spawn(&first.id, &run, vec![row("a", 900)]).await.unwrap(), "once");
    // The second is what a killed core leaves.
    store.end_lost_spawns().await.unwrap();
    assert_eq!(store.open_spawns().await.unwrap().len(), 1);
    assert!(store.close_spawn(&second.id, &run, vec![row("a", 10)]).await.unwrap());
    assert!(store.open_spawns().await.unwrap().is_empty());

    let usage = store.run_usage(&run).await.unwrap();
    let costs: Vec<_> = usage.iter().map(|row| (row.model.as_str(), row.calls, row.cost_micros)).collect();
    assert_eq!(costs, [("a", 2, 110), ("b", 1, 1)]);
    let end = store.run(&run).await.unwrap().unwrap().end;
    assert_eq!((end.cost_micros, end.tokens), (Some(111), Some(60)));
    let total = ModelUsage::total(&usage);
    assert_eq!((total.cost_micros, total.tokens(), total.calls), (111, 60, 3));
    let kinds: Vec<_> =
        store.events_after(Some(&run), 0, 10).await.unwrap().iter().map(|one| one.event.kind()).collect();
    assert_eq!(kinds, ["status", "usage", "usage"]);
    // No call at all is a cost of nothing, and no event.
    let third = begins().await;
    assert!(store.close_spawn(&third.id, &run, Vec::new()).await.unwrap());
    assert_eq!(store.run(&run).await.unwrap().unwrap().end.cost_micros, Some(111));
    assert_eq!(store.events_after(Some(&run), 0, 10).await.unwrap().len(), 3);
}

#[tokio::test]
async fn of_each_budget_the_newest_warning_is_shown_and_a_budget_can_be_raised() {
    let place = place();
    let run = run_in(&place.store).await;
    let warning = |cap: &str, spent: u64| Event::BudgetWarning {
        budget: SpentBudget { cap: cap.into(), spent, limit: 100, unit: Unit::Tokens },
    };
    for event in [warning("this run", 80), warning("the day", 81), warning("this run", 95)] {
        place.store.append_event(&run, event).await.unwrap();
    }
    let told = place.store.budget_warnings(&run).await.unwrap();
    let told: Vec<_> = told.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "this run: 95 % is spent, 95 tokens of 100 tokens",
            "the day: 81 % is spent, 81 tokens of 100 tokens"
        ]
    );
    assert_eq!(place.store.run(&run).await.unwrap().unwrap().budget, Some(Amount::Tokens(100)));
    for budget in [Some(Amount::UsdMicros(7)), None] {
        place.store.set_run_status(&run, RunStatus::Parked, None).await.unwrap();
        assert!(place.store.resume_run(&run, budget).await.unwrap());
        assert_eq!(place.store.run(&run).await.unwrap().unwrap().budget, budget);
    }
    assert!(!place.store.resume_run(&run, Some(Amount::Tokens(1))).await.unwrap(), "it is at work");
    assert_eq!(place.store.run(&run).await.unwrap().unwrap().budget, None);
}
