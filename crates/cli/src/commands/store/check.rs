//! `quarterdeck store check`: reads every row. It changes nothing.

use std::collections::BTreeMap;

use quarterdeck_contracts::{MAX_KEY_BYTES, Table};
use quarterdeck_store::ExportedRow;
use serde_json::{Value, json};

use crate::ExitStatus;
use crate::arguments::Format;
use crate::arguments::operator::StoreCheckOptions;
use crate::config::LocalConfig;
use crate::store_snapshot::StoreSnapshot;
use crate::terminal::{count, info, plain, print, titled_table};
use crate::times::now_ms;

const PAGE_ROWS: usize = 1_000;
/// More faults than these are counted and not listed.
const MAX_LISTED_FAULTS: usize = 20;

/// What was found in one table.
#[derive(Debug, Default)]
struct TableState {
    rows: u64,
    bytes: u64,
    /// Rows that the next sweep removes.
    expired: u64,
}

#[derive(Debug, Default)]
struct Report {
    tables: BTreeMap<&'static str, TableState>,
    faults: Vec<String>,
    fault_count: u64,
}

pub(super) async fn check(options: &StoreCheckOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let node = options.data.node(&config);
    let snapshot = StoreSnapshot::open(&node.url, &node.config).await?;
    let mut report = Report::default();
    for fault in snapshot.structure_faults().await? {
        report.add_fault(fault);
    }
    let now_ms = now_ms();
    for table in Table::ALL {
        report.tables.insert(table.as_str(), TableState::default());
        let mut after = None;
        loop {
            let rows = snapshot.rows(table, after.as_deref(), PAGE_ROWS).await?;
            rows.iter().for_each(|row| report.look_at(row, now_ms));
            let Some(last) = rows.last().filter(|_| rows.len() == PAGE_ROWS) else { break };
            after = Some(last.key.clone());
        }
    }
    report.show(&node.url.to_string(), snapshot.schema(), options.format)?;
    Ok(if report.fault_count == 0 { ExitStatus::Success } else { ExitStatus::Problems })
}

impl Report {
    fn look_at(&mut self, row: &ExportedRow, now_ms: u64) {
        let state = self.tables.entry(row.table.as_str()).or_default();
        state.rows += 1;
        state.bytes += (row.key.len() + row.value.len()) as u64;
        state.expired += u64::from(row.expires_ms.is_some_and(|at| at <= now_ms));
        if serde_json::from_str::<Value>(&row.value).is_err() {
            self.add_fault(format!("{}/{} is not JSON", row.table.as_str(), plain(&row.key)));
        } else if row.key.len() > MAX_KEY_BYTES {
            self.add_fault(format!(
                "{}/{} has a key of {} bytes",
                row.table.as_str(),
                plain(&row.key),
                row.key.len()
            ));
        }
    }

    fn add_fault(&mut self, fault: String) {
        self.fault_count += 1;
        if self.faults.len() < MAX_LISTED_FAULTS {
            self.faults.push(fault);
        }
    }

    fn show(&self, store: &str, schema: i64, format: Format) -> anyhow::Result<()> {
        let total: u64 = self.tables.values().map(|state| state.rows).sum();
        match format {
            Format::Json => {
                let each = |(table, state): (&&'static str, &TableState)| {
                    let state = json!({ "rows": state.rows, "bytes": state.bytes, "expired": state.expired });
                    ((*table).to_owned(), state)
                };
                let tables: serde_json::Map<String, Value> = self.tables.iter().map(each).collect();
                let found = json!({
                    "store": store, "schema": schema, "isSound": self.fault_count == 0, "rows": total, "tables": tables,
                    "faults": self.faults, "faultCount": self.fault_count,
                });
                print(&format!("{found:#}\n"))?;
            }
            Format::Human => {
                let used = self.tables.iter().filter(|(_, state)| state.rows > 0);
                let row = |(table, state): (&&'static str, &TableState)| {
                    let numbers = [state.rows, state.bytes, state.expired].map(|number| number.to_string());
                    [vec![(*table).to_owned()], numbers.to_vec()].concat()
                };
                print(&titled_table(&["table", "rows", "bytes", "expired"], used.map(row)))?;
                self.faults.iter().for_each(|fault| info(fault));
                let rows = count(usize::try_from(total).unwrap_or(usize::MAX), "row");
                info(&match self.fault_count {
                    0 => format!("{store}: schema {schema}, {rows}, sound"),
                    faults => format!(
                        "{store}: schema {schema}, {rows}, {}\nhelp: restore a backup, or the database to a point in time before",
                        count(usize::try_from(faults).unwrap_or(usize::MAX), "fault")
                    ),
                });
            }
        }
        Ok(())
    }
}
