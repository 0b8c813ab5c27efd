//! What goes to the client beside the answers of its calls.

use std::sync::Arc;

use quarterdeck_contracts::ConfirmationRequest;
use serde_json::Value;

use super::answer::Answer;
use crate::state::PendingEnd;

/// Something that the client should know.
#[derive(Debug)]
pub enum ClientEvent {
    Message(Value),
    /// A note while a slow tool runs.
    Progress {
        call_id: Arc<str>,
        text: String,
    },
    /// A request for the user's approval, with the token that resolves it. Never for a model.
    Confirmation {
        call_id: Arc<str>,
        request: ConfirmationRequest,
    },
    /// The outcome of a call that could not be delivered where the call was made.
    Answer {
        reason: DeliveryReason,
        answer: Answer,
    },
    End(PendingEnd),
}

/// Why an answer comes as an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryReason {
    /// The connection that made the call is gone.
    Late,
    /// The user approved or denied it after the call had been answered.
    Confirmed,
    /// It was cancelled, but had begun to write and has finished.
    Abandoned,
}

impl ClientEvent {
    /// Whether the next connection must still get it.
    pub(super) fn outlives_connection(&self) -> bool {
        // Late answers go back to where undelivered ones wait; an abandoned one has no other place than this.
        matches!(
            self,
            Self::Confirmation { .. } | Self::End(_) | Self::Answer { reason: DeliveryReason::Abandoned, .. }
        )
    }

    pub(super) fn may_be_dropped(&self) -> bool {
        matches!(self, Self::Progress { .. } | Self::Message(_))
    }
}
