//! A client that has shaken hands: who it is, and its session.

use std::sync::{Arc, OnceLock, Weak};

use quarterdeck_runtime::Client;
use rmcp::model::{InitializeRequestParams, InitializeResult};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::watch;

use crate::caller::McpCaller;
use crate::handler::McpHandler;
use crate::sessions::Slot;

/// What came of the handshake of a connection, if there was one.
#[derive(Default)]
pub(crate) struct Handshake {
    owner: OnceLock<Owner>,
    /// Dropped with the connection.
    alive: watch::Sender<()>,
}

/// Whom a connection belongs to.
struct Owner {
    caller: McpCaller,
    client: Client,
    slot: Arc<Slot>,
}

impl McpHandler {
    /// Answers `initialize`. The session is opened here, so that a client that may have none is told at once.
    pub(crate) async fn shake_hands(
        &self,
        params: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let answer = self.negotiate_initialize(&params)?;
        let caller = self.caller(&context)?.clone();
        let client = caller.client(Some(&params.client_info.name));
        let slot = self.shared.slot_for_connection(&client);
        self.shared.session_in(&slot, client.clone()).await?;
        if self.handshake.owner.set(Owner { caller, client, slot }).is_err() {
            return Err(ErrorData::invalid_request("This connection has shaken hands before.", None));
        }
        NewConnection::note(&context, &self.handshake);
        context.peer.set_peer_info(params);
        Ok(answer)
    }
}

/// Where the transport of a new connection finds its handshake, among the extensions of its first request.
#[derive(Clone, Default)]
pub(crate) struct NewConnection(Arc<OnceLock<Weak<Handshake>>>);

impl NewConnection {
    fn note(context: &RequestContext<RoleServer>, handshake: &Arc<Handshake>) {
        let parts = context.extensions.get::<http::request::Parts>();
        if let Some(connection) = parts.and_then(|parts| parts.extensions.get::<Self>()) {
            // It is set once: one request makes one handshake.
            let _ = connection.0.set(Arc::downgrade(handshake));
        }
    }

    pub(crate) fn handshake(&self) -> Option<Weak<Handshake>> {
        self.0.get().cloned()
    }
}

impl Handshake {
    /// Fails once the connection has ended.
    pub(crate) fn is_alive(&self) -> watch::Receiver<()> {
        self.alive.subscribe()
    }

    pub(crate) fn slot(&self) -> Option<&Arc<Slot>> {
        self.owner.get().map(|owner| &owner.slot)
    }

    /// The client of a request on this connection; `None` if there was no handshake. A request of another client is
    /// refused: the id of a connection is no credential.
    pub(crate) fn client_for(&self, caller: &McpCaller) -> Result<Option<Client>, ErrorData> {
        let Some(owner) = self.owner.get() else { return Ok(None) };
        match (caller, &owner.caller) {
            // What is known about a client may have changed since.
            (McpCaller::Known(client), McpCaller::Known(_)) if client.id == owner.client.id => {
                Ok(Some(client.clone()))
            }
            (McpCaller::LocalProgram(_), McpCaller::LocalProgram(_))
            | (McpCaller::Unknown(_), McpCaller::Unknown(_)) => Ok(Some(owner.client.clone())),
            _ => Err(ErrorData::invalid_request(
                "This session belongs to another client. Send `initialize` to begin one.",
                None,
            )),
        }
    }
}
