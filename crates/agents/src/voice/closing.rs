//! Closes a call that is over: the provider first and the client last.

use std::time::Duration;

use quarterdeck_runtime::PendingEnd;

use super::active_calls::CallCommand;
use super::call::Call;
use super::journal;
use super::link::{CloseReason, ServerMessage};
use super::state::CallEnd;
use super::unavailable;

/// How long the provider's connection may take to close.
const PROVIDER_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

impl Call {
    pub(super) async fn finish(mut self) {
        let Some(end) = self.state.end() else { return };
        for receipt in self.state.take_receipts() {
            self.record_heard(receipt);
        }
        let turn = self.state.spoken_turn();
        if !turn.user.is_empty() || !turn.answer.is_empty() {
            self.records.transcript.record(&self.core.orchestrator, &self.session, turn);
        }
        // From here on the client may call again, and no link comes here any more.
        self.active.set_connected(false);
        self.incoming.close();
        while let Ok(command) = self.incoming.try_recv() {
            let CallCommand::Link(mut link) = command else { continue };
            link.send(ServerMessage::Error(&unavailable("This call has just ended. Please call again.")));
            link.close(CloseReason::Failed).await;
        }
        let reason = match end {
            CallEnd::Ended(end) => self.end_session(end, CloseReason::Ended).await,
            CallEnd::Replaced => {
                self.end_session(PendingEnd::with_reason("another_call"), CloseReason::TakenOver).await
            }
            CallEnd::ProviderUnreachable(error) => {
                tracing::error!(session = self.session.id(), error = %error, "provider unreachable, call ended");
                self.send(ServerMessage::Error(&unavailable(
                    "The voice service cannot be reached. You can call again in a moment, or write.",
                )));
                CloseReason::Failed
            }
            CallEnd::HandedOver => {
                self.session.interrupt();
                self.close_provider().await;
                CloseReason::TakenOver
            }
            CallEnd::ServerStopping => {
                self.close_provider().await;
                CloseReason::Stopping
            }
            CallEnd::ClientGone => {
                self.session.interrupt();
                self.close_provider().await;
                CloseReason::Idle
            }
        };
        self.release().await;
        tracing::info!(session = self.session.id(), reason = ?reason, "call ended");
        if let Some(client) = self.client.take() {
            client.close(reason).await;
        }
    }

    /// Stores what was said, and lets any node continue the session.
    async fn release(&mut self) {
        let journal = journal::put(self.session.id(), self.state.final_journal(), self.core.expiry_ms());
        if !self.session.is_leased() {
            return self.session.store_soon(journal);
        }
        match self.session.commit_and_release(journal).await {
            Ok(is_free) => {
                if let Some(done) = self.active.handing_over.take().filter(|_| is_free) {
                    let _ = done.send(());
                }
            }
            Err(error) => {
                tracing::warn!(session = self.session.id(), error = %error, "journal was not stored");
            }
        }
    }

    async fn end_session(&mut self, end: PendingEnd, reason: CloseReason) -> CloseReason {
        self.session.end(end.clone()).await;
        self.close_provider().await;
        self.send(ServerMessage::End(&end));
        reason
    }

    fn send(&mut self, message: ServerMessage<'_>) {
        if let Some(client) = &mut self.client {
            client.send(message);
        }
    }

    async fn close_provider(&mut self) {
        let _ = tokio::time::timeout(PROVIDER_CLOSE_TIMEOUT, self.provider.close()).await;
    }
}
