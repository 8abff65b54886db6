use super::support::{TestCore, settings};
use crate::failure::Failure;
use crate::home::Home;
use crate::runs::Runs;
use crate::server::lock::{Holder, Taken, take};
use crate::server::serve::{Start, start};

#[tokio::test]
async fn a_second_start_on_the_same_home_finds_the_first_one() {
    let core = TestCore::start().await;
    let home = Home::at(core.folder.path());
    let second = start(settings(core.folder.path()), async |_, _| -> Result<Runs, Failure> {
        panic!("the second one must not open anything")
    });
    let Ok(Start::Running(Some(holder))) = second.await else { panic!("it started") };
    assert_eq!(holder.url, core.app.public_url());
    assert_eq!(holder.pid, std::process::id());
    assert_eq!(holder.listen, core.address.to_string());
    assert!(home.serve_lock().exists());
}

#[tokio::test]
async fn what_an_ended_core_left_in_the_file_means_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("serve.lock");
    std::fs::write(&path, "{\"url\":\"http://localhost:1\",\"listen\":\"127.0.0.1:1\",\"pid\":1}\n").unwrap();
    let Taken::Ours(mut lock) = take(&path).await.unwrap() else { panic!("a stale file is in the way") };
    let holder = Holder { url: "u".into(), listen: "l".into(), pid: 7 };
    lock.tell(&holder).unwrap();
    let Taken::Theirs(Some(found)) = take(&path).await.unwrap() else { panic!("two hold it") };
    assert_eq!(found, holder);
    drop(lock);
    assert!(matches!(take(&path).await.unwrap(), Taken::Ours(_)));
}

#[tokio::test]
async fn of_many_that_start_at_once_exactly_one_gets_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("serve.lock");
    let mut taking = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let path = path.clone();
        taking.spawn(async move {
            match take(&path).await.unwrap() {
                Taken::Ours(mut lock) => {
                    lock.tell(&Holder { url: "u".into(), listen: "l".into(), pid: 1 }).unwrap();
                    Some(lock)
                }
                Taken::Theirs(holder) => {
                    assert!(holder.is_some());
                    None
                }
            }
        });
    }
    let all = taking.join_all().await;
    assert_eq!(all.iter().filter(|lock| lock.is_some()).count(), 1);
}
