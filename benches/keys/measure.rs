//! The order of a run, its tables, and what is judged.

use std::path::Path;
use std::time::Duration;

use tokio::task::JoinSet;
use worca::keys::client::Minted;

use crate::load::{self, Line, share};
use crate::peers::{self, Peer};
use crate::upstream::{HOLD, PAUSE};

const CONCURRENCIES: [usize; 3] = [1, 16, 64];
/// Streams that are open at a time while memory is looked at.
const STREAMS: usize = 1000;
/// Less than a third of a lease.
const RENEW: Duration = Duration::from_secs(2);

const DIRECT: usize = 0;
const NGINX: usize = 1;
const OURS: usize = 2;
const LITELLM: usize = 3;
const NAMES: [&str; 4] = ["direct", "nginx", "worca", "LiteLLM"];

/// What one target did with one kind of request at one concurrency: medians of the rounds.
#[derive(Debug, Clone, Copy)]
struct Cell {
    per_second: f64,
    median: f64,
    p99: f64,
    first: f64,
    first_p99: f64,
    /// Processor time for one request, in microseconds.
    work: f64,
}

/// An aim, whether it is met, and what was seen.
struct Aim {
    text: String,
    seen: String,
    met: bool,
}

/// Measures everything, prints it, and says whether every aim is met. Without LiteLLM (`-`) its part is left out.
pub async fn all(worca: &Path, nginx: &Path, litellm: &Path, time: Duration, rounds: usize) -> bool {
    let direct = peers::direct();
    let upstream = direct.target.address;
    let nginx = peers::nginx(nginx, upstream);
    let mut ours = peers::worca(worca, upstream);
    let control = peers::control(&ours);
    let Minted { id, pass, .. } = control.mint(&peers::wanted()).await.unwrap();
    ours.target.headers = format!("authorization: Bearer {}\r\n", pass.expose());
    let mut renewing = JoinSet::new();
    renewing.spawn(async move {
        loop {
            tokio::time::sleep(RENEW).await;
            control.renew(std::slice::from_ref(&id)).await.unwrap();
        }
    });
    let peers = [&direct, &nginx, &ours];
    let mut cells = Vec::new();
    let mut aims = Vec::new();
    for stream in [false, true] {
        for concurrency in CONCURRENCIES {
            cells.push((stream, concurrency, round(&peers, stream, "", concurrency, time, rounds).await));
        }
    }
    let mut first = round(&peers, true, PAUSE, 16, time, rounds).await;
    let mut memory: Vec<(usize, f64)> = Vec::new();
    for (which, peer) in [(NGINX, &nginx), (OURS, &ours)] {
        memory.push((which, with_streams(peer).await));
    }
    if litellm.as_os_str() != "-" {
        let theirs = peers::litellm(litellm, upstream);
        // Its first answers load what it needs.
        load::run(&theirs.target, &theirs.target.request(false, ""), 1, Duration::from_secs(5)).await;
        for (stream, concurrency, cells) in &mut cells {
            cells.extend(round(&[&theirs], *stream, "", *concurrency, 2 * time, 1).await);
        }
        first.extend(round(&[&theirs], true, PAUSE, 16, 2 * time, 1).await);
        memory.push((LITELLM, theirs.resident()));
    }
    print(&cells, &first, &memory);
    for (stream, concurrency, cells) in &cells {
        judge(*stream, *concurrency, cells, &mut aims);
    }
    aim(
        &mut aims,
        "first byte of a stream, added median ≤ 0.4 ms",
        added(&first, |cell| cell.first),
        |seen| seen <= 0.4,
    );
    aim(
        &mut aims,
        "first byte of a stream, added p99 ≤ 1 ms",
        added(&first, |cell| cell.first_p99),
        |seen| seen <= 1.0,
    );
    let held = memory.iter().find(|(which, _)| *which == OURS).map_or(f64::NAN, |(_, held)| *held);
    aim(&mut aims, "memory with 1,000 open streams ≤ 64 MB", held, |seen| seen <= 64.0);
    println!("\n| aim | seen | |\n| --- | --- | --- |");
    for aim in &aims {
        println!("| {} | {} | {} |", aim.text, aim.seen, if aim.met { "met" } else { "MISSED" });
    }
    aims.iter().all(|aim| aim.met)
}

fn aim(aims: &mut Vec<Aim>, text: impl Into<String>, seen: f64, met: impl Fn(f64) -> bool) {
    aims.push(Aim { text: text.into(), seen: format!("{seen:.2}"), met: met(seen) });
}

fn added(cells: &[Cell], of: impl Fn(&Cell) -> f64) -> f64 {
    match cells {
        [direct, _, ours, ..] => of(ours) - of(direct),
        _ => f64::NAN,
    }
}

fn judge(stream: bool, concurrency: usize, cells: &[Cell], aims: &mut Vec<Aim>) {
    let what = format!("{} at {concurrency}", if stream { "SSE" } else { "JSON" });
    let ratio = |to: usize| Some(cells.get(OURS)?.per_second / cells.get(to)?.per_second);
    if let Some(seen) = ratio(NGINX) {
        aim(aims, format!("{what}: requests/s ≥ 0.7 × nginx"), seen, |seen| seen >= 0.7);
    }
    if let Some(seen) = ratio(LITELLM) {
        aim(aims, format!("{what}: requests/s ≥ 200 × LiteLLM"), seen, |seen| seen >= 200.0);
    }
    if concurrency == 16 {
        aim(aims, format!("{what}: added median ≤ 0.4 ms"), added(cells, |cell| cell.median), |seen| {
            seen <= 0.4
        });
        aim(aims, format!("{what}: added p99 ≤ 1 ms"), added(cells, |cell| cell.p99), |seen| seen <= 1.0);
    }
}

/// Asks the targets in turn, so that a slow moment of the machine meets all of them.
async fn round(
    peers: &[&Peer],
    stream: bool,
    text: &str,
    concurrency: usize,
    time: Duration,
    rounds: usize,
) -> Vec<Cell> {
    let mut seen: Vec<Vec<Cell>> = vec![Vec::new(); peers.len()];
    for _ in 0..rounds {
        for (peer, seen) in peers.iter().zip(&mut seen) {
            seen.push(one(peer, stream, text, concurrency, time).await);
        }
    }
    seen.into_iter().map(|cells| middle(&cells)).collect()
}

async fn one(peer: &Peer, stream: bool, text: &str, concurrency: usize, time: Duration) -> Cell {
    let (target, before) = (&peer.target, peer.worked());
    let seen = load::run(target, &target.request(stream, text), concurrency, time).await;
    let worked = peer.worked().saturating_sub(before);
    let failure = seen.failure.as_deref().unwrap_or_default();
    assert!(seen.failed == 0 && !seen.whole.is_empty(), "{target:?}: {} failed: {failure}", seen.failed);
    Cell {
        per_second: seen.per_second(),
        median: share(&seen.whole, 0.5),
        p99: share(&seen.whole, 0.99),
        first: share(&seen.first, 0.5),
        first_p99: share(&seen.first, 0.99),
        work: worked.as_secs_f64() * 1e6 / seen.asked as f64,
    }
}

fn middle(cells: &[Cell]) -> Cell {
    let of = |value: fn(&Cell) -> f64| {
        let mut all: Vec<f64> = cells.iter().map(value).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
    };
    Cell {
        per_second: of(|cell| cell.per_second),
        median: of(|cell| cell.median),
        p99: of(|cell| cell.p99),
        first: of(|cell| cell.first),
        first_p99: of(|cell| cell.first_p99),
        work: of(|cell| cell.work),
    }
}

/// The memory of a proxy while so many streams are open through it.
async fn with_streams(peer: &Peer) -> f64 {
    let request = peer.target.request(true, HOLD);
    let mut open = Vec::new();
    for _ in 0..STREAMS {
        let mut line = Line::open(peer.target.address).await.unwrap();
        line.ask(&request).await.unwrap();
        open.push(line);
    }
    peer.resident()
}

fn print(cells: &[(bool, usize, Vec<Cell>)], first: &[Cell], memory: &[(usize, f64)]) {
    println!(
        "| | at a time | | requests/s | median ms | p99 ms | added median | added p99 | processor µs | × nginx | × LiteLLM |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (stream, concurrency, cells) in cells {
        let kind = if *stream { "SSE" } else { "JSON" };
        let Some(direct) = cells.get(DIRECT) else { continue };
        for (which, cell) in cells.iter().enumerate() {
            let ratio = |to: usize| match cells.get(to) {
                Some(other) if which == OURS => format!("{:.2}", cell.per_second / other.per_second),
                _ => String::new(),
            };
            let more = |value: f64, without: f64| match which {
                DIRECT => String::new(),
                _ => format!("{:.2}", value - without),
            };
            println!(
                "| {kind} | {concurrency} | {} | {:.0} | {:.2} | {:.2} | {} | {} | {:.0} | {} | {} |",
                NAMES.get(which).unwrap_or(&""),
                cell.per_second,
                cell.median,
                cell.p99,
                more(cell.median, direct.median),
                more(cell.p99, direct.p99),
                cell.work,
                ratio(NGINX),
                ratio(LITELLM)
            );
        }
    }
    println!("\n| | first byte of a stream, median ms | p99 ms | memory, MB |\n| --- | --- | --- | --- |");
    for (which, cell) in first.iter().enumerate() {
        let held = memory.iter().find(|(of, _)| *of == which).map(|(_, held)| format!("{held:.0}"));
        let name = NAMES.get(which).unwrap_or(&"");
        println!("| {name} | {:.2} | {:.2} | {} |", cell.first, cell.first_p99, held.unwrap_or_default());
    }
}
