//! The calls of one connection.

use quarterdeck_contracts::ChatMessage;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Output, Session};
use crate::live::client_frame::{FunctionResponse, Scheduling, quote};
use crate::live::report::CallReport;
use crate::live::scenario::{Behaviour, CallId, ScriptedCall};
use crate::live::{conversation, server_frame};

/// Calls of a connection that are remembered.
const MAX_CALLS: usize = 1_024;

#[derive(Debug, Default)]
pub(super) struct Calls {
    entries: Vec<CallEntry>,
    /// How many calls the last message with calls had.
    in_last_message: usize,
    /// Whether they were answered during a turn that was about something else.
    pub(super) answers_are_due: bool,
}

#[derive(Debug)]
struct CallEntry {
    id: Option<String>,
    name: String,
    behaviour: Behaviour,
    state: CallState,
    /// Its index in the report.
    place: Option<usize>,
    /// The last response, for the chat model.
    response: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallState {
    Open,
    Answered(Scheduling),
    Cancelled,
}

impl Calls {
    pub(super) fn are_open(&self) -> bool {
        self.entries.iter().any(|call| call.state == CallState::Open)
    }

    /// Whether the model waits for a blocking call.
    pub(super) fn are_blocking(&self) -> bool {
        self.entries.iter().any(|call| call.state == CallState::Open && call.behaviour == Behaviour::Blocking)
    }

    /// When the model speaks about the answers of the last message: at once if one asks for it, not at all if none does.
    pub(super) fn scheduling(&self) -> Scheduling {
        let last = self.entries.iter().rev().take(self.in_last_message);
        let wanted: Vec<_> = last
            .filter_map(|call| match (call.state, call.behaviour) {
                // It counts only for calls that did not block the model.
                (CallState::Answered(_), Behaviour::Blocking) => Some(Scheduling::WhenIdle),
                (CallState::Answered(scheduling), Behaviour::NonBlocking) => Some(scheduling),
                _ => None,
            })
            .collect();
        match () {
            () if wanted.contains(&Scheduling::Interrupt) => Scheduling::Interrupt,
            () if wanted.contains(&Scheduling::WhenIdle) || wanted.is_empty() => Scheduling::WhenIdle,
            () => Scheduling::Silent,
        }
    }
}

impl Session {
    pub(super) fn make_calls(
        &mut self,
        calls: Vec<ScriptedCall>,
        behaviour: Option<Behaviour>,
        with: &serde_json::Map<String, Value>,
    ) {
        self.calls.in_last_message = calls.len();
        let mut wire = Vec::new();
        for call in calls {
            let mut state = self.simulation.state();
            let id = match call.id {
                CallId::Fresh => Some(state.call_id()),
                CallId::Given(id) => Some(id),
                CallId::Missing => None,
            };
            let place = state.report.call(CallReport {
                id: id.clone(),
                name: call.name.clone(),
                args: call.args.clone().unwrap_or_default(),
                answers: Vec::new(),
                was_cancelled: false,
                connection: self.number,
            });
            drop(state);
            let mut fields = serde_json::Map::new();
            fields.extend(id.clone().map(|id| ("id".to_owned(), json!(id))));
            fields.insert("name".into(), json!(call.name));
            fields.extend(call.args.map(|args| ("args".to_owned(), args)));
            wire.push(Value::Object(fields));
            let behaviour = behaviour.unwrap_or_else(|| self.setup.behaviour(&call.name));
            let (name, state) = (call.name, CallState::Open);
            self.calls.entries.push(CallEntry { id, name, behaviour, state, place, response: None });
        }
        let spare = self.calls.entries.len().saturating_sub(MAX_CALLS);
        self.calls.entries.drain(..spare);
        self.send(&server_frame::tool_call(&wire, with));
    }

    /// Cancels these calls, or all that are open.
    pub(super) fn cancel_calls(&mut self, ids: Option<Vec<String>>) {
        let open = self.calls.entries.iter_mut().filter(|call| call.state == CallState::Open);
        let mut cancelled = Vec::new();
        for call in open {
            let matches = match (&ids, &call.id) {
                (None, _) => true,
                (Some(ids), Some(id)) => ids.contains(id),
                (Some(_), None) => false,
            };
            if !matches {
                continue;
            }
            call.state = CallState::Cancelled;
            cancelled.extend(call.id.clone());
            if let Some(place) = call.place {
                self.simulation.state().report.cancel(place);
            }
        }
        // Ids that are not open are sent too: a client must tolerate that.
        let ids = ids.unwrap_or(cancelled);
        if !ids.is_empty() {
            self.send(&server_frame::cancellation(&ids));
        }
    }

    pub(super) fn take_responses(&mut self, answers: Vec<FunctionResponse>, now: Instant) {
        for answer in answers {
            if let Err(fault) = self.take_response(answer) {
                self.fault(&fault);
                self.end(Output::Close(1007, fault));
                return;
            }
        }
        if !self.calls.are_open() && !self.waits_for_answers() {
            self.note_answers(self.calls.scheduling(), now);
        }
    }

    /// Calls that did not block the model have been answered.
    fn note_answers(&mut self, scheduling: Scheduling, now: Instant) {
        if scheduling == Scheduling::Interrupt && self.begins_with_answers() {
            self.interrupt();
        }
        match (scheduling, &self.turn) {
            (Scheduling::Silent, None) => self.offer_handle(now),
            (Scheduling::Silent, Some(_)) => {}
            (_, None) => self.begin_with_answers(now),
            (_, Some(_)) => self.calls.answers_are_due = true,
        }
    }

    /// An error closes the connection.
    fn take_response(&mut self, answer: FunctionResponse) -> Result<(), String> {
        let label = match (&answer.id, &answer.name) {
            (Some(id), _) => quote(id),
            (None, Some(name)) => format!("{} without id", quote(name)),
            (None, None) => return Err("an answer has neither id nor name".into()),
        };
        let matches = |call: &&mut CallEntry| match &answer.id {
            Some(id) => call.id.as_ref() == Some(id),
            None => call.id.is_none() && Some(&call.name) == answer.name.as_ref(),
        };
        let mut all: Vec<_> = self.calls.entries.iter_mut().filter(matches).collect();
        if all.is_empty() {
            return Err(format!("there is an answer to {label}, which this connection has not asked for"));
        }
        let open = all.iter().position(|call| call.state == CallState::Open);
        let call = all.swap_remove(open.unwrap_or(all.len() - 1));
        let mut faults = Vec::new();
        if answer.name.as_ref() != Some(&call.name) {
            faults.push(format!(
                "the answer to {label} does not carry the name of the call, {}",
                quote(&call.name)
            ));
        }
        let response = answer.response.unwrap_or_default();
        if !response.is_object() {
            faults.push(format!("the response to {label} is no object"));
        }
        match call.state {
            CallState::Open if !answer.will_continue => call.state = CallState::Answered(answer.scheduling),
            // The cancellation and the answer may have crossed.
            CallState::Open | CallState::Cancelled => {}
            CallState::Answered(_) => faults.push(format!("there is a second answer to {label}")),
        }
        call.response = Some(response.clone());
        let mut state = self.simulation.state();
        if let Some(place) = call.place {
            state.report.answer(place, response);
        }
        for fault in faults {
            state.report.fault(self.number, &fault);
        }
        Ok(())
    }

    /// Adds the results of the last calls to the conversation: all of them, in their order.
    pub(super) fn note_results(&mut self) {
        let asked = self.conversation.unanswered();
        let result = |(id, name): (Option<String>, String)| {
            let entry = self.calls.entries.iter().rev().find(|call| call.id == id && call.name == name);
            let response = entry
                .filter(|call| matches!(call.state, CallState::Answered(_)))
                .and_then(|call| call.response.as_ref());
            conversation::result(id, &name, response)
        };
        let results: Vec<_> = asked.into_iter().map(result).collect();
        if !results.is_empty() {
            self.conversation.push(ChatMessage::Tools { results });
        }
    }

    pub(super) fn report_open_calls(&mut self) {
        for call in self.calls.entries.iter().filter(|call| call.state == CallState::Open) {
            let id = call.id.as_deref().unwrap_or("no id");
            self.fault(&format!("the call to {} ({id}) has no answer", quote(&call.name)));
        }
    }
}
