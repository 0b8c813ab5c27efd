//! What the orchestrator says beside the answers of calls.

use quarterdeck_runtime::{ClientEvent, DeliveryReason};

use super::call::Call;
use super::ending::Over;
use super::line::ServerMessage;

impl Call {
    pub(super) fn session_says(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Message(value) => self.tell(ServerMessage::Message(&value)),
            ClientEvent::Progress { call_id, text } => {
                self.tell(ServerMessage::Progress { id: &call_id, text: &text })
            }
            ClientEvent::Confirmation { call_id, request } => {
                self.tell(ServerMessage::ConfirmationRequest { id: &call_id, request: &request });
                self.questions.retain(|(id, _)| *id != call_id);
                self.questions.push((call_id, request));
            }
            ClientEvent::Answer { why, answer } => {
                self.questions.retain(|(id, _)| *id != answer.call_id);
                // What the connection that asked could not be told, the page may have been. What a person has decided is
                // news: all that it was told before is that they were asked.
                if why == DeliveryReason::Confirmed || !self.shown.has(&answer.call_id) {
                    let gates = answer.trace.as_ref();
                    self.tell(ServerMessage::ToolResult {
                        id: &answer.call_id,
                        response: &answer.response,
                        gates,
                    });
                    self.shown.add(&answer.call_id);
                }
                match why {
                    // The model that asked has not heard of it.
                    DeliveryReason::Late => self.notes.add_late(answer),
                    // The session has a note of its own for these.
                    DeliveryReason::Confirmed | DeliveryReason::Abandoned => {
                        self.notes.add(self.session.take_notes());
                        answer.mark_delivered();
                    }
                }
                self.follow_state();
            }
            ClientEvent::End(end) => self.over = Some(Over::Ended(end)),
        }
    }
}
