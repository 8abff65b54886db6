//! The books' tables: one row per call that has ended, and the standing caps.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use super::journal::{How, Owner, State};
use super::ledger::{Sum, Today};
use crate::clock::Millis;
use crate::failure::{Exit, Explain};
use crate::ids::{PassId, PersonId, RunId};
use crate::keys::slot::SlotName;
use crate::keys::wire::{Amount, CapScope, UsageQuery, UsageRow};

/// Never changed once released: a new step is added at the end. Times are milliseconds since 1970, money is millionths
/// of a dollar.
const STEPS: &[&str] = &["
    CREATE TABLE account (
        id     INTEGER PRIMARY KEY,
        pass   TEXT NOT NULL,
        run    TEXT NOT NULL,
        step   TEXT NOT NULL,
        person TEXT NOT NULL,
        slot   TEXT NOT NULL,
        model  TEXT NOT NULL,
        UNIQUE (pass, model)
    ) STRICT;
    CREATE INDEX account_run ON account (run);
    CREATE TABLE call (
        number      INTEGER PRIMARY KEY,
        account     INTEGER NOT NULL REFERENCES account (id),
        began_at    INTEGER NOT NULL,
        failed      INTEGER NOT NULL,
        input       INTEGER NOT NULL,
        output      INTEGER NOT NULL,
        cache_write INTEGER NOT NULL,
        cache_read  INTEGER NOT NULL,
        cost_micros INTEGER,
        estimated   INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX call_account ON call (account);
    CREATE INDEX call_began ON call (began_at);
    CREATE TABLE cap (
        scope TEXT NOT NULL PRIMARY KEY,
        unit  TEXT NOT NULL CHECK (unit IN ('usd-micros', 'tokens')),
        most  INTEGER NOT NULL
    ) STRICT;
"];

/// How long another process is waited for.
const BUSY: Duration = Duration::from_secs(5);
/// The largest number that a column holds.
const MOST: u64 = i64::MAX as u64;

/// Opening the books, or writing into them, failed.
#[derive(Debug, thiserror::Error)]
pub enum BooksError {
    /// The journal.
    #[error("the journal of calls at `{path}` cannot be used", path = .path.display())]
    Journal {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// SQLite says no.
    #[error("the books at `{path}` cannot be used", path = .path.display())]
    Database {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        cause: rusqlite::Error,
    },
    /// Written by a newer program; left as they are.
    #[error("the books at `{path}` are of version {found}, and this program knows versions up to {known}", path = .path.display())]
    Newer {
        /// Which.
        path: PathBuf,
        /// Their version.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// The thread that writes them is gone.
    #[error("the books are closed")]
    Closed,
}

impl Explain for BooksError {
    fn code(&self) -> &'static str {
        match self {
            Self::Journal { .. } => "books-journal",
            Self::Database { .. } => "books-database",
            Self::Newer { .. } => "books-newer",
            Self::Closed => "books-closed",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Newer { .. } => Some("start the newer worca again; the books were left as they are".into()),
            Self::Journal { .. } | Self::Database { .. } => {
                Some("see that the key service's folder can be written, and that its disk is not full".into())
            }
            Self::Closed => None,
        }
    }
    fn exit(&self) -> Exit {
        match self {
            Self::Newer { .. } => Exit::Refused,
            Self::Journal { .. } | Self::Database { .. } | Self::Closed => Exit::Failed,
        }
    }
}

/// A call that has ended, as it is booked.
#[derive(Debug, Clone)]
pub(super) struct Booked {
    pub(super) owner: Owner,
    pub(super) state: State,
}

/// Opens the database and brings it up to date.
pub(super) fn open(path: &Path) -> Result<Connection, BooksError> {
    let failed = |cause| BooksError::Database { path: path.to_owned(), cause };
    let mut database = Connection::open(path).map_err(failed)?;
    database.busy_timeout(BUSY).map_err(failed)?;
    let found: i64 = database.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
    let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(BooksError::Newer { path: path.to_owned(), found, known });
    }
    // What a machine that loses its power may lose is what the journal may lose too.
    database
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;")
        .map_err(failed)?;
    migrate(&mut database).map_err(failed)?;
    Ok(database)
}

fn migrate(database: &mut Connection) -> rusqlite::Result<()> {
    let change = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let done: i64 = change.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    for (number, step) in (1i64..).zip(STEPS).filter(|(number, _)| *number > done) {
        change.execute_batch(step)?;
        change.pragma_update(None, "user_version", number)?;
    }
    change.commit()
}

/// Books calls, all or none. One that stands there already stays as it is.
pub(super) fn book<'a>(
    database: &mut Connection,
    calls: impl IntoIterator<Item = &'a Booked>,
) -> rusqlite::Result<()> {
    let change = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for call in calls {
        book_one(&change, call)?;
    }
    change.commit()
}

fn book_one(change: &Transaction<'_>, call: &Booked) -> rusqlite::Result<()> {
    let Booked { owner, state } = call;
    let Some((how, cost)) = state.ended else { return Ok(()) };
    let key = params![owner.pass.as_str(), owner.model()];
    let find = "SELECT id FROM account WHERE pass = ?1 AND model = ?2";
    let known: Option<i64> = change.prepare_cached(find)?.query_row(key, |row| row.get(0)).optional()?;
    let account = match known {
        Some(account) => account,
        None => {
            change
                .prepare_cached(
                    "INSERT INTO account (pass, run, step, person, slot, model) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute(params![
                    owner.pass.as_str(),
                    owner.run.as_str(),
                    owner.step.as_str(),
                    owner.person.as_str(),
                    owner.slot.as_str(),
                    owner.model(),
                ])?;
            change.last_insert_rowid()
        }
    };
    let counted = &state.counted;
    change
        .prepare_cached(
            "INSERT OR IGNORE INTO call (number, account, began_at, failed, input, output, cache_write, cache_read,
                 cost_micros, estimated) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            owner.number,
            account,
            owner.began.0,
            how != How::Whole,
            counted.input.min(MOST),
            counted.output.min(MOST),
            counted.cache_write_5m.saturating_add(counted.cache_write_1h).min(MOST),
            counted.cache_read.min(MOST),
            cost.map(|cost| cost.min(MOST)),
            counted.estimated,
        ])?;
    Ok(())
}

/// The highest number of a call.
pub(super) fn last_number(database: &Connection) -> rusqlite::Result<u64> {
    database.query_row("SELECT coalesce(max(number), 0) FROM call", [], |row| row.get(0))
}

const SUMS: &str = "total(coalesce(cost_micros, 0)), total(input + output + cache_write + cache_read)";

fn sum(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Sum> {
    // `total` cannot overflow, and below 2^53 it is exact: nine thousand million dollars.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "sums of what is not negative"
    )]
    let whole = |number: f64| number as u64;
    Ok(Sum { micros: whole(row.get(at)?), tokens: whole(row.get(at + 1)?) })
}

/// What each person spent through each slot on each day of this month.
pub(super) fn this_month(
    database: &Connection,
    now: Millis,
) -> rusqlite::Result<Vec<(PersonId, SlotName, Today, Sum)>> {
    let text = format!(
        "SELECT person, slot, began_at / 86400000 AS day, {SUMS} FROM call JOIN account ON account.id = call.account
         WHERE began_at >= ?1 GROUP BY person, slot, day"
    );
    let mut read = database.prepare(&text)?;
    let rows = read.query_map([month_began(now).0], |row| {
        let (person, slot, day): (String, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let names = PersonId::parse(&person).ok().zip(SlotName::parse(&slot).ok());
        let today = Today::of(Millis(day.saturating_mul(86_400_000)));
        Ok(names.map(|(person, slot)| (person, slot, today, sum(row, 3))))
    })?;
    rows.filter_map(Result::transpose)
        .map(|row| row.and_then(|(person, slot, today, sum)| Ok((person, slot, today, sum?))))
        .collect()
}

fn month_began(now: Millis) -> Millis {
    let moment = time::OffsetDateTime::from_unix_timestamp(now.0.div_euclid(1000))
        .unwrap_or(time::OffsetDateTime::UNIX_EPOCH);
    let first = moment.date().replace_day(1).unwrap_or(moment.date());
    Millis(first.midnight().assume_utc().unix_timestamp().saturating_mul(1000))
}

/// What a run has spent.
pub(super) fn of_run(database: &Connection, run: &RunId) -> rusqlite::Result<Sum> {
    let text =
        format!("SELECT {SUMS} FROM call JOIN account ON account.id = call.account WHERE account.run = ?1");
    database.query_row(&text, [run.as_str()], |row| sum(row, 0))
}

/// The columns that rows are put together by, in their order.
const KEYS: [(&str, &str); 6] = [
    ("person", "person"),
    ("run", "run"),
    ("step", "step"),
    ("slot", "slot"),
    ("model", "model"),
    ("day", "strftime('%Y-%m-%d', began_at / 1000, 'unixepoch')"),
];

/// The words of [`UsageQuery::by`], checked. `None` when one of them is unknown.
pub(super) fn keys_of(by: &str) -> Option<Vec<&'static str>> {
    let asked: Vec<&str> = by.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    let known = |word: &&str| KEYS.iter().any(|(name, _)| name == word);
    asked
        .iter()
        .all(known)
        .then(|| KEYS.iter().map(|(name, _)| *name).filter(|name| asked.contains(name)).collect())
}

/// The calls that fit, put together.
pub(super) fn usage(
    database: &Connection,
    keys: &[&'static str],
    query: &UsageQuery,
    pass: Option<&PassId>,
) -> rusqlite::Result<Vec<UsageRow>> {
    let columns: Vec<String> = KEYS
        .iter()
        .map(|(name, column)| if keys.contains(name) { format!("{column} AS {name}") } else { "NULL".into() })
        .collect();
    let group = if keys.is_empty() {
        "HAVING count(*) > 0".to_owned()
    } else {
        let list = keys.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        format!("GROUP BY {list} ORDER BY {list}")
    };
    let text = format!(
        "SELECT {}, count(*), total(failed), total(input), total(output), total(cache_write), total(cache_read),
             total(coalesce(cost_micros, 0)), total(cost_micros IS NULL), total(estimated)
         FROM call JOIN account ON account.id = call.account
         WHERE (?1 IS NULL OR account.run = ?1) AND (?2 IS NULL OR account.person = ?2)
             AND (?3 IS NULL OR began_at >= ?3) AND (?4 IS NULL OR began_at < ?4) AND (?5 IS NULL OR account.pass = ?5)
         {group}",
        columns.join(", ")
    );
    let mut read = database.prepare_cached(&text)?;
    let rows = read.query_map(
        params![
            query.run.as_ref().map(RunId::as_str),
            query.person.as_ref().map(PersonId::as_str),
            query.since.map(|at| at.min(MOST)),
            query.until.map(|at| at.min(MOST)),
            pass.map(PassId::as_str),
        ],
        row_of,
    )?;
    rows.collect()
}

fn row_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<UsageRow> {
    let text = |at: usize| row.get::<_, Option<String>>(at);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "sums of what is not negative"
    )]
    let whole = |at: usize| row.get::<_, f64>(at).map(|number| number as u64);
    Ok(UsageRow {
        // What this program wrote reads back; a name that does not is left out and not made up.
        person: text(0)?.and_then(|text| PersonId::parse(&text).ok()),
        run: text(1)?.and_then(|text| RunId::parse(&text).ok()),
        step: text(2)?.and_then(|text| crate::ids::StepName::parse(&text).ok()),
        slot: text(3)?.and_then(|text| SlotName::parse(&text).ok()),
        model: text(4)?,
        day: text(5)?,
        calls: row.get(6)?,
        failed: whole(7)?,
        input: whole(8)?,
        output: whole(9)?,
        cache_write: whole(10)?,
        cache_read: whole(11)?,
        cost_micros: whole(12)?,
        unpriced: whole(13)?,
        estimated: whole(14)?,
    })
}

/// The standing caps.
pub(super) fn caps(database: &Connection) -> rusqlite::Result<Vec<(CapScope, Amount)>> {
    let mut read = database.prepare("SELECT scope, unit, most FROM cap")?;
    let rows = read.query_map([], |row| {
        let (scope, unit, most): (String, String, u64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let wrong = |error| rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, error);
        // A cap that cannot be read is no reason to spend without one.
        let scope: CapScope = serde_json::from_str(&scope).map_err(|error| wrong(Box::new(error)))?;
        Ok((scope, if unit == "tokens" { Amount::Tokens(most) } else { Amount::UsdMicros(most) }))
    })?;
    rows.collect()
}

/// Sets caps, and takes others away; all of it or nothing.
pub(super) fn change_caps(
    database: &mut Connection,
    set: &[(CapScope, Amount)],
    removed: &[CapScope],
) -> rusqlite::Result<()> {
    let text = |scope: &CapScope| serde_json::to_string(scope).unwrap_or_default();
    let change = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (scope, limit) in set {
        let (unit, most) = match *limit {
            Amount::UsdMicros(most) => ("usd-micros", most),
            Amount::Tokens(most) => ("tokens", most),
        };
        change.execute(
            "INSERT INTO cap (scope, unit, most) VALUES (?1, ?2, ?3)
             ON CONFLICT (scope) DO UPDATE SET unit = excluded.unit, most = excluded.most",
            params![text(scope), unit, most.min(MOST)],
        )?;
    }
    for scope in removed {
        change.execute("DELETE FROM cap WHERE scope = ?1", [text(scope)])?;
    }
    change.commit()
}
