//! The calls of one connection, and what became of them.

use quarterdeck_contracts::ChatMessage;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Out, Session};
use crate::live::client_frame::{Answer, Scheduling, shown};
use crate::live::report::CallReport;
use crate::live::scenario::{Behaviour, CallId, ScriptedCall};
use crate::live::{conversation, server_frame};

/// How many calls of a connection are remembered.
const MOST_CALLS: usize = 1_024;

/// What a client is to answer.
#[derive(Debug, Default)]
pub(super) struct Calls {
    made: Vec<Made>,
}

#[derive(Debug)]
struct Made {
    id: Option<String>,
    name: String,
    behaviour: Behaviour,
    state: State,
    /// Where it stands in the report.
    place: Option<usize>,
    /// For the chat model.
    answer: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Answered(Scheduling),
    Cancelled,
}

impl Calls {
    pub(super) fn are_open(&self) -> bool {
        self.made.iter().any(|call| call.state == State::Open)
    }

    /// Whether the model waits for one.
    pub(super) fn block(&self) -> bool {
        self.made.iter().any(|call| call.state == State::Open && call.behaviour == Behaviour::Blocking)
    }

    /// How the last `count` answers want to be spoken of: at once, if one does; not at all, if none does.
    pub(super) fn scheduling(&self, count: usize) -> Scheduling {
        let last = self.made.iter().rev().take(count);
        let wanted: Vec<_> = last
            .filter_map(|call| match (call.state, call.behaviour) {
                // It counts only for calls that the model has not waited for.
                (State::Answered(_), Behaviour::Blocking) => Some(Scheduling::WhenIdle),
                (State::Answered(scheduling), Behaviour::NonBlocking) => Some(scheduling),
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
    /// Makes calls, in one message.
    pub(super) fn make_calls(
        &mut self,
        calls: Vec<ScriptedCall>,
        behaviour: Option<Behaviour>,
        with: &serde_json::Map<String, Value>,
    ) {
        self.calls_of_step = calls.len();
        let mut wire = Vec::new();
        for call in calls {
            let mut books = self.desk.books();
            let id = match call.id {
                CallId::Fresh => Some(books.call_id()),
                CallId::Given(id) => Some(id),
                CallId::Missing => None,
            };
            let place = books.report.call(CallReport {
                id: id.clone(),
                name: call.name.clone(),
                args: call.args.clone().unwrap_or_default(),
                answers: Vec::new(),
                was_cancelled: false,
                connection: self.number,
            });
            drop(books);
            let mut fields = serde_json::Map::new();
            fields.extend(id.clone().map(|id| ("id".to_owned(), json!(id))));
            fields.insert("name".into(), json!(call.name));
            fields.extend(call.args.map(|args| ("args".to_owned(), args)));
            wire.push(Value::Object(fields));
            let behaviour = behaviour.unwrap_or_else(|| self.setup.behaviour(&call.name));
            let (name, state) = (call.name, State::Open);
            self.calls.made.push(Made { id, name, behaviour, state, place, answer: None });
        }
        let spare = self.calls.made.len().saturating_sub(MOST_CALLS);
        self.calls.made.drain(..spare);
        self.send(&server_frame::tool_call(&wire, with));
    }

    /// Takes calls back: these, or all that are open.
    pub(super) fn cancel_calls(&mut self, ids: Option<Vec<String>>) {
        let open = self.calls.made.iter_mut().filter(|call| call.state == State::Open);
        let mut cancelled = Vec::new();
        for call in open {
            let is_meant = match (&ids, &call.id) {
                (None, _) => true,
                (Some(ids), Some(id)) => ids.contains(id),
                (Some(_), None) => false,
            };
            if !is_meant {
                continue;
            }
            call.state = State::Cancelled;
            cancelled.extend(call.id.clone());
            if let Some(place) = call.place {
                self.desk.books().report.cancel(place);
            }
        }
        // Ids that are not open are sent too: a client must bear that.
        let ids = ids.unwrap_or(cancelled);
        if !ids.is_empty() {
            self.send(&server_frame::cancellation(&ids));
        }
    }

    /// A client answers.
    pub(super) fn hear_answers(&mut self, answers: Vec<Answer>, now: Instant) {
        for answer in answers {
            if let Err(fault) = self.hear_answer(answer) {
                self.fault(&fault);
                self.end(Out::Close(1007, fault));
                return;
            }
        }
        if !self.calls.are_open() && !self.waits_for_answers() {
            self.take_note(self.calls.scheduling(self.calls_of_step), now);
        }
    }

    /// Calls that nobody has waited for have been answered.
    fn take_note(&mut self, scheduling: Scheduling, now: Instant) {
        if scheduling == Scheduling::Interrupt && self.begins_with_answers() {
            self.interrupt();
        }
        match (scheduling, &self.turn) {
            (Scheduling::Silent, None) => self.offer_handle(now),
            (Scheduling::Silent, Some(_)) => {}
            (_, None) => self.answers_are_there(now),
            (_, Some(_)) => self.answers_are_due = true,
        }
    }

    /// Takes one answer. An error is what the provider closes the connection for.
    fn hear_answer(&mut self, answer: Answer) -> Result<(), String> {
        let label = match (&answer.id, &answer.name) {
            (Some(id), _) => shown(id),
            (None, Some(name)) => format!("{} without id", shown(name)),
            (None, None) => return Err("an answer has neither id nor name".into()),
        };
        let is_meant = |call: &&mut Made| match &answer.id {
            Some(id) => call.id.as_ref() == Some(id),
            None => call.id.is_none() && Some(&call.name) == answer.name.as_ref(),
        };
        let mut all: Vec<_> = self.calls.made.iter_mut().filter(is_meant).collect();
        if all.is_empty() {
            return Err(format!("there is an answer to {label}, which this connection has not asked for"));
        }
        let open = all.iter().position(|call| call.state == State::Open);
        let call = all.swap_remove(open.unwrap_or(all.len() - 1));
        let mut faults = Vec::new();
        if answer.name.as_ref() != Some(&call.name) {
            faults.push(format!(
                "the answer to {label} does not carry the name of the call, {}",
                shown(&call.name)
            ));
        }
        let response = answer.response.unwrap_or_default();
        if !response.is_object() {
            faults.push(format!("the response to {label} is no object"));
        }
        match call.state {
            State::Open if !answer.will_continue => call.state = State::Answered(answer.scheduling),
            // The cancellation and the answer may have met on the way.
            State::Open | State::Cancelled => {}
            State::Answered(_) => faults.push(format!("there is a second answer to {label}")),
        }
        call.answer = Some(response.clone());
        let mut books = self.desk.books();
        if let Some(place) = call.place {
            books.report.answer(place, response);
        }
        for fault in faults {
            books.report.fault(self.number, &fault);
        }
        Ok(())
    }

    /// Tells the chat model what its last calls have come to: all of them, in their order.
    pub(super) fn note_results(&mut self) {
        let asked = self.conversation.unanswered();
        let result = |(id, name): (Option<String>, String)| {
            let made = self.calls.made.iter().rev().find(|call| call.id == id && call.name == name);
            let answer = made
                .filter(|call| matches!(call.state, State::Answered(_)))
                .and_then(|call| call.answer.as_ref());
            conversation::result(id, &name, answer)
        };
        let results: Vec<_> = asked.into_iter().map(result).collect();
        if !results.is_empty() {
            self.conversation.push(ChatMessage::Tools { results });
        }
    }

    /// The connection is over, and not because of us.
    pub(super) fn complain_about_open_calls(&mut self) {
        for call in self.calls.made.iter().filter(|call| call.state == State::Open) {
            let id = call.id.as_deref().unwrap_or("no id");
            self.fault(&format!("the call to {} ({id}) has no answer", shown(&call.name)));
        }
    }
}
