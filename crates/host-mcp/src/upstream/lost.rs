//! The end of a connection, which everyone who uses it learns at once.

use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::watch;

/// Whether a connection has ended, and why. Clones are the same connection's.
#[derive(Debug, Clone)]
pub(crate) struct Lost(Arc<watch::Sender<Option<Arc<str>>>>);

impl Default for Lost {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl Lost {
    /// Ends the connection. The first reason counts.
    pub(crate) fn set(&self, reason: &str) {
        self.0.send_if_modified(|known| {
            let is_first = known.is_none();
            if is_first {
                *known = Some(reason.into());
            }
            is_first
        });
    }

    pub(crate) fn reason(&self) -> Option<Arc<str>> {
        self.0.borrow().clone()
    }

    /// Ends with the connection.
    pub(crate) async fn wait(&self) -> Arc<str> {
        let mut receiver = self.0.subscribe();
        let reason = receiver.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
        // The sender is part of `self`, so that there always is one.
        reason.unwrap_or_else(|| "it ended".into())
    }
}

/// A transport that reports its end before anything else is done about it.
///
/// The SDK's own report comes after it has put its things in order, which takes seconds.
pub(crate) struct Watched<T> {
    inner: T,
    lost: Lost,
}

impl<T> Watched<T> {
    pub(crate) fn new(inner: T, lost: Lost) -> Self {
        Self { inner, lost }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Watched<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let message = self.inner.receive().await;
        if message.is_none() {
            self.lost.set("the server closed the connection");
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.lost.set("the connection was closed");
        self.inner.close().await
    }
}
