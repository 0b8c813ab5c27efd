//! Reads what the nodes have kept. Of a database in plain SQL: a checker that reads through the product's own store would
//! believe what that believes.

use std::collections::BTreeMap;

use quarterdeck_contracts::{Scan, Store, Table};
use quarterdeck_testkit::PostgresServer;
use serde_json::Value;

use crate::journal::keys_in;

/// A call of one of the load's tools, as the ledger has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerCall {
    /// What was asked for.
    pub key: String,
    pub session: String,
    /// Whether it is recorded as done. One that has begun and was not recorded is not.
    pub is_ok: bool,
}

/// What the nodes have kept of the load.
#[derive(Debug, Default)]
pub struct Ledger {
    pub calls: Vec<LedgerCall>,
    /// The receipts that the tools have stored, by what was asked for.
    pub values: BTreeMap<String, u64>,
}

impl Ledger {
    pub async fn of_file(store: &dyn Store) -> Self {
        Self::new(all(store, Table::Calls).await, all(store, Table::Values).await)
    }

    pub fn of_database(server: &PostgresServer, database: &str) -> Self {
        // In one statement: a call whose client has left may be recorded at any time, and its value with it.
        let (calls, values) = rows(server, database).into_iter().partition::<Vec<_>, _>(|row| row.0 == CALLS);
        let without_table =
            |rows: Vec<(u64, String, Value)>| rows.into_iter().map(|row| (row.1, row.2)).collect();
        Self::new(without_table(calls), without_table(values))
    }

    /// Refusals are answers, not calls, and are left out.
    fn new(calls: Vec<(String, Value)>, values: Vec<(String, Value)>) -> Self {
        let calls = calls.into_iter().filter(|(_, row)| row["isRefusal"] != true).filter_map(|(key, row)| {
            let (session, _) = key.split_once('/')?;
            let asked = keys_in(row["content"].as_str()?).next()?.to_owned();
            Some(LedgerCall { key: asked, session: session.to_owned(), is_ok: row["envelope"]["ok"] == true })
        });
        let values = values.into_iter().filter_map(|(key, row)| {
            let (_, asked) = key.rsplit_once('/')?;
            Some((asked.to_owned(), row["receipt"].as_u64()?))
        });
        Self { calls: calls.collect(), values: values.collect() }
    }
}

/// The numbers of the tables of calls and of values in a database.
const CALLS: u64 = 3;
const VALUES: u64 = 9;

fn rows(server: &PostgresServer, database: &str) -> Vec<(u64, String, Value)> {
    let sql = format!(
        "SELECT json_build_object('table', tab, 'key', convert_from(key, 'UTF8'), 'value', value) FROM qd.rows \
         WHERE tab IN ({CALLS}, {VALUES})"
    );
    let printed = server.execute(database, &sql);
    let rows = printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    rows.map(|row| {
        let value = serde_json::from_str(&text(&row["value"])).unwrap();
        (row["table"].as_u64().unwrap(), text(&row["key"]), value)
    })
    .collect()
}

async fn all(store: &dyn Store, table: Table) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    let mut scan = Scan::prefix("", 1_000);
    loop {
        let page = store.scan(table, scan.clone()).await.unwrap();
        scan.after = page.last().map(|(key, _)| key.clone());
        let is_last = page.len() < scan.limit;
        found.extend(page.into_iter().map(|(key, row)| (key, row.value)));
        if is_last {
            return found;
        }
    }
}
