//! Turns in the store.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use quarterdeck_contracts::{
    ChatMessage, Commit, Scan, Store, StoreError, Table, ToolResponse, estimate_tokens, sha256,
};
use quarterdeck_runtime::gates::Trace;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::conversation::ResolvedConfirmation;
use super::held::written_bytes;
use super::memory::MAX_CONVERSATION_BYTES;
use crate::turn::{Turn, TurnEvent};

/// How many turns are loaded. Older ones stay in the store.
const MAX_LOADED_TURNS: usize = 500;
/// How many turns of ended sessions are carried over into the next.
const MAX_CARRIED_TURNS: usize = 50;
const SCAN_PAGE_ROWS: usize = 50;

/// One turn, as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnRecord {
    pub(super) number: u64,
    /// What makes a second delivery of the message known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    pub(super) person_id: Option<String>,
    pub(super) message_id: Arc<str>,
    /// What the user wrote, without our notes.
    pub(super) said: String,
    pub(super) at_ms: u64,
    pub(super) turn: Turn,
    /// What the gates said about its calls, for later views.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) gates: BTreeMap<Arc<str>, Arc<Trace>>,
    /// Results of calls that came after the turn was over, for later views. The model got them in another turn.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) late: BTreeMap<Arc<str>, Arc<ToolResponse>>,
    /// The answer was regenerated. What it did stays done, but it is not part of the conversation any more.
    #[serde(default)]
    pub(super) is_replaced: bool,
    /// Roughly what it takes in memory.
    #[serde(skip)]
    pub(super) bytes: usize,
}

impl TurnRecord {
    pub(super) fn has_key(&self, key: &str) -> bool {
        self.key.as_deref() == Some(key)
    }

    /// Records the outcome of a confirmation. Returns whether a call of this turn waited for it.
    pub(super) fn record_resolution(&mut self, resolved: ResolvedConfirmation) -> bool {
        let ResolvedConfirmation { call_id, response, gates } = resolved;
        let waited = self.turn.resolve(&call_id, response);
        if waited {
            self.record_gates(&call_id, gates);
        }
        waited
    }

    /// Records the outcome of a confirmation after the turn is over. Returns whether the call is one of its own.
    pub(super) fn record_late_resolution(&mut self, resolved: &ResolvedConfirmation) -> bool {
        let is_ours = self
            .turn
            .events()
            .any(|event| matches!(event, TurnEvent::Call(call) if *call.id == *resolved.call_id));
        if is_ours {
            self.late.insert(resolved.call_id.clone(), resolved.response.clone());
            self.record_gates(&resolved.call_id, resolved.gates.clone());
        }
        is_ours
    }

    pub(super) fn gates_of(&self, id: &str) -> Option<Arc<Trace>> {
        self.gates.get(id).cloned()
    }

    pub(super) fn record_gates(&mut self, id: &str, gates: Option<Arc<Trace>>) {
        if let Some(gates) = gates {
            self.gates.insert(id.into(), gates);
        }
    }

    /// Drops the text; what was done stays known.
    pub(super) fn drop_text(&mut self) {
        self.said = String::new();
        self.turn.drop_text();
    }

    /// Roughly what it takes in a model's window.
    pub(super) fn tokens(&self) -> usize {
        self.turn.messages().iter().map(message_tokens).sum()
    }
}

/// Roughly what a message takes in a model's window.
pub(super) fn message_tokens(message: &ChatMessage) -> usize {
    estimate_tokens(serde_json::to_string(message).map_or(0, |text| text.len()))
}

/// How the keys of a session's turns begin.
pub(super) fn session_prefix(session: &str) -> String {
    format!("s/{session}/")
}

fn key(session: &str, number: u64) -> String {
    format!("{}{number:010}", session_prefix(session))
}

/// Where a client's own name for a conversation leads. The name is theirs, so it is never used as a key itself.
pub(super) fn chat_key(client: &str, chat: &str) -> String {
    format!("c/{client}/{}", &sha256(chat.as_bytes())[..32])
}

pub(super) fn put_turn(session: &str, record: &TurnRecord, expires_ms: u64) -> Commit {
    Commit::default().put_until(Table::History, key(session, record.number), json!(record), Some(expires_ms))
}

/// The latest turns of a session, the oldest first.
pub(super) async fn load(store: &dyn Store, session: &str) -> Result<Vec<TurnRecord>, StoreError> {
    let mut records = VecDeque::new();
    let mut bytes = 0;
    let mut scan = Scan::prefix(session_prefix(session), SCAN_PAGE_ROWS);
    loop {
        let page = store.scan(Table::History, scan.clone()).await?;
        let Some((last, _)) = page.last() else { break };
        scan.after = Some(last.clone());
        for (key, row) in page {
            let written = written_bytes(&row.value);
            match serde_json::from_value::<TurnRecord>(row.value) {
                Ok(record) => {
                    bytes += written;
                    records.push_back(TurnRecord { bytes: written, ..record });
                }
                Err(error) => tracing::error!(key, error = %error, "stored turn is unreadable"),
            }
            while records.len() > MAX_LOADED_TURNS || (bytes > MAX_CONVERSATION_BYTES && records.len() > 1) {
                bytes -= records.pop_front().map_or(0, |oldest| oldest.bytes);
            }
        }
    }
    Ok(records.into())
}

/// The latest turns of sessions that have ended, for the one that continues them. They come before its first turn, whose
/// number is one.
pub(super) async fn load_earlier(
    store: &dyn Store,
    sessions: &[String],
) -> Result<Vec<TurnRecord>, StoreError> {
    let mut turns = Vec::new();
    for session in sessions {
        turns.extend(load(store, session).await?);
        turns.drain(..turns.len().saturating_sub(MAX_CARRIED_TURNS));
    }
    for turn in &mut turns {
        turn.number = 0;
    }
    Ok(turns)
}

/// The session that a client's chat is in.
pub(super) async fn session_of_chat(
    store: &dyn Store,
    client: &str,
    chat: &str,
) -> Result<Option<(String, u64)>, StoreError> {
    let row = store.get(Table::History, &chat_key(client, chat)).await?;
    Ok(row.and_then(|row| Some((row.value["sessionId"].as_str()?.to_owned(), row.version))))
}

/// Links a chat to a session, unless it was linked to another since `seen`.
pub(super) fn link_chat(
    client: &str,
    chat: &str,
    session: &str,
    seen: Option<u64>,
    expires_ms: u64,
) -> Commit {
    let key = chat_key(client, chat);
    let value = json!({ "sessionId": session });
    Commit::default().check(Table::History, key.clone(), seen).put_until(
        Table::History,
        key,
        value,
        Some(expires_ms),
    )
}

/// How many of the oldest turns must be left out so that the rest fits.
pub(super) fn count_excess_turns(turns: &[TurnRecord], room: usize) -> usize {
    let mut used = 0;
    for (place, record) in turns.iter().enumerate().rev() {
        if !record.is_replaced {
            used += record.tokens();
        }
        if used > room {
            return place + 1;
        }
    }
    0
}
