//! Progress notes and partial results of a call, for a client that asked for them.

use std::sync::Arc;

use quarterdeck_contracts::{Outcome, ToolResponse};
use quarterdeck_runtime::ClientEvent;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use tokio::sync::mpsc;

use super::RunningCall;
use crate::session::McpSession;

/// How much of a partial result is shown.
const MAX_MESSAGE_BYTES: usize = 4 << 10;

/// What is passed on of one call.
pub(super) struct Progress {
    wanted: Option<Wanted>,
}

struct Wanted {
    session: Arc<McpSession>,
    call_id: Arc<str>,
    token: ProgressToken,
    events: mpsc::Receiver<ClientEvent>,
    /// How many notes were sent. Handlers do not say how much is left.
    sent: u32,
}

impl Progress {
    /// Listens if the request wants to know.
    pub(super) fn of(call: &RunningCall) -> Self {
        let token = call.context.meta.get_progress_token();
        let wanted = token.map(|token| Wanted {
            session: call.session.clone(),
            call_id: call.id.clone(),
            token,
            events: call.session.listen(&call.id),
            sent: 0,
        });
        Self { wanted }
    }

    /// Passes on the next note. It waits for ever if none is wanted.
    pub(super) async fn pass_on(&mut self, call: &RunningCall) {
        let Some(wanted) = &mut self.wanted else { return std::future::pending().await };
        let event = loop {
            tokio::select! {
                event = wanted.events.recv() => break event,
                // The first that wakes up gives all of it to those that listen.
                is_ready = call.session.event_ready() => match is_ready {
                    true => call.session.pass_on(),
                    false => return std::future::pending().await,
                },
            }
        };
        match event {
            Some(event) => wanted.notify(call, &event).await,
            None => std::future::pending().await,
        }
    }

    /// Passes on what came before the answer.
    pub(super) async fn finish(mut self, call: &RunningCall) {
        let Some(wanted) = &mut self.wanted else { return };
        call.session.pass_on();
        while let Ok(event) = wanted.events.try_recv() {
            wanted.notify(call, &event).await;
        }
    }
}

/// Also a call that is given up is not listened to any more.
impl Drop for Wanted {
    fn drop(&mut self) {
        self.session.stop_listening(&self.call_id);
    }
}

impl Wanted {
    async fn notify(&mut self, call: &RunningCall, event: &ClientEvent) {
        let message = match event {
            ClientEvent::Progress { text, .. } => text.clone(),
            ClientEvent::Partial { response, .. } => shown(response),
            _ => return,
        };
        self.sent += 1;
        let note =
            ProgressNotificationParam::new(self.token.clone(), f64::from(self.sent)).with_message(message);
        if let Err(error) = call.context.peer.notify_progress(note).await {
            tracing::debug!(error = %error, "progress could not be sent");
        }
    }
}

/// A partial result as text.
fn shown(response: &ToolResponse) -> String {
    let Outcome::Success(data) = &response.outcome else { return String::new() };
    let mut text = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
    text.truncate(text.floor_char_boundary(MAX_MESSAGE_BYTES));
    text
}
