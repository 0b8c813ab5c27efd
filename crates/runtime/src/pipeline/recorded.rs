//! What the store has recorded of a call.

use quarterdeck_contracts::{Table, ToolResponse};

use crate::ledger::Entry;
use crate::session::{CallRow, SessionCore};

/// The answer on record; nothing for a call that has only been started, or where the store cannot be read.
pub(super) async fn recorded_answer(core: &SessionCore, entry: &Entry) -> Option<ToolResponse> {
    let row = core.shared.store.get(Table::Calls, &core.call_key(entry.key())).await;
    let row = row.ok().flatten().and_then(|row| serde_json::from_value::<CallRow>(row.value).ok());
    row.and_then(|row| row.envelope)
}
