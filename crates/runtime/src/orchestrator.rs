//! Decides, in code and not in a prompt, what a model may do right now.
//!
//! It opens sessions and resumes them; what happens within one is in [`Session`]. Shared between all of them are the
//! store, the clock, the trail and the figures, and nothing else.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

use quarterdeck_contracts::handler::ToolFacts;
use quarterdeck_contracts::{
    Calendar, Capability, Commit, CommitError, Knowledge, Mode, Scan, Store, StoreError, Table,
};
use serde_json::{Value, json};

use crate::audit::{AuditSink, NoAudit};
use crate::blocks::{Block, find_block};
use crate::claim::RequiredClaim;
use crate::clock::{Clock, SteadyClock, SystemClock};
use crate::confirmation::Deadlines;
use crate::gates::ClientFacts;
use crate::metrics::Metrics;
use crate::policy::Policy;
use crate::recovery::restore;
use crate::registry::Snapshot;
use crate::session::{Session, SessionCore, SessionRow, session_key};
use crate::state::{PendingEnd, SessionState};
use crate::voice_sessions::VoiceSessions;

/// Gets a copy of what handlers log, for an operator at a terminal.
pub type LogSink = Arc<dyn Fn(&str) + Send + Sync>;

/// What an orchestrator is made of.
pub struct RuntimeParts {
    /// Where everything is kept that outlives a process.
    pub store: Arc<dyn Store>,
    /// The numbers.
    pub policy: Policy,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// The trail.
    pub audit: Arc<dyn AuditSink>,
    /// The figures.
    pub metrics: Arc<Metrics>,
    /// The site's calendar, if it has one.
    pub calendar: Option<Arc<dyn Calendar>>,
    /// What a client must be known to have to see the details of events that it has not booked. Absent: no client does.
    pub calendar_details_claim: Option<RequiredClaim>,
    /// The knowledge base, if there is one.
    pub knowledge: Option<Arc<dyn Knowledge>>,
    /// Configuration keys that tools may require.
    pub present: BTreeSet<String>,
    /// Sees what handlers log.
    pub watch: Option<LogSink>,
}

impl RuntimeParts {
    /// The defaults around a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            policy: Policy::default(),
            clock: Arc::new(SystemClock),
            audit: Arc::new(NoAudit),
            metrics: Arc::default(),
            calendar: None,
            calendar_details_claim: None,
            knowledge: None,
            present: BTreeSet::new(),
            watch: None,
        }
    }
}

/// What all sessions share.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) policy: Policy,
    pub(crate) clock: Arc<dyn Clock>,
    /// The same clock for everything that expires.
    pub(crate) steady: SteadyClock,
    pub(crate) deadlines: Deadlines,
    pub(crate) audit: Arc<dyn AuditSink>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) calendar: Option<Arc<dyn Calendar>>,
    pub(crate) calendar_details_claim: Option<RequiredClaim>,
    pub(crate) knowledge: Option<Arc<dyn Knowledge>>,
    pub(crate) present: Arc<BTreeSet<String>>,
    pub(crate) log_sink: Option<LogSink>,
    pub(crate) voice_sessions: VoiceSessions,
    pub(crate) blank_tool: BlankTool,
    live: Mutex<HashMap<Arc<str>, Weak<SessionCore>>>,
}

/// The tool's part of a call's facts before the registry has filled it in.
pub(crate) struct BlankTool {
    pub(crate) facts: Arc<ToolFacts>,
    pub(crate) capabilities: Arc<[Capability]>,
}

/// Opens sessions and resumes them.
#[derive(Clone)]
pub struct Orchestrator {
    shared: Arc<Shared>,
}

/// Who wants a session.
#[derive(Debug, Clone)]
pub struct Client {
    /// What they are known by, stable across sessions.
    pub id: String,
    /// What else is known about them.
    pub facts: Arc<ClientFacts>,
}

impl Client {
    /// A client that has not signed in.
    pub fn anonymous(id: impl Into<String>) -> Self {
        Self { id: id.into(), facts: Arc::default() }
    }
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The client is blocked.
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
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Orchestrator {
    /// Puts the parts together.
    pub fn new(parts: RuntimeParts) -> Self {
        let mut present = parts.present;
        for always in ["store", "tools", "moderation"] {
            present.insert(always.into());
        }
        if parts.calendar.is_some() {
            present.insert("calendar".into());
        }
        if parts.knowledge.is_some() {
            present.insert("kb".into());
        }
        let no_tool = ToolFacts { id: String::new(), version: String::new(), idempotent: false };
        Self {
            shared: Arc::new(Shared {
                store: parts.store,
                policy: parts.policy,
                steady: SteadyClock::new(parts.clock.clone()),
                deadlines: Deadlines::default(),
                clock: parts.clock,
                audit: parts.audit,
                metrics: parts.metrics,
                calendar: parts.calendar,
                calendar_details_claim: parts.calendar_details_claim,
                knowledge: parts.knowledge,
                present: Arc::new(present),
                log_sink: parts.watch,
                voice_sessions: VoiceSessions::default(),
                blank_tool: BlankTool { facts: Arc::new(no_tool), capabilities: Arc::new([]) },
                live: Mutex::default(),
            }),
        }
    }

    /// The figures.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.metrics
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The numbers.
    pub fn policy(&self) -> &Policy {
        &self.shared.policy
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// The time of day.
    pub fn now(&self) -> SystemTime {
        self.shared.clock.now()
    }

    /// What deadlines are judged by, in milliseconds since 1970. It never goes back, whatever is done to the clock.
    pub fn now_ms(&self) -> u64 {
        self.shared.steady.now_ms()
    }

    /// Whether a client has a voice session open.
    pub fn has_voice_session(&self, client: &str) -> bool {
        self.shared.voice_sessions.has_open(client)
    }

    /// Opens a session under a new id.
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

    /// Goes on with a session of this client, in this process or after a restart.
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
            if self.shared.is_over(&session.core, now_ms) {
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

    /// Makes a session known, whole as it is. Of two that were brought back at the same time the first one counts;
    /// `false` says that it was another's.
    fn register(&self, core: Arc<SessionCore>) -> (Session, bool) {
        let mut live = self.shared.lock();
        if let Some(first) = live.get(&core.id).and_then(Weak::upgrade) {
            return (Session { core: first }, false);
        }
        live.insert(core.id.clone(), Arc::downgrade(&core));
        drop(live);
        core.is_registered.store(true, Ordering::Release);
        self.shared.voice_sessions.opened(core.mode, &core.client);
        self.shared.metrics.session_opened(core.mode);
        (Session { core }, true)
    }

    /// A session of this process.
    pub fn find(&self, id: &str) -> Option<Session> {
        self.shared.find(id).map(|core| Session { core })
    }

    /// The session in which a question was asked, by the token that answers it; only to the client who was asked.
    pub async fn find_confirmation_session(
        &self,
        token: &str,
        client: &str,
    ) -> Result<Option<String>, StoreError> {
        let key = crate::confirmation::hash(token);
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

    /// Ends what has been idle for too long and forgets what has had its time. To be called every now and then.
    pub async fn sweep(&self) -> Result<u64, StoreError> {
        let now_ms = self.now_ms();
        let live: Vec<_> = self.shared.lock().values().filter_map(Weak::upgrade).collect();
        for core in live {
            if self.shared.is_over(&core, now_ms) {
                Session { core }.end(PendingEnd::with_reason("inactivity")).await;
            }
        }
        self.shared.expire_due().await?;
        self.shared.store.sweep(now_ms).await
    }

    /// Hands everything that waits to be stored to the store. To be called before a shutdown.
    pub fn save_all(&self) {
        let live: Vec<_> = self.shared.lock().values().filter_map(Weak::upgrade).collect();
        for core in live {
            core.save_now();
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Arc<str>, Weak<SessionCore>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, id: &str) -> Option<Arc<SessionCore>> {
        self.lock().get(id).and_then(Weak::upgrade)
    }

    pub(crate) fn forget(&self, id: &str) {
        self.lock().remove(id);
    }

    /// Forgets a session that was dropped, unless it was resumed in the meantime.
    pub(crate) fn forget_dropped(&self, id: &str) {
        let mut live = self.lock();
        if live.get(id).is_some_and(|core| core.strong_count() == 0) {
            live.remove(id);
        }
    }

    /// Whether a session of this process was left for too long.
    fn is_over(&self, core: &SessionCore, now_ms: u64) -> bool {
        let idle = now_ms.saturating_sub(core.seen_ms());
        let gone = core.disconnected_since().map(|since| now_ms.saturating_sub(since));
        idle > self.policy.idle_after.as_millis() as u64
            || gone.is_some_and(|gone| gone > self.resume_timeout_ms(core.mode))
    }

    /// How long a session without a client is kept open.
    fn resume_timeout_ms(&self, mode: Mode) -> u64 {
        let timeout = match mode {
            Mode::Voice => self.policy.resume_timeout,
            Mode::Text => self.policy.idle_after,
        };
        timeout.as_millis() as u64
    }
}

/// Which sessions a client has.
pub(crate) fn index_key(client: &str, session: &str) -> String {
    format!("c/{client}/{session}")
}

/// Where an issued voice session waits.
pub(crate) fn reserved_key(id: &str) -> String {
    format!("r/{id}")
}

/// How the keys of a tool's values for a client begin.
pub(crate) fn value_prefix(client: &str, tool: &str) -> String {
    format!("{client}/{tool}/")
}

/// Whether a text can be the id of a session or a client. Ids become parts of keys, so they hold nothing that parts keys.
pub fn is_valid_id(id: &str) -> bool {
    (1..=128).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:@".contains(&byte))
}

/// What a tool may issue as the id of a session.
pub(crate) fn is_session_id(id: &str) -> bool {
    (8..=64).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Random bytes in hex, unless the operating system has none to give.
pub fn random_hex(bytes: usize) -> Option<String> {
    let mut random = vec![0_u8; bytes];
    getrandom::fill(&mut random).ok()?;
    Some(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Every row of a table with a prefix, page by page.
pub(crate) async fn all_rows(
    store: &dyn Store,
    table: Table,
    prefix: &str,
) -> Result<Vec<(String, Value)>, StoreError> {
    let mut rows = Vec::new();
    let mut scan = Scan::prefix(prefix, 500);
    loop {
        let page = store.scan(table, scan.clone()).await?;
        let Some((last, _)) = page.last() else { return Ok(rows) };
        scan.after = Some(last.clone());
        rows.extend(page.into_iter().map(|(key, row)| (key, row.value)));
    }
}
