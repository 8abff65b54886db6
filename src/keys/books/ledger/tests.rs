use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const DAY: i64 = 86_400_000;

fn at(day: i64) -> Today {
    Today::of(Millis(day * DAY + 1))
}

fn payer(cap: Option<Amount>) -> Payer {
    Payer { run: RunId::random(), person: PersonId::local(), slot: SlotName::anthropic(), cap }
}

fn micros(number: u64) -> Sum {
    Sum { micros: number, tokens: number }
}

fn promised(verdict: Verdict) -> Promise {
    match verdict {
        Verdict::Promised(promise) => promise,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_long_answer_alone_goes_over_a_cap_once_and_then_the_cap_is_reached() {
    let mut ledger = Ledger::default();
    let payer = payer(Some(Amount::UsdMicros(100)));
    let ask = |ledger: &mut Ledger| ledger.promise(&payer, Price::Micros(250), 9, at(0));
    let promise = promised(ask(&mut ledger));
    assert!(matches!(ask(&mut ledger), Verdict::Wait));
    ledger.settle(&promise, micros(30), at(0));
    let promise = promised(ask(&mut ledger));
    ledger.settle(&promise, micros(240), at(0));
    let Verdict::Spent(reached) = ask(&mut ledger) else { panic!("it is spent") };
    assert_eq!(reached.spent, 270);
    assert_eq!(reached.cap, format!("the budget of run {}", payer.run));
}

#[test]
fn small_calls_share_what_is_left() {
    let mut ledger = Ledger::default();
    let payer = payer(Some(Amount::UsdMicros(100)));
    let mut ask = |price| ledger.promise(&payer, Price::Micros(price), 9, at(0));
    let _first = promised(ask(40));
    let _second = promised(ask(60));
    assert!(matches!(ask(1), Verdict::Wait));
}

#[test]
fn who_is_not_billed_meets_no_cap_in_dollars_and_every_cap_in_tokens() {
    let mut ledger = Ledger::default();
    let mine = payer(Some(Amount::UsdMicros(0)));
    promised(ledger.promise(&mine, Price::Free, 50, at(0)));
    assert!(matches!(ledger.promise(&mine, Price::Unknown, 50, at(0)), Verdict::Unpriced(_)));
    ledger.set_cap(CapScope::PersonDay(PersonId::local()), Amount::Tokens(60));
    assert!(matches!(ledger.promise(&mine, Price::Free, 50, at(0)), Verdict::Wait));
    let other = payer(Some(Amount::Tokens(10)));
    assert!(matches!(ledger.promise(&other, Price::Unknown, 5, at(0)), Verdict::Promised(_)));
}

#[test]
fn each_standing_cap_counts_its_own_days_and_months_and_is_named() {
    let mut ledger = Ledger::default();
    let (person, slot) = (PersonId::local(), SlotName::anthropic());
    let scopes = [
        (CapScope::PersonDay(person.clone()), "the day's budget of local", 1),
        (CapScope::PersonMonth(person.clone()), "the month's budget of local", 31),
        (CapScope::SlotMonth(slot.clone()), "the month's budget of slot anthropic", 31),
    ];
    ledger.carry(&person, &slot, at(0), micros(80));
    for (scope, name, next) in scopes {
        ledger.set_cap(scope.clone(), Amount::UsdMicros(80));
        let Verdict::Spent(reached) = ledger.promise(&payer(None), Price::Micros(1), 1, at(0)) else {
            panic!("{name} is spent")
        };
        assert_eq!(reached.cap, name);
        assert!(matches!(ledger.promise(&payer(None), Price::Micros(1), 1, at(next)), Verdict::Promised(_)));
        ledger.remove_cap(&scope);
    }
}

#[test]
fn a_call_that_ends_on_another_day_counts_where_it_began() {
    let mut ledger = Ledger::default();
    let scope = CapScope::PersonDay(PersonId::local());
    ledger.set_cap(scope.clone(), Amount::UsdMicros(1000));
    let first = promised(ledger.promise(&payer(None), Price::Micros(5), 5, at(0)));
    let second = promised(ledger.promise(&payer(None), Price::Micros(5), 5, at(0)));
    ledger.settle(&first, micros(7), at(1));
    let spent = |ledger: &Ledger, day| ledger.caps(at(day)).map(|(_, _, spent)| spent).collect::<Vec<_>>();
    // The day before is kept for as long as one of its calls is open.
    assert_eq!((spent(&ledger, 0), spent(&ledger, 1)), (vec![7], vec![0]));
    ledger.settle(&second, micros(7), at(2));
    assert_eq!(spent(&ledger, 0), vec![0]);
}

#[test]
fn a_warning_comes_from_four_fifths_on() {
    let mut ledger = Ledger::default();
    let payer = payer(Some(Amount::Tokens(10)));
    for (used, warned) in [(7, 0), (1, 1), (3, 1)] {
        let promise = promised(ledger.promise(&payer, Price::Free, 1, at(0)));
        ledger.settle(&promise, micros(used), at(0));
        assert_eq!(ledger.reached(&payer, 4, at(0)).len(), warned, "{used}");
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// Run, prediction, and what it will have used of it, in hundredths.
    Begin(usize, u64, u64),
    /// One of the open calls ends; none of it may have been used.
    End(usize, bool),
    NextDay,
    /// The service is killed: what was open is booked as it stood, and the ledger is made anew from the books.
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0usize..3, 1u64..60, 0u64..=100).prop_map(|(run, most, part)| Step::Begin(run, most, part)),
        5 => (0usize..8, any::<bool>()).prop_map(|(call, failed)| Step::End(call, failed)),
        1 => Just(Step::NextDay),
        1 => Just(Step::Crash),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever begins, ends, fails, is cut and crashes in whatever order: no cap is gone over by more than one call,
    /// and what the ledger says is spent is what was used.
    #[test]
    fn no_cap_is_gone_over_by_more_than_one_call(
        steps in proptest::collection::vec(step(), 1..120), caps in [20u64..200, 20u64..200, 20u64..200, 20u64..200]
    ) {
        let person = PersonId::local();
        let runs: Vec<Payer> = (0..3).map(|_| payer(Some(Amount::UsdMicros(caps[0])))).collect();
        let standing = [
            (CapScope::PersonDay(person.clone()), caps[1]),
            (CapScope::PersonMonth(person.clone()), caps[2]),
            (CapScope::SlotMonth(SlotName::anthropic()), caps[3]),
        ];
        let fresh = || {
            let mut ledger = Ledger::default();
            for (scope, limit) in &standing {
                ledger.set_cap(scope.clone(), Amount::UsdMicros(*limit));
            }
            ledger
        };
        let mut ledger = fresh();
        let mut day = 0;
        let mut open: Vec<(usize, i64, Promise, u64)> = Vec::new();
        let mut books: Vec<(usize, i64, u64)> = Vec::new();
        let mut dearest = 0;
        for step in steps {
            match step {
                Step::Begin(run, most, part) => match ledger.promise(&runs[run], Price::Micros(most), most, at(day)) {
                    Verdict::Promised(promise) => open.push((run, day, promise, most * part / 100)),
                    Verdict::Wait => prop_assert!(!open.is_empty(), "nobody ends, and it waits"),
                    Verdict::Spent(reached) => prop_assert!(reached.spent > 0, "it is spent at nothing spent"),
                    Verdict::Unpriced(_) => prop_assert!(false, "it has a price"),
                },
                Step::End(call, failed) => {
                    if open.is_empty() {
                        continue;
                    }
                    let (run, began, promise, used) = open.swap_remove(call % open.len());
                    let used = if failed { 0 } else { used };
                    dearest = dearest.max(used);
                    ledger.settle(&promise, micros(used), at(day));
                    books.push((run, began, used));
                }
                Step::NextDay => day += 1,
                Step::Crash => {
                    for (run, began, _, used) in open.drain(..) {
                        dearest = dearest.max(used);
                        books.push((run, began, used));
                    }
                    ledger = fresh();
                    for (_, day, used) in &books {
                        ledger.carry(&person, &SlotName::anthropic(), at(*day), micros(*used));
                    }
                    for (number, run) in runs.iter().enumerate() {
                        let spent = books.iter().filter(|(run, _, _)| *run == number).map(|(_, _, used)| used).sum();
                        ledger.open(&run.run, micros(spent));
                    }
                }
            }
            let mut by_run = HashMap::<usize, u64>::new();
            let mut today = 0;
            for (run, on, used) in &books {
                *by_run.entry(*run).or_default() += used;
                today += if *on == day { *used } else { 0 };
            }
            let all: u64 = books.iter().map(|(_, _, used)| used).sum();
            for spent in by_run.values() {
                prop_assert!(*spent < caps[0] + dearest.max(1), "run: {spent} of {}", caps[0]);
            }
            // All days of this test lie in one month.
            prop_assert!(today < caps[1] + dearest.max(1) && all < caps[2].min(caps[3]) + dearest.max(1));
            let said: Vec<u64> = ledger.caps(at(day)).map(|(_, _, spent)| spent).collect();
            prop_assert_eq!(said, vec![today, all, all]);
        }
    }
}
