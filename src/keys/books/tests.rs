use std::net::{IpAddr, Ipv4Addr};

use super::*;
use crate::ids::{SpawnId, StepName};
use crate::keys::pass::{Bond, Passes};

const PRICES: &str = "
version: 1
date: 2026-01-31
models:
  - models: [anthropic/dear]
    input: 10
    output: 100
    max_output: 1000
";

fn books(folder: &Path) -> Arc<Books> {
    Arc::new(Books::open(folder, Prices::parse(PRICES, "a test's").unwrap()).unwrap())
}

fn live(slot: SlotName, cap: Option<Amount>) -> Arc<Live> {
    let bond = Bond {
        run: RunId::random(),
        step: StepName::work(),
        spawn: SpawnId::random(),
        person: PersonId::local(),
        slot,
        models: Vec::new(),
        cap,
        scenario: None,
        from: IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    Passes::new(Duration::from_secs(60), 1).mint(bond).unwrap().0
}

fn asked(model: &str, most_output: u64) -> Asked {
    let most_output = Some(most_output);
    Asked { model: Some(model.into()), most_output, body_bytes: 40, ..Asked::default() }
}

fn counted(model: &str, input: u64, output: u64) -> Counted {
    Counted { model: Some(model.into()), input, output, ..Counted::default() }
}

#[tokio::test]
async fn what_ends_is_booked_with_its_price_and_asked_again_says_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let books = books(folder.path());
    let live = live(SlotName::anthropic(), None);
    let mut call = books.begin(&live, &asked("dear", 10), false).await.unwrap();
    call.saw(&counted("dear", 5, 1));
    call.end(&counted("dear", 5, 3), How::Whole);
    books.begin(&live, &asked("dear", 10), false).await.unwrap().fail();
    let mut cut = books.begin(&live, &asked("new", 10), false).await.unwrap();
    cut.saw(&Counted { estimated: true, ..counted("new", 7, 2) });
    drop(cut);
    let rows = books.closing(&live.id).await.unwrap();
    let shown: Vec<_> = rows
        .iter()
        .map(|row| {
            (row.model.as_deref().unwrap(), row.calls, row.failed, row.input, row.output, row.cost_micros)
        })
        .collect();
    assert_eq!(shown, [("dear", 2, 1, 5, 3, 350), ("new", 1, 1, 7, 2, 0)]);
    assert_eq!(rows.iter().map(|row| (row.unpriced, row.estimated)).collect::<Vec<_>>(), [(0, 0), (1, 1)]);
    drop(books);
    assert_eq!(self::books(folder.path()).closing(&live.id).await.unwrap(), rows);
}

#[tokio::test]
async fn calls_that_stand_in_the_journal_at_a_start_are_booked_once() {
    let folder = tempfile::tempdir().unwrap();
    let before = books(folder.path());
    let live = live(SlotName::anthropic(), None);
    let mut open = before.begin(&live, &asked("dear", 10), false).await.unwrap();
    open.saw(&counted("dear", 4, 6));
    // What a service that is killed leaves is the file as it is at that moment.
    let journal = std::fs::read(folder.path().join(JOURNAL)).unwrap();
    open.end(&counted("dear", 4, 6), How::Whole);
    drop(before);
    let of_run = |books: Arc<Books>, run: RunId| async move {
        let query = UsageQuery { run: Some(run), ..UsageQuery::default() };
        let usage = books.usage(query).await.unwrap().unwrap();
        usage.rows.iter().map(|row| (row.calls, row.failed, row.output, row.cost_micros)).collect::<Vec<_>>()
    };
    let run = live.bond.run.clone();
    for _ in 0..2 {
        std::fs::write(folder.path().join(JOURNAL), &journal).unwrap();
        // It stands in the books as it ended, and the journal says nothing new.
        assert_eq!(of_run(books(folder.path()), run.clone()).await, [(1, 0, 6, 640)]);
    }
    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join(JOURNAL), &journal).unwrap();
    let after = books(other.path());
    assert_eq!(of_run(after.clone(), run.clone()).await, [(1, 1, 6, 640)]);
    after.open_run(&run).await.unwrap();
    let spent = Payer { run, cap: Some(Amount::UsdMicros(640)), ..payer(&live) };
    assert_eq!(after.ledger().reached(&spent, 5, today()).len(), 1);
}

#[tokio::test]
async fn a_cap_ends_what_it_is_for_and_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let books = books(folder.path());
    let scope = CapScope::SlotMonth(SlotName::rehearsal());
    books.change_caps(vec![(scope.clone(), Amount::Tokens(9))], vec![]).await.unwrap();
    let live = live(SlotName::rehearsal(), Some(Amount::UsdMicros(1)));
    books.open_run(&live.bond.run).await.unwrap();
    let call = books.begin(&live, &asked("any", 10), true).await.unwrap();
    call.end(&counted("any", 4, 5), How::Whole);
    let refused = books.begin(&live, &asked("any", 10), true).await.err().unwrap();
    let Refusal::Spent(reached) = &refused else { panic!("{refused:?}") };
    assert_eq!((reached.cap.as_str(), reached.spent), ("the month's budget of slot rehearsal", 9));
    let (local, slot) = (PersonId::local(), SlotName::rehearsal());
    assert_eq!(books.spent(&local, &slot, true), std::slice::from_ref(reached));
    assert!(books.spent(&local, &SlotName::anthropic(), true).is_empty());
    let day = CapScope::PersonDay(local.clone());
    books.change_caps(vec![(day.clone(), Amount::UsdMicros(0))], vec![]).await.unwrap();
    assert_eq!((books.spent(&local, &slot, true).len(), books.spent(&local, &slot, false).len()), (1, 2));
    books.change_caps(vec![], vec![day]).await.unwrap();
    assert_eq!(books.warnings(&live).len(), 1);
    assert!(books.warnings(&live).is_empty());
    drop(books);
    let books = self::books(folder.path());
    let cap = Cap { scope: scope.clone(), limit: Amount::Tokens(9), spent: 9 };
    assert_eq!(books.caps().caps, [cap]);
    books.change_caps(vec![], vec![scope]).await.unwrap();
    assert!(books.caps().caps.is_empty() && books.begin(&live, &asked("any", 10), true).await.is_ok());
}

#[tokio::test]
async fn who_waits_for_room_gets_it_when_another_call_ends_or_a_cap_is_raised() {
    let folder = tempfile::tempdir().unwrap();
    let books = books(folder.path());
    let scope = || CapScope::PersonDay(PersonId::local());
    books.change_caps(vec![(scope(), Amount::Tokens(100))], vec![]).await.unwrap();
    let live = live(SlotName::rehearsal(), None);
    let first = books.begin(&live, &asked("any", 90), true).await.unwrap();
    let waiter = || {
        let (books, live) = (books.clone(), live.clone());
        let mut waiting = tokio::task::JoinSet::new();
        waiting.spawn(async move { books.begin(&live, &asked("any", 90), true).await.map(Call::fail) });
        waiting
    };
    let mut waiting = waiter();
    tokio::task::yield_now().await;
    assert!(waiting.try_join_next().is_none());
    first.fail();
    waiting.join_next().await.unwrap().unwrap().unwrap();
    let first = books.begin(&live, &asked("any", 90), true).await.unwrap();
    let mut waiting = waiter();
    tokio::task::yield_now().await;
    books.change_caps(vec![(scope(), Amount::Tokens(1000))], vec![]).await.unwrap();
    waiting.join_next().await.unwrap().unwrap().unwrap();
    drop(first);
}

#[tokio::test]
async fn usage_is_added_up_by_what_is_asked_and_by_nothing_that_calls_do_not_have() {
    let folder = tempfile::tempdir().unwrap();
    let books = books(folder.path());
    let passes = [live(SlotName::anthropic(), None), live(SlotName::rehearsal(), None)];
    for live in &passes {
        let call = books.begin(live, &asked("dear", 10), false).await.unwrap();
        call.end(&counted("dear", 1, 1), How::Whole);
    }
    let ask = |by: &str| {
        let query = UsageQuery { by: by.into(), ..UsageQuery::default() };
        let books = books.clone();
        async move { books.usage(query).await.map(|usage| usage.unwrap()) }
    };
    let usage = ask("").await.unwrap();
    assert_eq!((usage.rows.len(), usage.rows[0].calls, usage.prices.as_str()), (1, 2, "2026-01-31"));
    assert_eq!(ask("slot").await.unwrap().rows.len(), 2);
    let day = ask("day, person").await.unwrap().rows;
    assert!(day.len() == 1 && day[0].person == Some(PersonId::local()) && day[0].day.is_some());
    assert!(ask("pass").await.is_none() && ask("slot; DROP TABLE call").await.is_none());
    let nothing = UsageQuery { until: Some(0), ..UsageQuery::default() };
    assert!(books.usage(nothing).await.unwrap().unwrap().rows.is_empty());
}
