//! Which session a request belongs to.
//!
//! A client that has shaken hands has one session for its connection. The others name none: theirs is found by their
//! identity and, if they give one, a hint in `_meta`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use quarterdeck_contracts::{ErrorType, Mode, ToolError};
use quarterdeck_runtime::{Client, SessionError};
use rmcp::ErrorData;

use crate::server::Shared;
use crate::session::McpSession;

/// Says which of several sessions of the same client a request belongs to.
pub(crate) const SESSION_KEY: &str = "quarterdeck/session";
/// How long a hint may be.
const MAX_HINT_BYTES: usize = 128;
/// How long a client that was let in is not looked up again.
const CHECK_INTERVAL_MS: u64 = 5_000;

/// The sessions of all clients.
#[derive(Default)]
pub(crate) struct Sessions {
    /// Those of clients that name none.
    by_hint: Mutex<HashMap<SessionKey, Arc<Slot>>>,
    /// Those of clients that have shaken hands, by client. Their connections hold them.
    by_connection: Mutex<HashMap<String, Vec<Weak<Slot>>>>,
    /// How many are open, by client.
    open: Arc<Mutex<HashMap<String, usize>>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct SessionKey {
    client: String,
    hint: String,
}

/// The place of a session, which is opened when it is first needed and replaced when it has ended.
#[derive(Default)]
pub(crate) struct Slot {
    present: Mutex<Option<Arc<McpSession>>>,
    /// Held while a session is opened, so that two requests do not open two.
    opening: tokio::sync::Mutex<()>,
}

/// Why there is no session for a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoSession {
    #[error(
        "You have {0} sessions with calls that run, which is as many as you may. Wait until one has ended."
    )]
    TooManyOfClient(usize),
    #[error("The server has as many sessions as it can hold. Try again in a few minutes.")]
    TooMany,
    #[error("`_meta[\"{SESSION_KEY}\"]` must be a text of 1 to {MAX_HINT_BYTES} bytes.")]
    InvalidHint,
    /// The request cannot have a session at all.
    #[error("{}", .0.message)]
    Fault(#[from] ErrorData),
    #[error("{}", sentence(.0))]
    Session(#[from] SessionError),
}

impl NoSession {
    /// What a model is told whose call cannot be made; `None` for a fault of the protocol.
    pub(crate) fn refusal(&self) -> Option<ToolError> {
        let kind = match self {
            Self::InvalidHint | Self::Fault(_) => return None,
            Self::TooManyOfClient(_) | Self::TooMany => ErrorType::RateLimit,
            Self::Session(SessionError::Store(error)) => {
                tracing::error!(error = %error, "session could not be opened");
                ErrorType::Transient
            }
            Self::Session(_) => ErrorType::Unavailable,
        };
        let error = ToolError::new(kind, self.to_string());
        Some(if kind == ErrorType::Unavailable { error } else { error.retryable() })
    }
}

/// Without what is inside the store.
fn sentence(error: &SessionError) -> String {
    match error {
        SessionError::Store(_) => "The session could not be opened. Try again later.".to_owned(),
        SessionError::Blocked(block) if !block.message.is_empty() => {
            format!("You are blocked for the time being: {}", block.message)
        }
        SessionError::Blocked(_) => "You are blocked for the time being. Try again later.".to_owned(),
        other => format!("There is no session for you: {other}."),
    }
}

impl From<NoSession> for ErrorData {
    fn from(fault: NoSession) -> Self {
        match fault {
            NoSession::Fault(error) => error,
            NoSession::InvalidHint => Self::invalid_params(fault.to_string(), None),
            NoSession::Session(SessionError::Store(ref error)) => {
                tracing::error!(error = %error, "session could not be opened");
                Self::internal_error(fault.to_string(), None)
            }
            _ => Self::invalid_request(fault.to_string(), None),
        }
    }
}

impl Shared {
    /// The place of the session of a client that names none.
    pub(crate) fn find_slot(&self, client: &Client, hint: Option<&str>) -> Result<Arc<Slot>, NoSession> {
        if hint.is_some_and(|hint| hint.is_empty() || hint.len() > MAX_HINT_BYTES) {
            return Err(NoSession::InvalidHint);
        }
        let key = SessionKey { client: client.id.clone(), hint: hint.unwrap_or_default().to_owned() };
        let mut slots = lock(&self.sessions.by_hint);
        if let Some(slot) = slots.get(&key) {
            return Ok(slot.clone());
        }
        self.make_room(&mut slots, &client.id);
        Ok(slots.entry(key).or_default().clone())
    }

    /// The session in a slot, which is opened if there is none.
    pub(crate) async fn session_in(&self, slot: &Slot, client: Client) -> Result<Arc<McpSession>, NoSession> {
        if let Some(session) = self.present(slot, &client).await? {
            return Ok(session);
        }
        let _opening = slot.opening.lock().await;
        if let Some(session) = self.present(slot, &client).await? {
            return Ok(session);
        }
        self.open_in(slot, client).await
    }

    /// Opens a session. The caller holds the slot's lock for that.
    async fn open_in(&self, slot: &Slot, client: Client) -> Result<Arc<McpSession>, NoSession> {
        let count = match self.count_session(&client.id) {
            // Most clients leave without a word, so most of what is open will not be used again.
            Err(NoSession::TooManyOfClient(_)) if self.end_oldest(&client.id) => {
                self.count_session(&client.id)?
            }
            count => count?,
        };
        let orchestrator = &self.parts.orchestrator;
        let session = orchestrator.open(client, Mode::Text, &self.parts.registry).await?;
        let session = Arc::new(McpSession::new(&session, orchestrator.now_ms(), count));
        *lock(&slot.present) = Some(session.clone());
        Ok(session)
    }

    /// The session in a slot, moved on to the tools that a new session would have. It stays as it is where something holds
    /// it to its version: a call that runs, a question that is open, or a task.
    pub(crate) async fn newest_session_in(
        &self,
        slot: &Slot,
        client: Client,
    ) -> Result<Arc<McpSession>, NoSession> {
        let session = self.session_in(slot, client.clone()).await?;
        let (orchestrator, registry) = (&self.parts.orchestrator, &self.parts.registry);
        let newest = orchestrator.choose_tools(&client, registry)?.snapshot;
        if newest.content_hash() == session.session().snapshot().content_hash() {
            return Ok(session);
        }
        drop(session);
        let _opening = slot.opening.lock().await;
        let alone = {
            let mut present = lock(&slot.present);
            match present.take().map(Arc::try_unwrap) {
                Some(Ok(alone)) => Some(alone),
                Some(Err(busy)) => {
                    *present = Some(busy.clone());
                    return Ok(busy);
                }
                None => None,
            }
        };
        let Some(alone) = alone else { return self.open_in(slot, client).await };
        let (session, count) = alone.into_parts();
        let session = orchestrator.repin(session, client, registry).await?;
        let session = Arc::new(McpSession::new(&session, orchestrator.now_ms(), count));
        *lock(&slot.present) = Some(session.clone());
        Ok(session)
    }

    /// The session in a slot, if it is active and its client may still use it.
    async fn present(&self, slot: &Slot, client: &Client) -> Result<Option<Arc<McpSession>>, NoSession> {
        let Some(present) = lock(&slot.present).clone() else { return Ok(None) };
        let now_ms = self.parts.orchestrator.now_ms();
        present.mark_used(now_ms);
        if !present.needs_check(now_ms, CHECK_INTERVAL_MS) {
            return Ok(Some(present));
        }
        // What is known about a client changes, and it may have been blocked.
        let id = present.session().id().to_owned();
        match self.parts.orchestrator.resume(&id, client.clone(), &self.parts.registry).await {
            Ok(session) if present.session().is_same(&session) => {
                present.mark_checked(now_ms);
                Ok(Some(present))
            }
            // Another node has had it, or has it: here a new one begins.
            Ok(_)
            | Err(
                SessionError::Ended
                | SessionError::NotFound
                | SessionError::HeldElsewhere(_)
                | SessionError::Lost,
            ) => {
                *lock(&slot.present) = None;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Ends what was idle for too long.
    pub(crate) fn end_idle_sessions(&self) {
        let idle_ms = self.parts.settings.idle_timeout.as_millis() as u64;
        let now_ms = self.parts.orchestrator.now_ms();
        let is_idle =
            |slot: &Slot| slot.used_ms().is_none_or(|used_ms| now_ms.saturating_sub(used_ms) >= idle_ms);
        // A slot that a request holds is being opened, or in use.
        lock(&self.sessions.by_hint).retain(|_, slot| Arc::strong_count(slot) > 1 || !is_idle(slot));
    }

    /// Ends the client's least recently used session if it would have too many.
    fn make_room(&self, slots: &mut HashMap<SessionKey, Arc<Slot>>, client: &str) {
        let of_client = slots.iter().filter(|(key, _)| key.client == client);
        if of_client.clone().count() < self.parts.settings.max_sessions_per_client {
            return;
        }
        let oldest = of_client.min_by_key(|(_, slot)| slot.used_ms()).map(|(key, _)| key.clone());
        if let Some(oldest) = oldest {
            slots.remove(&oldest);
        }
    }

    /// A place for the session of a connection.
    pub(crate) fn slot_for_connection(&self, client: &Client) -> Arc<Slot> {
        let slot = Arc::<Slot>::default();
        let mut slots = lock(&self.sessions.by_connection);
        slots.retain(|_, of_client| {
            of_client.retain(|slot| slot.strong_count() > 0);
            !of_client.is_empty()
        });
        slots.entry(client.id.clone()).or_default().push(Arc::downgrade(&slot));
        slot
    }

    /// Ends the session of a client that was used least recently and has nothing to do. One whose connection is still
    /// there is opened again with its next request.
    fn end_oldest(&self, client: &str) -> bool {
        let mut slots: Vec<_> = lock(&self.sessions.by_hint)
            .iter()
            .filter(|(key, _)| key.client == client)
            .map(|(_, slot)| slot.clone())
            .collect();
        let of_connections = lock(&self.sessions.by_connection);
        slots.extend(of_connections.get(client).into_iter().flatten().filter_map(Weak::upgrade));
        drop(of_connections);
        slots.retain(|slot| slot.used_ms().is_some());
        slots.sort_by_key(|slot| slot.used_ms());
        // What is taken out is dropped here, and with it its place in the count.
        slots.iter().any(|slot| slot.take_idle().is_some())
    }

    fn count_session(&self, client: &str) -> Result<SessionCount, NoSession> {
        let settings = &self.parts.settings;
        let mut open = lock(&self.sessions.open);
        if open.values().sum::<usize>() >= settings.max_sessions {
            return Err(NoSession::TooMany);
        }
        let of_client = open.entry(client.to_owned()).or_default();
        if *of_client >= settings.max_sessions_per_client {
            return Err(NoSession::TooManyOfClient(*of_client));
        }
        *of_client += 1;
        Ok(SessionCount { open: self.sessions.open.clone(), client: client.to_owned() })
    }
}

impl Slot {
    /// Takes the session out, unless a request or a call has it.
    fn take_idle(&self) -> Option<Arc<McpSession>> {
        let mut present = lock(&self.present);
        present.take_if(|session| Arc::strong_count(session) == 1)
    }

    fn used_ms(&self) -> Option<u64> {
        lock(&self.present).as_ref().map(|session| session.used_ms())
    }
}

/// Counts one open session of a client.
pub(crate) struct SessionCount {
    open: Arc<Mutex<HashMap<String, usize>>>,
    client: String,
}

impl Drop for SessionCount {
    fn drop(&mut self) {
        let mut open = lock(&self.open);
        if let Some(count) = open.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.client);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
