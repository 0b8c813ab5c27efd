//! The session of a client of the older generation: begun by its handshake, kept by its id, renewed when the server has
//! forgotten it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinHandle;

use super::Relay;
use super::message::{ClientMessage, MessageKind};

const END_TIMEOUT: Duration = Duration::from_secs(2);
const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);

/// What the server said in the handshake.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) id: Option<String>,
    pub(super) version: Option<String>,
}

#[derive(Default)]
pub(super) struct Handshake {
    session: Mutex<Session>,
    /// The client's own `initialize`.
    request: Mutex<Option<ClientMessage>>,
    /// Reads what the server says unasked.
    listener: Mutex<Option<JoinHandle<()>>>,
    /// Held while the session is renewed, so that it is done once.
    renewing: tokio::sync::Mutex<()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Handshake {
    pub(super) fn session(&self) -> Session {
        lock(&self.session).clone()
    }

    pub(super) fn set_session(&self, session: Session) {
        *lock(&self.session) = session;
    }

    pub(super) fn remember(&self, request: ClientMessage) {
        *lock(&self.request) = Some(request);
    }
}

impl Relay {
    /// A session in the place of one that the server has forgotten. `None` if there can be none.
    pub(super) async fn renew_session(self: &Arc<Self>, lost: &Session) -> Option<Session> {
        let handshake = &self.handshake;
        let _renewing = handshake.renewing.lock().await;
        let session = handshake.session();
        if session != *lost {
            return Some(session);
        }
        let request = lock(&handshake.request).clone()?;
        self.begin_session(&request).await.ok()?;
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let ready = ClientMessage { kind: MessageKind::Notification, body: ready };
        self.exchange(&ready, &handshake.session()).await.ok()?;
        self.listen();
        tracing::info!("session begun anew: the server had forgotten it");
        Some(handshake.session())
    }

    /// Reads what the server says unasked, until the session is another.
    pub(super) fn listen(self: &Arc<Self>) {
        let session = self.handshake.session();
        if session.id.is_none() {
            return;
        }
        let relay = self.clone();
        let listener = tokio::spawn(async move {
            let mut delay = MIN_RETRY_DELAY;
            // Refused where the server has nothing to say unasked.
            while let Ok(messages) = relay.read_unasked(&session).await {
                delay = if messages > 0 { MIN_RETRY_DELAY } else { (delay * 2).min(MAX_RETRY_DELAY) };
                tokio::time::sleep(delay).await;
            }
        });
        if let Some(before) = lock(&self.handshake.listener).replace(listener) {
            before.abort();
        }
    }

    /// Tells the server that the client has left.
    pub(super) async fn end_session(&self) {
        if let Some(listener) = lock(&self.handshake.listener).take() {
            listener.abort();
        }
        let session = self.handshake.session();
        if session.id.is_some() {
            let ending = self.endpoint.delete(&session).send();
            // A server that does not answer ends the session by itself after a while.
            let _ = tokio::time::timeout(END_TIMEOUT, ending).await;
        }
    }
}
