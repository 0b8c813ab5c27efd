//! Tells clients that the tools have changed: those that have shaken hands over their connection, the others over the
//! stream of a `subscriptions/listen`. The guides come with the tools, so they change together.

use rmcp::model::SubscriptionFilter;
use rmcp::service::{NotificationContext, ServiceError, SubscriptionContext};
use rmcp::{ErrorData, Peer, RoleServer};
use tokio::sync::watch;

use crate::handler::McpHandler;

/// What can change here that a client may ask to be told of.
pub(crate) fn accepted(_requested: &SubscriptionFilter) -> SubscriptionFilter {
    SubscriptionFilter::builder().tools_list_changed().prompts_list_changed().build()
}

impl McpHandler {
    /// A client is ready: from now on it is told of changes, until its connection ends.
    pub(crate) fn follow_changes(&self, context: &NotificationContext<RoleServer>) {
        let changes = self.shared.parts.registry.changes();
        let alive = self.handshake.is_alive();
        tokio::spawn(tell_changes(context.peer.clone(), changes, alive));
    }

    /// Serves one `subscriptions/listen` until its client or the server has enough.
    pub(crate) async fn tell_subscriber(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.shared.parts.registry.changes();
        let closing = self.shared.closing();
        let mut closing = std::pin::pin!(closing);
        loop {
            tokio::select! {
                () = &mut closing => return Ok(()),
                () = context.cancelled() => return Ok(()),
                changed = changes.changed() => if changed.is_err() { return Ok(()) },
            }
            let (sink, accepted) = (context.sink(), context.accepted());
            let mut is_sent = true;
            if accepted.tools_list_changed == Some(true) {
                is_sent &= sink.notify_tool_list_changed().await.is_ok();
            }
            if accepted.prompts_list_changed == Some(true) {
                is_sent &= sink.notify_prompt_list_changed().await.is_ok();
            }
            if !is_sent {
                return Ok(());
            }
        }
    }
}

async fn tell_changes(
    peer: Peer<RoleServer>,
    mut changes: watch::Receiver<u64>,
    mut alive: watch::Receiver<()>,
) {
    loop {
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            // Its sender is dropped with the connection.
            _ = alive.changed() => return,
        }
        if let Err(error) = tell(&peer).await {
            tracing::debug!(error = %error, "client could not be told of new tools");
            return;
        }
    }
}

async fn tell(peer: &Peer<RoleServer>) -> Result<(), ServiceError> {
    peer.notify_tool_list_changed().await?;
    peer.notify_prompt_list_changed().await
}
