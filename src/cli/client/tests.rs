use super::*;
use crate::events::{Event, RunStatus};
use crate::server::tests::support::{PATIENCE, TestCore};

#[tokio::test]
async fn the_command_lines_follower_comes_back_after_core_was_away() {
    let mut core = TestCore::start().await;
    let run = core.run().await;
    core.store().append_event(&run, Event::Note { text: "before".into() }).await.unwrap();
    let client = Client::new(&format!("http://{}", core.address)).unwrap().with_bearer(core.token.clone());
    let mut follower = Core::over(client).follow(&run);
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let Followed::Event(event) = follower.next().await.unwrap() else { panic!("{seen:?}") };
        seen.push(event.seq);
    }
    // Core ends, and comes back on the same address and home.
    core.app.closing().cancel();
    core.tasks.close();
    tokio::time::timeout(PATIENCE, core.tasks.wait()).await.expect("core ends");
    assert!(matches!(follower.next().await.unwrap(), Followed::Lost));
    core = core.again().await;
    // At its start it took the run for one that an earlier core left.
    loop {
        match tokio::time::timeout(PATIENCE, follower.next()).await.expect("the stream comes back").unwrap() {
            Followed::Event(event) => seen.push(event.seq),
            Followed::Lost => {}
            Followed::End(end) => {
                assert_eq!(end.status, RunStatus::Interrupted);
                break;
            }
        }
    }
    let events = core.store().events_after(Some(&run), 0, 100).await.unwrap();
    assert_eq!(seen, events.into_iter().map(|event| event.seq).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_refused_stream_is_not_tried_again() {
    let core = TestCore::start().await;
    let client = Client::new(&format!("http://{}", core.address)).unwrap();
    let run = core.run().await;
    let signed_out = Core::over(client.clone()).follow(&run).next().await.unwrap_err();
    assert_eq!(signed_out.exit(), Exit::Refused);
    assert!(signed_out.sentence().contains("core token"), "{signed_out:?}");
    let other = RunId::parse("r0000000000").unwrap();
    let unknown = Core::over(client.with_bearer(core.token.clone())).follow(&other).next().await.unwrap_err();
    assert_eq!(unknown.sentence(), "there is no run `r0000000000`");
}
