//! For operators: what tools have stored with the capability `store`.

use quarterdeck_contracts::{Metadata, Scan, Store, StoreError, Table};
use serde::Serialize;
use serde_json::Value;

use crate::redact::hide_in_stored;
use crate::store_keys::value_prefix;

const BATCH_ROWS: usize = 200;

/// A value of a tool for a client, as the tool wrote it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredValue {
    pub client_id: String,
    pub tool_id: String,
    pub key: String,
    pub value: Value,
}

/// Some of the values, in the order of clients, tools and keys.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredValues {
    pub values: Vec<StoredValue>,
    /// Whether there are more than were asked for.
    pub is_truncated: bool,
}

/// Which values are meant; all where nothing is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ValueFilter<'a> {
    pub client: Option<&'a str>,
    pub tool: Option<&'a str>,
}

/// The values that a filter lets through, as many as `limit`.
pub async fn list_values(
    store: &dyn Store,
    filter: ValueFilter<'_>,
    limit: usize,
) -> Result<StoredValues, StoreError> {
    let prefix = match (filter.client, filter.tool) {
        (Some(client), Some(tool)) => value_prefix(client, tool),
        (Some(client), None) => format!("{client}/"),
        (None, _) => String::new(),
    };
    let mut scan = Scan::prefix(prefix, BATCH_ROWS);
    let mut values = Vec::new();
    loop {
        let page = store.scan(Table::Values, scan.clone()).await?;
        let Some((last, _)) = page.last() else { return Ok(StoredValues { values, is_truncated: false }) };
        scan.after = Some(last.clone());
        let found = page.into_iter().filter_map(|(key, row)| StoredValue::of(&key, row.value));
        values.extend(found.filter(|value| filter.tool.is_none_or(|tool| value.tool_id == tool)));
        if values.len() > limit {
            values.truncate(limit);
            return Ok(StoredValues { values, is_truncated: true });
        }
    }
}

/// One value.
pub async fn find_value(
    store: &dyn Store,
    client: &str,
    tool: &str,
    key: &str,
) -> Result<Option<StoredValue>, StoreError> {
    let key = format!("{}{key}", value_prefix(client, tool));
    let row = store.get(Table::Values, &key).await?;
    Ok(row.and_then(|row| StoredValue::of(&key, row.value)))
}

impl StoredValue {
    /// Neither a client's id nor a tool's holds a slash; a key may.
    fn of(key: &str, value: Value) -> Option<Self> {
        let mut parts = key.splitn(3, '/').map(str::to_owned);
        let (client_id, tool_id, key) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self { client_id, tool_id, key, value })
    }

    /// Hides what the tool's definition declares as sensitive, by the rule of the audit log: of a tool with sensitive
    /// arguments only that is shown which stands under the name of another parameter, and of a tool that is not known
    /// nothing. `definition` is the tool's metadata with the schema of its parameters.
    pub fn redact(&mut self, definition: Option<(&Metadata, &Value)>) {
        self.value = hide_in_stored(definition, &self.key, &self.value);
    }
}
