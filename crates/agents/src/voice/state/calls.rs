//! Tool calls and confirmations in the machine.

use std::sync::Arc;

use quarterdeck_contracts::{
    CallArguments, ConfirmationRequest, ErrorType, ModelCall, Outcome, ToolError, ToolResponse,
};
use quarterdeck_runtime::{Call as ToolCall, DeliveryReason, SpokenRefusal};
use serde_json::Value;

use super::{CallState, ClientOutput, Output, ProviderOutput, RequestedCall};
use crate::note::{completed_write_note, format_notes};
use crate::voice::answers::ReceivedAnswer;
use crate::voice::session::CallSession;

impl<S: CallSession> CallState<S> {
    /// Hands the calls of a message to the session.
    pub(super) fn run_calls(&mut self, calls: Vec<ModelCall>) {
        if self.speech.interruption.suppresses(self.timing.now) {
            return self.refuse_calls(&calls);
        }
        self.speech.on_calls();
        let (mut submitted, mut requested) = (Vec::new(), Vec::new());
        let count = calls.len();
        for (index, call) in calls.into_iter().enumerate() {
            let request = Arc::new(self.pending.identify(call.id.as_deref(), &call.name));
            let args = match &call.arguments {
                CallArguments::Json(value) => value.clone(),
                // The first gate refuses what is no object and says so.
                CallArguments::Broken(text) => Value::String(text.clone()),
            };
            self.send_client(ClientOutput::ToolCall { call: request.clone(), args: args.clone() });
            if let Some(response) = self.session.describe_tool(&call) {
                let id = request.shown_id.clone();
                self.send_client(ClientOutput::ToolResult { id, response: response.clone(), gates: None });
                self.answer(&request, response, false, index + 1 == count && submitted.is_empty());
            } else {
                submitted.push(ToolCall::new(call.name, args).with_id(request.shown_id.to_string()));
                requested.push(request);
            }
        }
        if !submitted.is_empty() {
            self.pending.add(&requested, self.timing.now);
            let generation = self.connection.generation;
            self.push(Output::Submit { calls: submitted, requested, generation });
            self.tick_soon();
        }
    }

    /// Calls of a response that the user has interrupted do not start.
    fn refuse_calls(&mut self, calls: &[ModelCall]) {
        for (index, call) in calls.iter().enumerate() {
            let error = ToolError::new(ErrorType::Cancelled, "The user has interrupted. Nothing was done.");
            let response = self.session.refuse(&call.name, error);
            self.send_provider(ProviderOutput::Result {
                id: call.id.clone().filter(|id| !id.is_empty()),
                name: call.name.clone(),
                response,
                is_silent: true,
                is_last: index + 1 == calls.len(),
            });
        }
    }

    /// Has the model say the configured words while these calls take long, once for a wait, unless the user still hears
    /// something.
    pub(super) fn fill_wait(&mut self, calls: &[Arc<RequestedCall>]) {
        let Some(filler) = &self.settings.filler else { return };
        if !self.pending.has_unfilled(calls) || !self.speech.playback.unplayed().is_zero() {
            return;
        }
        let note = format!("A tool takes a moment. Say only this, and then wait for its result: {filler}");
        let (words, request) = (filler.clone(), format_notes(&[note]));
        if self.send_provider(ProviderOutput::Filler { words, request }) {
            self.pending.mark_filled();
        }
    }

    pub(super) fn on_call_completed(
        &mut self,
        call: &Arc<RequestedCall>,
        answer: Option<ReceivedAnswer>,
        generation: u64,
        is_last: bool,
    ) {
        self.pending.complete(call);
        if let Some(answer) = answer {
            self.hand_back(call, answer, generation, is_last);
        }
        // An end that was asked for may have waited for nothing but this.
        if self.farewell.is_some() && self.speech.is_silent() {
            self.end_if_played();
        }
    }

    /// An answer goes to the connection that asked and to no other.
    fn hand_back(&mut self, call: &RequestedCall, answer: ReceivedAnswer, generation: u64, is_last: bool) {
        self.follow_session();
        // The session reports what was interrupted by itself, perhaps before this.
        if answer.is_wanted || !self.client.was_shown(&answer.call_id) {
            self.show_result(call.shown_id.clone(), &answer);
        }
        let is_asked_here = generation == self.connection.generation && self.connection.is_connected;
        if !is_asked_here || self.pending.take_cancelled(call) {
            // What the model should know of it comes back as a late answer.
            return self.push(Output::ReturnAnswer(answer.id));
        }
        self.answer(call, answer.response.clone(), !answer.is_wanted, is_last);
        if let Some(note) = completed_write_note(&call.name, &answer.response)
            && self.session.is_write(&call.name)
        {
            self.journal.add_completed_write(note);
        }
        self.connection.unsent.push(answer.id);
    }

    fn show_result(&mut self, id: Arc<str>, answer: &ReceivedAnswer) {
        self.client.mark_shown(&answer.call_id);
        let (response, gates) = (answer.response.clone(), answer.trace.clone());
        self.send_client(ClientOutput::ToolResult { id, response, gates });
    }

    fn answer(&mut self, call: &RequestedCall, response: Arc<ToolResponse>, is_silent: bool, is_last: bool) {
        let known = self.notes.on_answered(&call.name, &response);
        self.deliver(known);
        if !is_silent && is_last {
            self.speech.on_results();
        }
        let (id, name) = (call.id.clone(), call.name.clone());
        self.send_provider(ProviderOutput::Result { id, name, response, is_silent, is_last });
    }

    pub(super) fn request_confirmation(&mut self, call_id: Arc<str>, request: ConfirmationRequest) {
        let (id, request) = (call_id.clone(), Arc::new(request));
        self.send_client(ClientOutput::ConfirmationRequest { id, request: request.clone() });
        self.client.add_confirmation(call_id, request, self.timing.now);
    }

    pub(super) fn on_late_answer(&mut self, reason: DeliveryReason, answer: ReceivedAnswer) {
        self.client.remove_confirmation(&answer.call_id);
        // What the connection that asked could not be told, the client may have been. A decision is news: all that the
        // client was told before is that a confirmation is needed.
        // So is the end of a task, whose call was answered when it began.
        let is_news = matches!(reason, DeliveryReason::Confirmed | DeliveryReason::TaskEnded);
        if is_news || !self.client.was_shown(&answer.call_id) {
            self.show_result(answer.call_id.clone(), &answer);
        }
        match reason {
            // The model that asked does not know of it.
            DeliveryReason::Late => {
                let delivered = self.notes.add_late(answer);
                self.deliver(delivered);
            }
            // The session has a note of its own for these.
            DeliveryReason::Confirmed | DeliveryReason::Abandoned | DeliveryReason::TaskEnded => {
                self.notes.add(self.session.take_notes());
                self.deliver([answer.id]);
            }
        }
        self.follow_session();
    }

    pub(super) fn on_confirmation_resolved(&mut self, token: &str, answer: Option<ReceivedAnswer>) {
        self.pending.end_confirmation();
        self.on_spoken_resolved(token, answer.as_ref());
        let Some(answer) = answer else { return };
        let failure = match &answer.response.outcome {
            Outcome::Failure(error) => Some(error.clone()),
            Outcome::Success(_) => None,
        };
        let is_open =
            failure.as_ref().is_some_and(|error| can_retry(error.kind) || SpokenRefusal::of(error).is_some());
        if !is_open {
            self.client.remove_confirmation_by_token(token);
        }
        // The session reports what came of a confirmation, to this client and any other. It says nothing of a token that
        // was not valid, or of a decision that could not be taken.
        if let Some(error) = failure.filter(|error| is_open || is_invalid(error.kind)) {
            self.send_error(error);
        }
        self.deliver([answer.id]);
        self.follow_session();
    }
}

fn is_invalid(kind: ErrorType) -> bool {
    matches!(kind, ErrorType::ConfirmationExpired | ErrorType::ConfirmationInvalid)
}

/// Whether the same decision may be sent again.
fn can_retry(kind: ErrorType) -> bool {
    matches!(kind, ErrorType::RateLimit | ErrorType::Unavailable | ErrorType::Transient)
}
