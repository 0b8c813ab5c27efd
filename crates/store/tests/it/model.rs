//! Random commits, against a map that cannot be wrong.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use quarterdeck_contracts::{Commit, CommitError, Row, Scan, Store, Table};
use quarterdeck_store::{MemoryStore, SqliteStore};
use quarterdeck_testkit::block_on;
use serde_json::{Value, json};

const TABLES: [Table; 2] = [Table::Values, Table::Calls];
/// In the order of their bytes, so that their numbers are too.
const KEYS: [&str; 6] = ["", "a", "a\u{0}", "a%", "ab", "é"];

#[derive(Debug, Clone)]
enum Step {
    Commit {
        checks: Vec<(Place, ExpectedVersion)>,
        writes: Vec<(Place, Option<u8>, Option<u64>)>,
        queued: bool,
    },
    Sweep(u64),
    Scan {
        table: usize,
        prefix: usize,
        after: Option<usize>,
        limit: usize,
    },
    Reopen,
}

type Place = (usize, usize);

/// The version that a commit expects of a row.
#[derive(Debug, Clone, Copy)]
enum ExpectedVersion {
    Absent,
    Now,
    First,
}

fn step() -> impl Strategy<Value = Step> {
    let place = || (0..TABLES.len(), 0..KEYS.len());
    let expected = prop_oneof![
        1 => Just(ExpectedVersion::Absent),
        3 => Just(ExpectedVersion::Now),
        1 => Just(ExpectedVersion::First),
    ];
    let write = (place(), prop::option::weighted(0.7, any::<u8>()), prop::option::of(0..20_u64));
    prop_oneof![
        8 => (vec((place(), expected), 0..3), vec(write, 0..4), any::<bool>())
            .prop_map(|(checks, writes, queued)| Step::Commit { checks, writes, queued }),
        1 => (0..20_u64).prop_map(Step::Sweep),
        3 => (0..TABLES.len(), 0..KEYS.len(), prop::option::of(0..KEYS.len()), 0..7_usize)
            .prop_map(|(table, prefix, after, limit)| Step::Scan { table, prefix, after, limit }),
        1 => Just(Step::Reopen),
    ]
}

/// The rows as they should be, and the first version that each place ever had.
#[derive(Default)]
struct Model {
    rows: BTreeMap<Place, (Value, Option<u64>)>,
    first: BTreeMap<Place, u64>,
    highest: u64,
}

fn row(store: &dyn Store, (table, key): Place) -> Option<Row> {
    block_on(store.get(TABLES[table], KEYS[key])).unwrap()
}

impl Model {
    fn take(&mut self, store: &dyn Store, step: &Step) {
        match step {
            Step::Commit { checks, writes, queued } => self.commit(store, checks, writes, *queued),
            Step::Sweep(now) => {
                let before = self.rows.len();
                self.rows.retain(|_, (_, expires)| expires.is_none_or(|at| at > *now));
                assert_eq!(block_on(store.sweep(*now)).unwrap(), (before - self.rows.len()) as u64);
            }
            Step::Scan { table, prefix, after, limit } => {
                let (prefix, after) = (KEYS[*prefix], after.map(|after| KEYS[after].to_owned()));
                let expected: Vec<_> = self
                    .rows
                    .iter()
                    .map(|((in_table, key), (value, _))| (in_table, KEYS[*key], value))
                    .filter(|(in_table, key, _)| *in_table == table && key.starts_with(prefix))
                    .filter(|(_, key, _)| after.as_deref().is_none_or(|after| *key > after))
                    .take(*limit)
                    .map(|(_, key, value)| (key.to_owned(), value.clone()))
                    .collect();
                let scan = Scan { prefix: prefix.into(), after, limit: *limit };
                let rows = block_on(store.scan(TABLES[*table], scan)).unwrap();
                let rows: Vec<_> = rows.into_iter().map(|(key, row)| (key, row.value)).collect();
                assert_eq!(rows, expected);
            }
            Step::Reopen => {}
        }
        for place in (0..TABLES.len()).flat_map(|table| (0..KEYS.len()).map(move |key| (table, key))) {
            let expected = self.rows.get(&place).map(|(value, _)| value.clone());
            assert_eq!(row(store, place).map(|row| row.value), expected);
        }
    }

    fn commit(
        &mut self,
        store: &dyn Store,
        checks: &[(Place, ExpectedVersion)],
        writes: &[(Place, Option<u8>, Option<u64>)],
        queued: bool,
    ) {
        let mut commit = Commit::default();
        let mut failing = None;
        for (place, expected) in checks {
            let now = row(store, *place).map(|row| row.version);
            let version = match expected {
                ExpectedVersion::Absent => None,
                ExpectedVersion::Now => now,
                ExpectedVersion::First => self.first.get(place).copied(),
            };
            let (table, key) = (TABLES[place.0], KEYS[place.1]);
            if version != now && failing.is_none() {
                failing = Some(CommitError::Conflict { table, key: key.into() });
            }
            commit = commit.check(table, key, version);
        }
        for ((table, key), value, expires) in writes {
            commit = match value {
                Some(value) => commit.put_until(TABLES[*table], KEYS[*key], json!(value), *expires),
                None => commit.delete(TABLES[*table], KEYS[*key]),
            };
        }
        if queued {
            store.queue(commit).unwrap();
        } else {
            assert_eq!(block_on(store.commit(commit)).err(), failing);
        }
        if failing.is_some() {
            return;
        }
        for (place, value, expires) in writes {
            match value {
                Some(value) => drop(self.rows.insert(*place, (json!(value), *expires))),
                None => drop(self.rows.remove(place)),
            }
        }
        self.versions_grow(store, writes.iter().map(|(place, ..)| *place));
    }

    fn versions_grow(&mut self, store: &dyn Store, places: impl Iterator<Item = Place>) {
        let before = self.highest;
        for place in places {
            let Some(row) = row(store, place) else { continue };
            assert!(row.version > before, "{} came after {before}", row.version);
            self.first.entry(place).or_insert(row.version);
            self.highest = row.version;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_store_in_memory_is_a_map(steps in vec(step(), 1..60)) {
        let store = MemoryStore::new();
        let mut model = Model::default();
        for step in &steps {
            model.take(&store, step);
        }
    }

    #[test]
    fn the_store_in_a_file_is_a_map(steps in vec(step(), 1..60)) {
        let folder = tempfile::tempdir().unwrap();
        let open = || Arc::new(SqliteStore::open(folder.path().join("store.db")).unwrap());
        let mut store = open();
        let mut model = Model::default();
        for step in &steps {
            if matches!(step, Step::Reopen) {
                drop(store);
                store = open();
            }
            model.take(&*store, step);
        }
    }
}

/// Fewer, because every step is a dozen questions to the server.
#[cfg(all(feature = "postgres", unix))]
mod in_a_database {
    use quarterdeck_testkit::{PostgresServer, PostgresVersion};

    use super::*;
    use crate::postgres::support::open;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_store_in_a_database_is_a_map(steps in vec(step(), 1..60)) {
            let Some(server) = PostgresServer::shared(PostgresVersion::V18) else { return Ok(()) };
            let url = server.create_database();
            let mut store = open(&url);
            let mut model = Model::default();
            for step in &steps {
                if matches!(step, Step::Reopen) {
                    drop(store);
                    store = open(&url);
                }
                model.take(&store, step);
            }
        }
    }
}
