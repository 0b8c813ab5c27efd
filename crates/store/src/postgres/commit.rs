//! A commit as the server's function takes it, sent until it is known what became of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::BytesMut;
use quarterdeck_contracts::{Commit, CommitError, StoreError, Table, Take};
use quarterdeck_postgres::{Database, DatabaseError, ErrorClass, Refusal};
use tokio_postgres::types::{IsNull, ToSql, Type, accepts, to_sql_checked};
use tokio_postgres::{Client, Row};

use super::retry::{Retry, store_error};
use super::tables::number;

/// A row is there for ever, or a limit is none, beyond this; the server adds to such numbers.
const MAX_NUMBER: u64 = 1 << 53;

/// A row appeared that was not there a moment ago.
const OVERTAKEN: &str = "QD001";
/// A check failed, or a rate limit has no room.
const REFUSED: &str = "QD002";

/// A commit whose values are text already.
pub(super) struct EncodedCommit {
    pub(super) checks: Vec<(Table, String, Option<i64>)>,
    pub(super) takes: Vec<Take>,
    pub(super) writes: Vec<EncodedWrite>,
}

pub(super) struct EncodedWrite {
    pub(super) table: Table,
    pub(super) key: String,
    value: Option<String>,
    expires_ms: Option<i64>,
}

impl EncodedCommit {
    pub(super) fn new(commit: Commit) -> Self {
        let checks = commit.checks.into_iter();
        let checks =
            checks.map(|check| (check.table, check.key, check.version.map(|version| version.cast_signed())));
        let writes = commit.writes.into_iter().map(|write| EncodedWrite {
            table: write.table,
            key: write.key,
            value: write.value.map(|value| value.to_string()),
            expires_ms: write.expires_ms.map(bounded),
        });
        Self { checks: checks.collect(), takes: commit.takes, writes: writes.collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.takes.is_empty()
    }

    /// Every row that it changes.
    pub(super) fn changed_rows(&self) -> impl Iterator<Item = (Table, &str)> {
        let written = self.writes.iter().map(|write| (write.table, write.key.as_str()));
        written.chain(self.takes.iter().map(|take| (Table::Rates, take.key.as_str())))
    }

    /// Every row that it looks at or changes.
    pub(super) fn rows(&self) -> impl Iterator<Item = (Table, &str)> {
        let checked = self.checks.iter().map(|(table, key, _)| (*table, key.as_str()));
        checked.chain(self.changed_rows())
    }

    /// Roughly, in memory.
    pub(super) fn size(&self) -> usize {
        let values = self.writes.iter().filter_map(|write| write.value.as_ref()).map(String::len);
        self.rows().map(|(_, key)| 64 + key.len()).sum::<usize>() + values.sum::<usize>()
    }
}

fn bounded(number: u64) -> i64 {
    number.min(MAX_NUMBER).cast_signed()
}

/// When a commit is answered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// It is on the server's disk.
    Synced,
    /// It is seen by all, and a crash of the server may lose it.
    Visible,
}

/// The arguments of the function: each row once, in the order in which all nodes lock them.
#[derive(Default)]
struct Arguments {
    tables: Vec<i16>,
    keys: Vec<Vec<u8>>,
    checked: Vec<bool>,
    versions: Vec<Option<i64>>,
    written: Vec<bool>,
    values: Vec<Option<String>>,
    expiries: Vec<Option<i64>>,
    counts: Vec<Option<i64>>,
    limits: Vec<Option<i64>>,
    windows: Vec<Option<i64>>,
    looks: Vec<i32>,
    look_versions: Vec<Option<i64>>,
}

/// What is to happen with one row.
#[derive(Default)]
struct RowChange<'c> {
    check: Option<Option<i64>>,
    write: Option<&'c EncodedWrite>,
    take: Option<Take>,
}

impl Arguments {
    /// Of several commits, one after the other, that hold together.
    fn new(commits: &[&EncodedCommit]) -> Self {
        let mut rows: BTreeMap<(i16, &str), RowChange<'_>> = BTreeMap::new();
        for commit in commits {
            for (table, key, version) in &commit.checks {
                rows.entry((number(*table), key)).or_default().check.get_or_insert(*version);
            }
            for write in &commit.writes {
                rows.entry((number(write.table), &write.key)).or_default().write = Some(write);
            }
            for take in &commit.takes {
                let row = rows.entry((number(Table::Rates), &take.key)).or_default();
                let count = row.take.as_ref().map_or(0, |other| other.count);
                row.take = Some(Take { count: count.saturating_add(take.count), ..take.clone() });
            }
        }
        let mut arguments = Self::default();
        for ((table, key), change) in &rows {
            arguments.push(*table, key, change);
        }
        let places: BTreeMap<_, i32> = rows.into_keys().zip(1..).collect();
        for (table, key, version) in commits.iter().flat_map(|commit| &commit.checks) {
            if let Some(place) = places.get(&(number(*table), key.as_str())) {
                arguments.looks.push(*place);
                arguments.look_versions.push(*version);
            }
        }
        arguments
    }

    fn push(&mut self, table: i16, key: &str, change: &RowChange<'_>) {
        self.tables.push(table);
        self.keys.push(key.as_bytes().to_vec());
        self.checked.push(change.check.is_some());
        self.versions.push(change.check.flatten());
        self.written.push(change.write.is_some() || change.take.is_some());
        self.values.push(change.write.and_then(|write| write.value.clone()));
        self.expiries.push(change.write.and_then(|write| write.expires_ms));
        self.counts.push(change.take.as_ref().map(|take| bounded(take.count)));
        self.limits.push(change.take.as_ref().map(|take| bounded(take.limit)));
        self.windows.push(change.take.as_ref().map(|take| bounded(take.window_ms)));
    }
}

/// Names a commit for as long as anyone may ask for it.
#[derive(Debug)]
struct CommitId([u8; 16]);

impl CommitId {
    fn random() -> Result<Self, StoreError> {
        let mut bytes = [0; 16];
        let failed = |error| StoreError::Failed(format!("the system has no random numbers: {error}"));
        getrandom::fill(&mut bytes).map_err(failed)?;
        Ok(Self(bytes))
    }
}

impl ToSql for CommitId {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    accepts!(UUID);
    to_sql_checked!();
}

const CALL: &str = "SELECT version, refused, retry_ms
    FROM qd.commit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";

struct Call {
    id: CommitId,
    durability: Durability,
    arguments: Arguments,
}

/// What the function answers.
enum Answer {
    /// With this version.
    Applied(i64),
    Refused {
        /// Counted from one.
        row: usize,
        retry_after_ms: Option<u64>,
    },
}

impl Call {
    async fn send(&self, client: &Client, again: bool) -> Result<Row, tokio_postgres::Error> {
        let is_durable = self.durability == Durability::Synced;
        let arguments = &self.arguments;
        client
            .query_typed_one(
                CALL,
                &[
                    (&self.id, Type::UUID),
                    (&again, Type::BOOL),
                    (&is_durable, Type::BOOL),
                    (&arguments.tables, Type::INT2_ARRAY),
                    (&arguments.keys, Type::BYTEA_ARRAY),
                    (&arguments.checked, Type::BOOL_ARRAY),
                    (&arguments.versions, Type::INT8_ARRAY),
                    (&arguments.written, Type::BOOL_ARRAY),
                    (&arguments.values, Type::TEXT_ARRAY),
                    (&arguments.expiries, Type::INT8_ARRAY),
                    (&arguments.counts, Type::INT8_ARRAY),
                    (&arguments.limits, Type::INT8_ARRAY),
                    (&arguments.windows, Type::INT8_ARRAY),
                    (&arguments.looks, Type::INT4_ARRAY),
                    (&arguments.look_versions, Type::INT8_ARRAY),
                ],
            )
            .await
    }
}

/// What commits came to since the start, beside being applied.
#[derive(Default)]
pub(super) struct CommitCounters {
    /// Attempts after the first.
    pub(super) retries: AtomicU64,
    pub(super) unknown_outcomes: AtomicU64,
}

/// Commits that are applied as one, under one id however often they are sent.
pub(super) struct PreparedCommit<'c> {
    commits: &'c [&'c EncodedCommit],
    call: Arc<Call>,
    /// Whether an attempt may have been applied although its answer is missing.
    is_in_doubt: bool,
}

impl<'c> PreparedCommit<'c> {
    pub(super) fn new(commits: &'c [&'c EncodedCommit], durability: Durability) -> Result<Self, StoreError> {
        let call = Call { id: CommitId::random()?, durability, arguments: Arguments::new(commits) };
        Ok(Self { commits, call: Arc::new(call), is_in_doubt: false })
    }

    /// Sends it until it is known what became of it, or the time is up. It may be called again after
    /// [`CommitError::Unknown`] and [`StoreError::Unavailable`].
    pub(super) async fn apply(
        &mut self,
        database: &Database,
        counters: &CommitCounters,
    ) -> Result<u64, CommitError> {
        let mut retry = Retry::new();
        loop {
            let error = match self.attempt(&retry, database).await {
                Ok(answer) => return self.result(answer),
                Err(DatabaseError::Refused(refusal)) if refusal.code == REFUSED => {
                    return self.result(Answer::of_refusal(&refusal));
                }
                Err(error) => error,
            };
            self.is_in_doubt |= error.class() == ErrorClass::Lost;
            let is_overtaken = matches!(&error, DatabaseError::Refused(refusal) if refusal.code == OVERTAKEN);
            let may_repeat = is_overtaken || error.class() != ErrorClass::Final;
            if may_repeat && retry.wait().await {
                counters.retries.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            return Err(if self.is_in_doubt {
                counters.unknown_outcomes.fetch_add(1, Ordering::Relaxed);
                CommitError::Unknown(error.to_string())
            } else if is_overtaken {
                StoreError::Unavailable("other commits kept coming first".to_owned()).into()
            } else {
                store_error(&error).into()
            });
        }
    }

    async fn attempt(&self, retry: &Retry, database: &Database) -> Result<Answer, DatabaseError> {
        let (call, again) = (Arc::clone(&self.call), self.is_in_doubt);
        let attempt = retry.attempt(database, move |client| {
            Box::pin(async move { call.send(client, again).await.map(|row| Answer::of_row(&row)) })
        });
        attempt.await
    }

    fn result(&self, answer: Answer) -> Result<u64, CommitError> {
        let (row, retry_after_ms) = match answer {
            Answer::Applied(version) => return Ok(version.cast_unsigned()),
            Answer::Refused { row, retry_after_ms } => (row, retry_after_ms),
        };
        let Arguments { tables, keys, .. } = &self.call.arguments;
        let refused = row.checked_sub(1).and_then(|n| Some((tables.get(n)?, keys.get(n)?)));
        let found = refused.and_then(|(wanted, wanted_key)| {
            let mut rows = self.commits.iter().flat_map(|commit| commit.rows());
            rows.find(|(table, key)| number(*table) == *wanted && key.as_bytes() == wanted_key)
        });
        let Some((table, key)) = found else {
            return Err(StoreError::Failed("the server refused a row that was not asked for".into()).into());
        };
        let key = key.to_owned();
        Err(match retry_after_ms {
            Some(retry_after_ms) => CommitError::Exhausted { key, retry_after_ms },
            None => CommitError::Conflict { table, key },
        })
    }
}

impl Answer {
    fn of_row(row: &Row) -> Self {
        match row.get::<_, Option<i32>>(1) {
            Some(place) => Self::Refused {
                row: usize::try_from(place).unwrap_or(0),
                retry_after_ms: row.get::<_, Option<i64>>(2).map(i64::unsigned_abs),
            },
            None => Self::Applied(row.get::<_, Option<i64>>(0).unwrap_or(0)),
        }
    }

    /// The detail is the row's place, and the time to wait for a rate limit.
    fn of_refusal(refusal: &Refusal) -> Self {
        let mut numbers = refusal.detail.as_deref().unwrap_or_default().split(' ');
        let row = numbers.next().and_then(|number| number.parse().ok()).unwrap_or(0);
        Self::Refused { row, retry_after_ms: numbers.next().and_then(|number| number.parse().ok()) }
    }
}
