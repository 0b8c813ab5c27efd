//! What goes to the client beside the answers of its calls.

use std::sync::Arc;

use quarterdeck_contracts::{ConfirmationRequest, ToolResponse};
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
    /// A partial result of a call, in place of the one before it.
    Partial {
        call_id: Arc<str>,
        /// An envelope with the chunk as its data.
        response: Arc<ToolResponse>,
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
    /// The client was blocked elsewhere: the present turn is over. The conversation goes on after the block.
    Blocked {
        message: Arc<str>,
    },
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
    /// It went on in the background, and has ended.
    TaskEnded,
}

impl ClientEvent {
    /// Whether the next connection must still get it.
    pub(super) fn outlives_connection(&self) -> bool {
        // Late answers go back to where undelivered ones wait; others have no other place than this.
        matches!(
            self,
            Self::Confirmation { .. }
                | Self::End(_)
                | Self::Answer { reason: DeliveryReason::Abandoned | DeliveryReason::TaskEnded, .. }
        )
    }

    pub(super) fn may_be_dropped(&self) -> bool {
        matches!(self, Self::Progress { .. } | Self::Partial { .. } | Self::Message(_))
    }

    /// Whether it stands for the same thing as another one that is newer, so that a client that is behind needs only the
    /// newer.
    pub(super) fn is_replaced_by(&self, newer: &Self) -> bool {
        match (self, newer) {
            (Self::Progress { call_id: one, .. }, Self::Progress { call_id: other, .. })
            | (Self::Partial { call_id: one, .. }, Self::Partial { call_id: other, .. }) => one == other,
            _ => false,
        }
    }
}
