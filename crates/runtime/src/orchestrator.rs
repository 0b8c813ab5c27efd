//! Opens sessions, resumes them and ends those that were left. What happens within one is in `session` and `pipeline`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use quarterdeck_contracts::telemetry::{TraceContext, Tracer};
use quarterdeck_contracts::{Commit, CommitError, Mode, Store, StoreError, Table};
use serde_json::{Value, json};

use crate::blocks::{Block, find_block};
use crate::confirmation::hash;
use crate::gates::ClientFacts;
use crate::ids::{is_valid_id, random_hex};
use crate::metrics::Metrics;
use crate::ownership::{Holder, is_lease_conflict};
use crate::policy::Policy;
use crate::recovery::restore;
use crate::registry::{Candidate, Pin, PinReason, Registry, RequestedVersion, Snapshot, VersionError};
use crate::session::{NewRows, Session, SessionCore, SessionRow, session_key};
use crate::shared::{RuntimeParts, Shared};
use crate::state::PendingEnd;
use crate::store_keys::{index_key, reserved_key};
use crate::version_holders::holder_key;

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
    /// The version of the tools that its request names, with the verified key of the request.
    pub requested_version: Option<RequestedVersion>,
    /// The address of a client that has not signed in, where a block must hold for it as well: without it, such a client
    /// could come back as another one.
    pub address: Option<String>,
    /// The span that its request is a part of, as the request says.
    pub span: Option<TraceContext>,
    /// Whether its id was made up for this request, so that nothing is stored about it.
    pub is_new: bool,
}

impl Client {
    /// A client that has not signed in.
    pub fn anonymous(id: impl Into<String>) -> Self {
        Self::known(id, Arc::default())
    }

    /// A client about which something is known.
    pub fn known(id: impl Into<String>, facts: Arc<ClientFacts>) -> Self {
        Self { id: id.into(), facts, requested_version: None, address: None, span: None, is_new: false }
    }
}

/// Where a session's tools come from.
pub enum ToolSource<'a> {
    /// These, whatever the client.
    Given(Arc<Snapshot>),
    /// The version that the rollout chooses for a new session, and that a session has for an old one.
    Rollout(&'a Registry),
}

impl ToolSource<'_> {
    /// The version that a stored session has, if it is loaded.
    pub(crate) fn pinned(&self, row: &SessionRow) -> Option<Arc<Snapshot>> {
        match self {
            Self::Given(snapshot) => Some(snapshot.clone()),
            Self::Rollout(registry) => registry.find_pinned(&row.registry_digest, &row.registry_version),
        }
    }

    /// What is newest, for answers about a tool that no version has.
    pub(crate) fn newest(&self) -> Arc<Snapshot> {
        match self {
            Self::Given(snapshot) => snapshot.clone(),
            Self::Rollout(registry) => registry.snapshot(),
        }
    }
}

impl From<Arc<Snapshot>> for ToolSource<'_> {
    fn from(snapshot: Arc<Snapshot>) -> Self {
        Self::Given(snapshot)
    }
}

impl<'a> From<&'a Registry> for ToolSource<'a> {
    fn from(registry: &'a Registry) -> Self {
        Self::Rollout(registry)
    }
}

impl<'a> From<&'a Arc<Registry>> for ToolSource<'a> {
    fn from(registry: &'a Arc<Registry>) -> Self {
        Self::Rollout(registry)
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
    /// Another node has it.
    #[error("the session is held by the node {}", .0.node)]
    HeldElsewhere(Box<Holder>),
    /// Another node has taken it since it was resumed here. Resuming it again tells where it is.
    #[error("the session was taken over by another node")]
    Lost,
    /// The request names a version that takes no new sessions.
    #[error(transparent)]
    Version(Box<VersionError>),
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

    /// Opens spans, if they are recorded.
    pub fn tracer(&self) -> &Tracer {
        &self.shared.site.tracer
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

    /// The version of the tools that a new session of a client gets.
    pub fn choose_tools(&self, client: &Client, registry: &Registry) -> Result<Pin, SessionError> {
        self.choose(client, client.requested_version.as_ref(), registry)
            .map_err(|error| SessionError::Version(Box::new(error)))
    }

    fn choose(
        &self,
        client: &Client,
        requested: Option<&RequestedVersion>,
        registry: &Registry,
    ) -> Result<Pin, VersionError> {
        let claims = &client.facts.claims;
        let organisation = claims.get(&self.shared.policy.organisation_claim).and_then(Value::as_str);
        registry.choose(&Candidate { client: &client.id, claims, organisation, requested })
    }

    pub async fn open(
        &self,
        client: Client,
        mode: Mode,
        tools: impl Into<ToolSource<'_>>,
    ) -> Result<Session, SessionError> {
        let id = random_hex(16).ok_or(StoreError::Failed("no random numbers".into()))?;
        self.open_as(&format!("ses_{id}"), client, mode, tools).await
    }

    /// The same, but the session is stored with its first commit, so that a first message takes one commit and not two. Until
    /// then a crash leaves nothing of it. Where nodes share the store, it is stored at once: the others must know whose it is.
    pub async fn open_unstored(
        &self,
        client: Client,
        mode: Mode,
        tools: impl Into<ToolSource<'_>>,
    ) -> Result<Session, SessionError> {
        if self.shared.node.is_some() {
            return self.open(client, mode, tools).await;
        }
        let id = random_hex(16).ok_or(StoreError::Failed("no random numbers".into()))?;
        let id = format!("ses_{id}");
        let Pin { snapshot, reason } = self.admit(&id, &client, tools.into()).await?;
        let row = SessionRow::new(client.id.clone(), mode, &snapshot, self.now_ms());
        let rows = NewRows { rows: self.index_rows(&id, &row), pinned_by: reason };
        let core =
            SessionCore::new(&row, id.as_str().into(), snapshot, self.shared.clone(), client.facts, None);
        core.set_new_rows(rows);
        core.lock().connection.address = client.address;
        Ok(self.register(core).0)
    }

    /// Opens a session under a given id, which must be new. It keeps the version of the tools that it gets here.
    pub async fn open_as(
        &self,
        id: &str,
        client: Client,
        mode: Mode,
        tools: impl Into<ToolSource<'_>>,
    ) -> Result<Session, SessionError> {
        let Pin { snapshot, reason } = self.admit(id, &client, tools.into()).await?;
        let row = SessionRow::new(client.id.clone(), mode, &snapshot, self.now_ms());
        let commit = self.index_rows(id, &row).put_until(
            Table::Sessions,
            session_key(id),
            json!(row),
            self.keep_until(),
        );
        let (commit, leased) = self.lease_new(id, commit);
        let lease = match self.shared.store.commit(commit).await {
            Ok(version) => leased(version),
            Err(CommitError::Conflict { .. }) => return Err(SessionError::InvalidId),
            Err(error) => return Err(error.into_store_error().into()),
        };
        let core = SessionCore::new(&row, id.into(), snapshot, self.shared.clone(), client.facts, lease);
        core.lock().connection.address = client.address;
        let (session, _) = self.register(core);
        session.core.audit_start(reason);
        Ok(session)
    }

    /// The tools of a session that this client may open now.
    async fn admit(&self, id: &str, client: &Client, tools: ToolSource<'_>) -> Result<Pin, SessionError> {
        let pin = match tools {
            ToolSource::Given(snapshot) => Pin { snapshot, reason: PinReason::Rest },
            ToolSource::Rollout(registry) => self.choose_tools(client, registry)?,
        };
        if !is_valid_id(id) || !is_valid_id(&client.id) {
            return Err(SessionError::InvalidId);
        }
        if !self.may_write() {
            let error = "this node cannot tell the others that it lives, so it opens no session";
            return Err(StoreError::Unavailable(error.into()).into());
        }
        if client.is_new {
            return Ok(pin);
        }
        match find_block(&*self.shared.store, &client.id, self.now_ms()).await? {
            Some(block) => Err(SessionError::Blocked(Box::new(block))),
            None => Ok(pin),
        }
    }

    /// The rows beside a new session's own, which must not exist.
    fn index_rows(&self, id: &str, row: &SessionRow) -> Commit {
        let expires = self.keep_until();
        Commit::default()
            .check(Table::Sessions, session_key(id), None)
            .put_until(Table::Sessions, index_key(&row.client_id, id), json!({}), expires)
            .put_until(Table::Versions, holder_key(&row.registry_digest, id), json!({}), expires)
    }

    /// Continues a session of this client, in this process, after a restart or on another node. It keeps its version of the
    /// tools for as long as that is loaded.
    pub async fn resume(
        &self,
        id: &str,
        client: Client,
        tools: impl Into<ToolSource<'_>>,
    ) -> Result<Session, SessionError> {
        self.resume_with(id, client, tools.into(), None).await
    }

    /// The same; a session that this process of another node has is taken over.
    pub(crate) async fn resume_with(
        &self,
        id: &str,
        client: Client,
        tools: ToolSource<'_>,
        dead: Option<&Holder>,
    ) -> Result<Session, SessionError> {
        if !is_valid_id(id) || !is_valid_id(&client.id) {
            return Err(SessionError::InvalidId);
        }
        let now_ms = self.now_ms();
        if let Some(block) = find_block(&*self.shared.store, &client.id, now_ms).await? {
            return Err(SessionError::Blocked(Box::new(block)));
        }
        if let Some(core) = self.shared.find(id)
            && self.is_current(&core).await?
        {
            return self.rejoin(Session { core }, client, &tools).await;
        }
        let accepts = |row: &SessionRow| {
            if row.client_id != client.id {
                return Err(SessionError::NotFound);
            }
            let timeout_ms = self.shared.resume_timeout_ms(row.mode) + self.shared.clock_tolerance_ms();
            let is_left = now_ms > row.seen_ms + timeout_ms;
            if is_left || !row.state.is_active { Err(SessionError::Ended) } else { Ok(()) }
        };
        let _bringing_back = self.bring_back(id).await;
        // Another request may have done so while this one waited.
        if let Some(core) = self.shared.find(id).filter(|core| core.lease.is_some())
            && self.is_current(&core).await?
        {
            return self.rejoin(Session { core }, client, &tools).await;
        }
        let claim = self.claim(id, dead, accepts).await?;
        let row = &claim.row;
        let snapshot = self.pinned(row, &client, tools)?;
        let shared = self.shared.clone();
        let core = SessionCore::new(row, id.into(), snapshot, shared, client.facts, claim.lease);
        core.lock().connection.address = client.address;
        let voided = restore(&core, row.notes.clone(), claim.turn.as_ref()).await?;
        let (session, is_ours) = self.register(core);
        if is_ours {
            self.record_resumption(&session, row, voided).await?;
        }
        Ok(session)
    }

    /// Continues a session of this process.
    async fn rejoin(
        &self,
        session: Session,
        client: Client,
        tools: &ToolSource<'_>,
    ) -> Result<Session, SessionError> {
        // A session of another client is reported as absent.
        if session.client() != client.id {
            return Err(SessionError::NotFound);
        }
        if self.shared.has_timed_out(&session.core, self.now_ms()) {
            session.end(PendingEnd::with_reason("inactivity")).await;
        }
        if !session.state().is_active {
            return Err(SessionError::Ended);
        }
        let mut data = session.core.lock();
        data.client = client.facts;
        data.connection.address = client.address;
        drop(data);
        if let ToolSource::Rollout(registry) = tools {
            session.warn_if_tools_changed(registry);
        }
        Ok(session)
    }

    /// The version that a stored session has. One whose version is not loaded is pinned anew.
    fn pinned(
        &self,
        row: &SessionRow,
        client: &Client,
        tools: ToolSource<'_>,
    ) -> Result<Arc<Snapshot>, SessionError> {
        if let Some(snapshot) = tools.pinned(row) {
            return Ok(snapshot);
        }
        let registry = match tools {
            ToolSource::Given(snapshot) => return Ok(snapshot),
            ToolSource::Rollout(registry) => registry,
        };
        // A header is for new sessions: what it names may be missing, and this one must go on.
        match self.choose(client, None, registry) {
            Ok(pin) => Ok(pin.snapshot),
            Err(error) => Err(SessionError::Version(Box::new(error))),
        }
    }

    /// Audits that a session is back. A version that it was pinned to anew is stored at once: it must not be chosen a second
    /// time.
    async fn record_resumption(
        &self,
        session: &Session,
        row: &SessionRow,
        void_confirmations: usize,
    ) -> Result<(), SessionError> {
        let core = &session.core;
        let snapshot = session.snapshot();
        let (pinned, digest) = (snapshot.version(), snapshot.content_hash());
        let is_anew = pinned != row.registry_version;
        // The row of an index expires, and the session may not have.
        let holder = Commit::default().put_until(
            Table::Versions,
            holder_key(digest, &core.id),
            json!({}),
            core.keep_until(),
        );
        let mut fields = json!({ "pinnedAnew": is_anew });
        if is_anew {
            fields["previousVersion"] = json!(row.registry_version);
            fields["voidConfirmations"] = json!(void_confirmations);
            let saved = {
                let mut data = core.lock();
                data.unsaved.session = true;
                core.take_unsaved(&mut data)
            };
            let left = holder_key(&row.registry_digest, &core.id);
            match core.commit(saved.and(holder).delete(Table::Versions, left)).await {
                Err(error) if is_lease_conflict(&error) => return Err(SessionError::Lost),
                Ok(_) | Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into_store_error().into()),
            }
        } else if let Err(error) = self.shared.store.queue(holder) {
            tracing::warn!(session = session.id(), error = %error, "session was not entered among those of its version");
        }
        core.audit_session("session_resumed", fields);
        Ok(())
    }

    /// How many sessions of this process each version has, by digest.
    pub fn sessions_by_version(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for core in self.shared.live_sessions() {
            if core.lock().controller.state().is_active {
                *counts.entry(core.snapshot.content_hash().to_owned()).or_default() += 1;
            }
        }
        counts
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
        self.shared.metrics.version_pinned(core.snapshot.version());
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
            Ok(_) => Ok(row.value["pendingRequest"].as_str().map(str::to_owned)),
            Err(CommitError::Conflict { .. }) => Ok(None),
            Err(error) => Err(error.into_store_error()),
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
        if !self.runs_chore("sweep").await {
            return Ok(0);
        }
        self.shared.expire_due().await?;
        self.shared.store.sweep(now_ms.saturating_sub(self.shared.clock_tolerance_ms())).await
    }

    /// Hands everything that waits to be stored to the store. To be called before a shutdown.
    pub fn save_all(&self) {
        for core in self.shared.live_sessions() {
            core.save_now();
        }
    }
}
