//! Opens sessions, resumes them and ends those that were left. What happens within one is in `session` and `pipeline`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use quarterdeck_contracts::{Commit, CommitError, Mode, Store, StoreError, Table};
use serde_json::json;

use crate::blocks::{Block, find_block};
use crate::confirmation::hash;
use crate::gates::ClientFacts;
use crate::ids::{is_valid_id, random_hex};
use crate::metrics::Metrics;
use crate::policy::Policy;
use crate::recovery::restore;
use crate::registry::Snapshot;
use crate::session::{Session, SessionCore, SessionRow, session_key};
use crate::shared::{RuntimeParts, Shared};
use crate::state::{PendingEnd, SessionState};
use crate::store_keys::{index_key, reserved_key};

/// Opens sessions and resumes them.
#[derive(Clone)]
pub struct Orchestrator {
    shared: Arc<Shared>,
}

/// The client that wants a session.
#[derive(Debug, Clone)]
pub struct Client {
    /// Stable across sessions.
    pub id: String,
    /// What is known about it.
    pub facts: Arc<ClientFacts>,
}

impl Client {
    /// A client that has not signed in.
    pub fn anonymous(id: impl Into<String>) -> Self {
        Self { id: id.into(), facts: Arc::default() }
    }
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    #[error("the client is blocked until {}", .0.until_ms)]
    Blocked(Box<Block>),
    /// There is none of that id for this client.
    #[error("there is no such session")]
    NotFound,
    /// It has ended, or was left for too long.
    #[error("the session has ended")]
    Ended,
    /// The id cannot be one.
    #[error("a session or client id has 1 to 128 letters, digits, `-`, `_`, `.`, `:` or `@`")]
    InvalidId,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Orchestrator {
    pub fn new(parts: RuntimeParts) -> Self {
        Self { shared: Arc::new(Shared::new(parts)) }
    }

    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.metrics
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub fn policy(&self) -> &Policy {
        &self.shared.policy
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// The time of day.
    pub fn now(&self) -> SystemTime {
        self.shared.clock.now()
    }

    /// The clock for deadlines, in milliseconds since 1970. It never goes back, even if the system clock is set back.
    pub fn now_ms(&self) -> u64 {
        self.shared.steady.now_ms()
    }

    pub fn has_voice_session(&self, client: &str) -> bool {
        self.shared.voice_sessions.has_open(client)
    }

    pub async fn open(
        &self,
        client: Client,
        mode: Mode,
        snapshot: Arc<Snapshot>,
    ) -> Result<Session, SessionError> {
        let id = random_hex(16).ok_or(StoreError::Failed("no random numbers".into()))?;
        self.open_as(&format!("ses_{id}"), client, mode, snapshot).await
    }

    /// Opens a session under a given id, which must be new.
    pub async fn open_as(
        &self,
        id: &str,
        client: Client,
        mode: Mode,
        snapshot: Arc<Snapshot>,
    ) -> Result<Session, SessionError> {
        if !is_valid_id(id) || !is_valid_id(&client.id) {
            return Err(SessionError::InvalidId);
        }
        let now_ms = self.now_ms();
        if let Some(block) = find_block(&*self.shared.store, &client.id, now_ms).await? {
            return Err(SessionError::Blocked(Box::new(block)));
        }
        let row = SessionRow {
            client_id: client.id.clone(),
            mode,
            registry_version: snapshot.version().to_owned(),
            turn: 0,
            turn_keys: Vec::new(),
            calls_made: 0,
            state: SessionState::new(mode),
            notes: Vec::new(),
            created_ms: now_ms,
            seen_ms: now_ms,
        };
        let expires = Some(now_ms + self.shared.policy.retention.as_millis() as u64);
        let commit = Commit::default()
            .check(Table::Sessions, session_key(id), None)
            .put_until(Table::Sessions, session_key(id), json!(row), expires)
            .put_until(Table::Sessions, index_key(&client.id, id), json!({}), expires);
        match self.shared.store.commit(commit).await {
            Ok(()) => {}
            Err(CommitError::Conflict { .. }) => return Err(SessionError::InvalidId),
            Err(CommitError::Store(error)) => return Err(error.into()),
        }
        let core = SessionCore::new(&row, id.into(), snapshot, self.shared.clone(), client.facts);
        let (session, _) = self.register(core);
        session.core.audit_session("session_start", json!({ "registryVersion": row.registry_version }));
        Ok(session)
    }

    /// Continues a session of this client, in this process or after a restart.
    pub async fn resume(
        &self,
        id: &str,
        client: Client,
        snapshot: Arc<Snapshot>,
    ) -> Result<Session, SessionError> {
        if !is_valid_id(id) || !is_valid_id(&client.id) {
            return Err(SessionError::InvalidId);
        }
        let now_ms = self.now_ms();
        if let Some(block) = find_block(&*self.shared.store, &client.id, now_ms).await? {
            return Err(SessionError::Blocked(Box::new(block)));
        }
        if let Some(core) = self.shared.find(id) {
            let session = Session { core };
            // A session of another client is reported as absent.
            if session.client() != client.id {
                return Err(SessionError::NotFound);
            }
            if self.shared.has_timed_out(&session.core, now_ms) {
                session.end(PendingEnd::with_reason("inactivity")).await;
            }
            if !session.state().is_active {
                return Err(SessionError::Ended);
            }
            session.core.lock().client = client.facts;
            session.warn_if_tools_changed(&snapshot);
            return Ok(session);
        }
        let row = self.shared.store.get(Table::Sessions, &session_key(id)).await?;
        let row: SessionRow =
            row.and_then(|row| serde_json::from_value(row.value).ok()).ok_or(SessionError::NotFound)?;
        if row.client_id != client.id {
            return Err(SessionError::NotFound);
        }
        if !row.state.is_active || now_ms > row.seen_ms + self.shared.resume_timeout_ms(row.mode) {
            return Err(SessionError::Ended);
        }
        let core = SessionCore::new(&row, id.into(), snapshot, self.shared.clone(), client.facts);
        restore(&core, row.notes.clone()).await?;
        let (session, is_ours) = self.register(core);
        if !is_ours {
            return Ok(session);
        }
        let pinned = session.snapshot().version().to_owned();
        session.core.audit_session(
            "session_resumed",
            json!({ "registryVersion": pinned, "pinnedAnew": pinned != row.registry_version }),
        );
        Ok(session)
    }

    /// Lists a session, complete as it is. Of two that were restored at the same time the first one counts; `false` says
    /// that it was another's.
    pub(crate) fn register(&self, core: Arc<SessionCore>) -> (Session, bool) {
        if let Some(first) = self.shared.register(&core) {
            return (Session { core: first }, false);
        }
        core.is_registered.store(true, Ordering::Release);
        self.shared.voice_sessions.opened(core.mode, &core.client);
        self.shared.metrics.session_opened(core.mode);
        (Session { core }, true)
    }

    /// A session of this process.
    pub fn find(&self, id: &str) -> Option<Session> {
        self.shared.find(id).map(|core| Session { core })
    }

    /// The session in which a confirmation was requested, by its token, for the client that it was requested from.
    pub async fn find_confirmation_session(
        &self,
        token: &str,
        client: &str,
    ) -> Result<Option<String>, StoreError> {
        let key = hash(token);
        let row = self.shared.store.get(Table::Confirmations, &key).await?;
        Ok(row
            .filter(|row| row.value["clientId"] == client)
            .and_then(|row| row.value["sessionId"].as_str().map(str::to_owned)))
    }

    /// The request that a voice session was issued with, once.
    pub async fn take_voice_request(&self, id: &str, client: &str) -> Result<Option<String>, StoreError> {
        let key = reserved_key(id);
        let Some(row) = self.shared.store.get(Table::Sessions, &key).await? else { return Ok(None) };
        let is_theirs =
            row.value["clientId"] == client && row.value["expiresMs"].as_u64() > Some(self.now_ms());
        if !is_theirs {
            return Ok(None);
        }
        let commit = Commit::default()
            .check(Table::Sessions, key.clone(), Some(row.version))
            .delete(Table::Sessions, key);
        match self.shared.store.commit(commit).await {
            Ok(()) => Ok(row.value["pendingRequest"].as_str().map(str::to_owned)),
            Err(CommitError::Conflict { .. }) => Ok(None),
            Err(CommitError::Store(error)) => Err(error),
        }
    }

    /// Ends idle sessions and removes expired rows. To be called every now and then.
    pub async fn sweep(&self) -> Result<u64, StoreError> {
        self.shared.metrics.run_upkeep();
        let now_ms = self.now_ms();
        for core in self.shared.live_sessions() {
            if self.shared.has_timed_out(&core, now_ms) {
                Session { core }.end(PendingEnd::with_reason("inactivity")).await;
            }
        }
        self.shared.expire_due().await?;
        self.shared.store.sweep(now_ms).await
    }

    /// Hands everything that waits to be stored to the store. To be called before a shutdown.
    pub fn save_all(&self) {
        for core in self.shared.live_sessions() {
            core.save_now();
        }
    }
}
