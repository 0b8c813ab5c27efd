//! The MCP sessions of clients that have shaken hands, with whom each belongs to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use futures_core::Stream;
use futures_util::future::{Either, ready};
use futures_util::stream::once;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ServerJsonRpcMessage, ServerResult};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};

use crate::caller::McpCaller;
use crate::handshake::Handshake;
use crate::server::McpServer;

/// rmcp's sessions, each with its owner.
pub(super) struct OwnedSessions {
    server: McpServer,
    local: LocalSessionManager,
    owners: Mutex<Owners>,
    limits: Limits,
    idle_timeout: Duration,
}

/// How many sessions there may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) of_client: usize,
    pub(super) in_all: usize,
}

#[derive(Default)]
struct Owners {
    by_id: HashMap<String, Owned>,
    /// Counts uses, so that the least recently used one is known.
    uses: u64,
}

struct Owned {
    /// None until its client has been let in.
    owner: Option<Owner>,
    used: u64,
    /// When rmcp last heard of it, which would otherwise take it to be idle.
    passed_on: Instant,
    handshake: Weak<Handshake>,
}

#[derive(PartialEq, Eq)]
enum Owner {
    Client(String),
    ThisMachine,
    /// A client that has the id and shows no credential.
    Unknown,
}

impl Owner {
    fn of(caller: &McpCaller) -> Self {
        match caller {
            McpCaller::Known(client) => Self::Client(client.id.clone()),
            McpCaller::LocalProgram(_) => Self::ThisMachine,
            McpCaller::Unknown(_) => Self::Unknown,
        }
    }
}

impl OwnedSessions {
    pub(super) fn new(server: McpServer, limits: Limits) -> Self {
        let idle_timeout = server.shared.parts.settings.idle_timeout;
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = Some(idle_timeout);
        Self { server, local, idle_timeout, owners: Mutex::default(), limits }
    }

    /// Whether a session may be this caller's. One that does not exist may be any client's.
    pub(super) fn may_use(&self, id: &str, caller: &McpCaller) -> bool {
        let mut owners = self.owners();
        let used = owners.next_use();
        let Some(owned) = owners.by_id.get_mut(id) else { return true };
        let is_owner = owned.owner == Some(Owner::of(caller));
        if is_owner {
            owned.used = used;
        }
        is_owner
    }

    /// Says whose a new session is. The one that has to go for it, if its owner has too many: most clients leave without a
    /// word, and come back with another.
    pub(super) fn set_owner(
        &self,
        id: &str,
        caller: &McpCaller,
        handshake: Option<Weak<Handshake>>,
    ) -> Option<SessionId> {
        let owner = Owner::of(caller);
        let most = match owner {
            Owner::Client(_) => self.limits.of_client,
            Owner::ThisMachine | Owner::Unknown => self.limits.in_all,
        };
        let mut owners = self.owners();
        let same = |owned: &&Owned| owned.owner.as_ref() == Some(&owner);
        let is_full = owners.by_id.values().filter(same).count() >= most;
        let surplus = is_full.then(|| owners.oldest_of(&owner)).flatten();
        // One that was refused has ended, and has no owner.
        let owned = owners.by_id.get_mut(id)?;
        owned.owner = Some(owner);
        if let Some(handshake) = handshake {
            owned.handshake = handshake;
        }
        surplus.map(Into::into)
    }

    /// The answer of a call that has one at once. What it does not answer is rmcp's.
    async fn answer_at_once(
        &self,
        id: &SessionId,
        message: &mut ClientJsonRpcMessage,
    ) -> Option<ServerJsonRpcMessage> {
        let ClientJsonRpcMessage::Request(request) = message else { return None };
        let ClientRequest::CallToolRequest(call) = &mut request.request else { return None };
        let handshake = self.handshake_of(id)?;
        let answer = self.server.shared.begin_call(&handshake, call).await?;
        let mut result = ServerResult::from(answer);
        // A client that has shaken hands is of the older generation.
        result.strip_result_type_for_legacy_peer();
        Some(ServerJsonRpcMessage::response(result, request.id.clone()))
    }

    /// The handshake of a session, unless rmcp has not heard of it for long: it must, or it closes the session.
    fn handshake_of(&self, id: &SessionId) -> Option<Arc<Handshake>> {
        let mut owners = self.owners();
        let owned = owners.by_id.get_mut(&**id)?;
        if owned.passed_on.elapsed() > self.idle_timeout / 4 {
            owned.passed_on = Instant::now();
            return None;
        }
        owned.handshake.upgrade()
    }

    fn owners(&self) -> MutexGuard<'_, Owners> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Owners {
    fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    fn oldest_of(&self, owner: &Owner) -> Option<String> {
        let of_owner = self.by_id.iter().filter(|(_, owned)| owned.owner.as_ref() == Some(owner));
        of_owner.min_by_key(|(_, owned)| owned.used).map(|(id, _)| id.clone())
    }
}

impl SessionManager for OwnedSessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let created = self.local.create_session().await?;
        let mut owners = self.owners();
        let used = owners.next_use();
        owners.by_id.insert(
            created.0.to_string(),
            Owned { owner: None, used, passed_on: Instant::now(), handshake: Weak::new() },
        );
        drop(owners);
        Ok(created)
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.local.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.local.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.owners().by_id.remove(&**id);
        self.local.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        if let Some(answer) = self.answer_at_once(id, &mut message).await {
            return Ok(Either::Left(once(ready(ServerSseMessage::from_message(answer)))));
        }
        self.local.create_stream(id, message).await.map(Either::Right)
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.local.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.resume(id, last_event_id).await
    }
}
