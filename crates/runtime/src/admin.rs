//! For operators: list sessions and clients, end a session, erase a client.

use std::collections::{BTreeMap, BTreeSet};

use quarterdeck_contracts::{Commit, CommitError, Mode, Scan, Store, StoreError, Table};
use serde::Serialize;
use serde_json::{Value, json};

use crate::cluster_events::{announce_end, request_end};
use crate::files::file_rows;
use crate::policy::Policy;
use crate::session::{SessionRow, session_key};
use crate::store_keys::{all_rows, index_key};
use crate::tasks::client_prefix;
use crate::version_holders::holder_key;

/// How many rows are erased in one commit, or read at once.
const BATCH_ROWS: usize = 500;

/// A stored session, for lists.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionSummary {
    pub id: String,
    pub client_id: String,
    pub mode: Mode,
    pub is_active: bool,
    pub turns: u64,
    pub calls: u64,
    pub registry_version: String,
    /// When it began, in milliseconds since 1970.
    pub created_ms: u64,
    /// When a client was last connected.
    pub seen_ms: u64,
}

/// A client with stored sessions, for lists.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientSummary {
    /// Stable across sessions.
    pub id: String,
    pub sessions: u64,
    pub active: u64,
    /// When it was last connected.
    pub seen_ms: u64,
}

/// Every session that is stored, the latest first.
pub async fn list_sessions(store: &dyn Store) -> Result<Vec<SessionSummary>, StoreError> {
    let rows = all_rows(store, Table::Sessions, "s/").await?;
    let mut found: Vec<_> =
        rows.into_iter().filter_map(|(key, value)| SessionSummary::of(&key, value)).collect();
    found.sort_by_key(|session| std::cmp::Reverse(session.seen_ms));
    Ok(found)
}

/// The sessions with the latest activity.
#[derive(Debug, Clone, PartialEq)]
pub struct RecentSessions {
    /// The latest first.
    pub sessions: Vec<SessionSummary>,
    pub examined: usize,
    /// How many of those were wanted, also beyond those that are given.
    pub matching: usize,
    /// Whether every session was looked at, and every one that was wanted is given.
    pub is_complete: bool,
}

/// The latest `most` sessions that are wanted, of at most `look_at` that are looked at: a store may hold very many, and
/// they are keyed by their ids.
pub async fn list_recent_sessions(
    store: &dyn Store,
    most: usize,
    look_at: usize,
    wanted: impl Fn(&SessionSummary) -> bool,
) -> Result<RecentSessions, StoreError> {
    let mut recent = RecentSessions { sessions: Vec::new(), examined: 0, matching: 0, is_complete: false };
    let mut scan = Scan::prefix("s/", BATCH_ROWS);
    while recent.examined < look_at {
        let page = store.scan(Table::Sessions, scan.clone()).await?;
        let Some((last, _)) = page.last() else {
            recent.is_complete = recent.matching == recent.sessions.len();
            break;
        };
        scan.after = Some(last.clone());
        recent.examined += page.len();
        let found = page.into_iter().filter_map(|(key, row)| SessionSummary::of(&key, row.value));
        let before = recent.sessions.len();
        recent.sessions.extend(found.filter(&wanted));
        recent.matching += recent.sessions.len() - before;
        recent.sessions.sort_by_key(|session| std::cmp::Reverse(session.seen_ms));
        recent.sessions.truncate(most);
    }
    Ok(recent)
}

pub async fn find_session(store: &dyn Store, id: &str) -> Result<Option<SessionSummary>, StoreError> {
    let key = session_key(id);
    let row = store.get(Table::Sessions, &key).await?;
    Ok(row.and_then(|row| SessionSummary::of(&key, row.value)))
}

/// The node that has a session at present; `None` if none has.
pub async fn find_holder(store: &dyn Store, id: &str) -> Result<Option<String>, StoreError> {
    let lease = store.get(Table::Leases, id).await?.filter(|lease| lease.value["state"] == "held");
    Ok(lease.and_then(|lease| lease.value["node"].as_str().map(str::to_owned)))
}

/// Every client that has a session stored, the latest first.
pub async fn list_clients(store: &dyn Store) -> Result<Vec<ClientSummary>, StoreError> {
    let mut found: BTreeMap<String, ClientSummary> = BTreeMap::new();
    for session in list_sessions(store).await? {
        let client = found.entry(session.client_id.clone()).or_default();
        client.id = session.client_id;
        client.sessions += 1;
        client.active += u64::from(session.is_active);
        client.seen_ms = client.seen_ms.max(session.seen_ms);
    }
    let mut found: Vec<_> = found.into_values().collect();
    found.sort_by_key(|client| std::cmp::Reverse(client.seen_ms));
    Ok(found)
}

/// Ends a session that this process does not hold; `false` when there is none of that id, or it has ended. A node that
/// has it is asked to end it.
pub async fn end_stored_session(store: &dyn Store, id: &str) -> Result<bool, CommitError> {
    let key = session_key(id);
    let Some(stored) = store.get(Table::Sessions, &key).await? else { return Ok(false) };
    let Ok(mut row) = serde_json::from_value::<SessionRow>(stored.value) else { return Ok(false) };
    if !row.state.is_active {
        return Ok(false);
    }
    row.state.is_active = false;
    row.state.pending_end_voice_session = None;
    // It is kept as long as one that ended by itself, and not for ever.
    let expires = row.seen_ms + Policy::default().retention.as_millis() as u64;
    let mut commit = Commit::default()
        .check(Table::Sessions, key.clone(), Some(stored.version))
        .put_until(Table::Sessions, key, json!(row), Some(expires))
        .delete(Table::Versions, holder_key(&row.registry_digest, id));
    let lease = store.get(Table::Leases, id).await?;
    let is_held = lease.as_ref().is_some_and(|lease| lease.value["state"] == "held");
    commit = match lease {
        // What has begun to write there can finish.
        Some(_) if is_held => request_end(commit, id, "ended_by_operator", expires),
        Some(lease) => commit.check(Table::Leases, id, Some(lease.version)).delete(Table::Leases, id),
        None => commit.check(Table::Leases, id, None),
    };
    store.commit(commit).await?;
    if is_held {
        announce_end(store, id);
    }
    Ok(true)
}

/// Erases everything that is kept of a client but the audit log; the number of rows. A block stays: erasing must not
/// be a way out of it.
pub async fn erase_client(store: &dyn Store, client: &str) -> Result<u64, CommitError> {
    let mut keys: Vec<(Table, String)> = Vec::new();
    let windows = all_rows(store, Table::Rates, "").await?;
    let add_windows = |keys: &mut Vec<(Table, String)>, suffix: &str| {
        let theirs = windows.iter().filter(|(key, _)| key.ends_with(suffix));
        keys.extend(theirs.map(|(key, _)| (Table::Rates, key.clone())));
    };
    for id in list_session_ids(store, client).await? {
        let calls = all_rows(store, Table::Calls, &format!("{id}/")).await?;
        keys.extend(calls.into_iter().map(|(key, _)| (Table::Calls, key)));
        let confirmations = all_rows(store, Table::SessionConfirmations, &format!("{id}/")).await?;
        keys.extend(confirmations.into_iter().map(|(key, _)| (Table::SessionConfirmations, key)));
        let history = all_rows(store, Table::History, &format!("s/{id}/")).await?;
        keys.extend(history.into_iter().map(|(key, _)| (Table::History, key)));
        let files = file_rows(store, &id).await?;
        keys.extend(files.into_iter().map(|key| (Table::Files, key)));
        add_windows(&mut keys, &format!("/session/{id}"));
        if let Some(row) = store.get(Table::Sessions, &session_key(&id)).await?
            && let Some(digest) = row.value["registryDigest"].as_str()
        {
            keys.push((Table::Versions, holder_key(digest, &id)));
        }
        keys.push((Table::Sessions, session_key(&id)));
        keys.push((Table::Sessions, index_key(client, &id)));
        if store.get(Table::Leases, &id).await?.is_some() {
            keys.push((Table::Leases, id.clone()));
        }
    }
    for (key, value) in all_rows(store, Table::Sessions, "r/").await? {
        if value["clientId"] == client {
            keys.push((Table::Sessions, key));
        }
    }
    for (key, value) in all_rows(store, Table::Confirmations, "").await? {
        if value["clientId"] == client {
            keys.push((Table::Confirmations, key));
        }
    }
    keys.extend(conversation_rows(store, client).await?);
    let values = all_rows(store, Table::Values, &format!("{client}/")).await?;
    keys.extend(values.into_iter().map(|(key, _)| (Table::Values, key)));
    let tasks = all_rows(store, Table::Tasks, &client_prefix(client)).await?;
    keys.extend(tasks.into_iter().map(|(key, _)| (Table::Tasks, key)));
    add_windows(&mut keys, &format!("/client/{client}"));
    let count = keys.len() as u64;
    for portion in keys.chunks(BATCH_ROWS) {
        let commit =
            portion.iter().fold(Commit::default(), |commit, (table, key)| commit.delete(*table, key));
        store.commit(commit).await?;
    }
    Ok(count)
}

/// The client's names for conversations, its list of them, what it thinks of answers, and what operators keep.
async fn conversation_rows(store: &dyn Store, client: &str) -> Result<Vec<(Table, String)>, StoreError> {
    let mut keys = Vec::new();
    for kind in ["c", "t", "f", "o"] {
        let prefix = format!("{kind}/{client}/");
        let rows = all_rows(store, Table::History, &prefix).await?;
        if kind == "o" {
            let sessions = rows.iter().filter_map(|(key, _)| key[prefix.len()..].split('/').next());
            let sessions: BTreeSet<&str> = sessions.collect();
            keys.extend(sessions.into_iter().map(|session| (Table::History, format!("i/{session}"))));
        }
        keys.extend(rows.into_iter().map(|(key, _)| (Table::History, key)));
    }
    Ok(keys)
}

impl SessionSummary {
    fn of(key: &str, row: Value) -> Option<Self> {
        let row: SessionRow = serde_json::from_value(row).ok()?;
        Some(Self {
            id: key.strip_prefix("s/")?.to_owned(),
            client_id: row.client_id,
            mode: row.mode,
            is_active: row.state.is_active,
            turns: row.turn,
            calls: row.calls_made,
            registry_version: row.registry_version,
            created_ms: row.created_ms,
            seen_ms: row.seen_ms,
        })
    }
}

/// Every session of a client. One that lives longer than the retention time outlives its place in the index.
pub async fn list_session_ids(store: &dyn Store, client: &str) -> Result<BTreeSet<String>, StoreError> {
    let index = index_key(client, "");
    let indexed = all_rows(store, Table::Sessions, &index).await?;
    let mut ids: BTreeSet<_> = indexed.iter().map(|(key, _)| key[index.len()..].to_owned()).collect();
    for (key, value) in all_rows(store, Table::Sessions, "s/").await? {
        if value["clientId"] == client {
            ids.extend(key.strip_prefix("s/").map(str::to_owned));
        }
    }
    Ok(ids)
}
