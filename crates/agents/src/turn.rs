//! One turn of a written conversation: its messages, and what it needs done next.
//!
//! A turn performs no I/O and never waits. It names the next step, a driver does it and reports the outcome. So a turn
//! is tested without a runtime, and one that waits for a confirmation can be stored and resumed elsewhere, days later.

use std::sync::Arc;

use quarterdeck_contracts::{
    CallResult, ChatMessage, Finish, ModelCall, ModelMessage, ModelPart, ModelReply, PartContent,
    ToolResponse, ToolUse, Usage,
};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    /// How the ids begin that we give to calls which came without a usable one.
    prefix: String,
    messages: Vec<ChatMessage>,
    state: State,
    rounds: u32,
    most_rounds: u32,
    usage: Usage,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Ask the model, with the conversation and this turn's messages.
    AskModel(ToolUse),
    /// Run these calls, which belong to one message. Each is answered by its place.
    RunCalls(Vec<TurnCall>),
    /// Wait for confirmations. The turn is suspended until every one is resolved.
    AwaitConfirmation,
    Finish(Ending),
}

/// A call under an id that no other call of the turn has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnCall {
    /// The provider's id where that will do, and ours where it will not.
    pub id: String,
    /// The call as the model made it.
    pub call: ModelCall,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    Answered,
    /// Its answer was cut at the largest length.
    Cut,
    /// The provider held the answer back.
    Filtered,
    /// The model had nothing to say.
    Empty,
    Aborted,
    /// The model failed, or the conversation was ended by a tool.
    Failed,
    Closed,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Asking,
    Calling(Vec<Slot>),
    Over(Ending),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Slot {
    shown: TurnCall,
    outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Open,
    Asked,
    Is(Arc<ToolResponse>),
}

impl Turn {
    /// Begins with the user's message. `prefix` makes our ids unlike those of every other turn.
    pub fn begin(text: String, prefix: String, most_rounds: u32) -> Self {
        Self {
            prefix,
            messages: vec![ChatMessage::User { text }],
            state: State::Asking,
            rounds: 0,
            most_rounds: most_rounds.max(1),
            usage: Usage::default(),
        }
    }

    pub fn next(&self) -> Step {
        match &self.state {
            // The last round must end in text, so that the user always gets an answer.
            State::Asking if self.is_last_round() => Step::AskModel(ToolUse::Off),
            State::Asking => Step::AskModel(ToolUse::Allowed),
            State::Calling(slots) => {
                let open = slots.iter().any(|slot| slot.outcome == Outcome::Open);
                if !open {
                    return Step::AwaitConfirmation;
                }
                Step::RunCalls(slots.iter().map(|slot| slot.shown.clone()).collect())
            }
            State::Over(ending) => Step::Finish(ending.clone()),
        }
    }

    /// What the conversation has gained by it, complete up to a message whose calls are not all answered.
    pub fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }

    pub fn usage(&self) -> Usage {
        self.usage
    }

    pub fn is_suspended(&self) -> bool {
        self.next() == Step::AwaitConfirmation
    }

    pub fn ending(&self) -> Option<&Ending> {
        match &self.state {
            State::Over(ending) => Some(ending),
            _ => None,
        }
    }

    /// The ids of the calls that wait for a confirmation.
    pub fn unresolved(&self) -> impl Iterator<Item = &str> {
        self.unresolved_calls().map(|(id, _)| id)
    }

    /// The same, with their tools.
    pub fn unresolved_calls(&self) -> impl Iterator<Item = (&str, &str)> {
        let slots = match &self.state {
            State::Calling(slots) => slots.as_slice(),
            _ => &[],
        };
        let asked = slots.iter().filter(|slot| slot.outcome == Outcome::Asked);
        asked.map(|slot| (slot.shown.id.as_str(), slot.shown.call.name.as_str()))
    }

    /// What the calls of the last message have come to so far.
    pub fn last_answers(&self) -> Vec<(String, Arc<ToolResponse>)> {
        let mut answers = Vec::new();
        for event in self.events() {
            match event {
                TurnEvent::Round => answers.clear(),
                TurnEvent::Answer(id, response) => answers.push((id, response.clone())),
                _ => {}
            }
        }
        answers
    }

    /// What the open calls have come to so far: `None` for those that have no answer.
    fn outcomes(&self) -> impl Iterator<Item = (&TurnCall, Option<&Arc<ToolResponse>>)> {
        let slots = match &self.state {
            State::Calling(slots) => slots.as_slice(),
            _ => &[],
        };
        slots.iter().map(|slot| match &slot.outcome {
            Outcome::Is(response) => (&slot.shown, Some(response)),
            _ => (&slot.shown, None),
        })
    }

    /// Adds a note for the model. Has no effect unless the model is asked next. What the user wrote stays the last word: a
    /// note behind it would be answered in its place.
    pub fn add_note(&mut self, note: String) {
        if self.state != State::Asking {
            return;
        }
        match self.messages.last_mut() {
            Some(ChatMessage::User { text }) => *text = format!("{note}\n\n{text}"),
            _ => self.messages.push(ChatMessage::User { text: note }),
        }
    }

    pub fn apply_reply(&mut self, reply: ModelReply) {
        let is_last = self.is_last_round();
        self.rounds += 1;
        self.usage += reply.usage;
        let mut message = reply.message;
        if is_last {
            // They would get no answer, and providers reject a conversation with an unanswered call.
            message.parts.retain(|part| !matches!(part.content, PartContent::Call(_)));
        }
        let slots = self.slots(&message);
        if !message.parts.is_empty() {
            self.messages.push(ChatMessage::Model(message));
        }
        // Text that came before a call is an answer too.
        let has_text =
            self.events().any(|event| matches!(event, TurnEvent::Text(text) if !text.trim().is_empty()));
        self.state = match (slots.is_empty(), reply.finish) {
            (false, _) => State::Calling(slots),
            (true, Finish::Filtered) => State::Over(Ending::Filtered),
            (true, _) if !has_text => State::Over(Ending::Empty),
            (true, Finish::Length) => State::Over(Ending::Cut),
            (true, _) => State::Over(Ending::Answered),
        };
    }

    /// The call at this index has its answer.
    pub fn record_answer(&mut self, place: usize, response: Arc<ToolResponse>) {
        if let State::Calling(slots) = &mut self.state
            && let Some(slot) = slots.get_mut(place)
        {
            slot.outcome = Outcome::Is(response);
        }
        self.advance();
    }

    /// The call at this index waits for a confirmation.
    pub fn await_confirmation(&mut self, place: usize) {
        if let State::Calling(slots) = &mut self.state
            && let Some(slot) = slots.get_mut(place)
            && slot.outcome == Outcome::Open
        {
            slot.outcome = Outcome::Asked;
        }
    }

    /// A confirmation is resolved, or was answered in another way. `false` when the call does not wait for it.
    pub fn resolve(&mut self, id: &str, response: Arc<ToolResponse>) -> bool {
        let State::Calling(slots) = &mut self.state else { return false };
        let slot = slots.iter_mut().find(|slot| slot.shown.id == id && slot.outcome == Outcome::Asked);
        let Some(slot) = slot else { return false };
        slot.outcome = Outcome::Is(response);
        self.advance();
        true
    }

    /// Ends the turn early. Its messages stay, and calls without an answer get one, so that the conversation can continue.
    pub fn stop(
        &mut self,
        said: Option<ModelMessage>,
        ending: Ending,
        unanswered: impl Fn(&str) -> Arc<ToolResponse>,
    ) {
        if let State::Calling(slots) = &mut self.state {
            for slot in slots.iter_mut().filter(|slot| !matches!(slot.outcome, Outcome::Is(_))) {
                slot.outcome = Outcome::Is(unanswered(&slot.shown.call.name));
            }
            self.advance();
        }
        if let Some(said) = said.filter(|said| !said.text().is_empty()) {
            self.messages.push(ChatMessage::Model(said));
        }
        self.state = State::Over(ending);
    }

    /// Drops the text, for a caller that only has to know what was done. An answer without its text counts as cut.
    pub fn drop_text(&mut self) {
        for message in &mut self.messages {
            match message {
                ChatMessage::User { text } => *text = String::new(),
                ChatMessage::Model(message) => {
                    message.parts.retain(|part| matches!(part.content, PartContent::Call(_)));
                }
                ChatMessage::Tools { .. } => {}
            }
        }
        if self.state == State::Over(Ending::Answered) {
            self.state = State::Over(Ending::Cut);
        }
    }

    fn is_last_round(&self) -> bool {
        self.rounds + 1 >= self.most_rounds
    }

    /// Once every call is answered, the model is asked again.
    fn advance(&mut self) {
        let State::Calling(slots) = &self.state else { return };
        let results: Option<Vec<_>> = slots
            .iter()
            .map(|slot| match &slot.outcome {
                Outcome::Is(response) => Some(CallResult {
                    id: slot.shown.call.id.clone(),
                    name: slot.shown.call.name.clone(),
                    response: response.clone(),
                }),
                _ => None,
            })
            .collect();
        if let Some(results) = results {
            self.messages.push(ChatMessage::Tools { results });
            self.state = State::Asking;
        }
    }

    fn slots(&self, message: &ModelMessage) -> Vec<Slot> {
        let mut taken: Vec<String> = self.events().filter_map(TurnEvent::into_id).collect();
        let shown = identify_calls(&self.prefix, self.rounds, message, &mut taken);
        shown.into_iter().map(|shown| Slot { shown, outcome: Outcome::Open }).collect()
    }

    /// Everything that has happened, in order.
    pub fn events(&self) -> impl Iterator<Item = TurnEvent<'_>> {
        let mut events = Vec::new();
        let mut taken = Vec::new();
        let mut calls: Vec<TurnCall> = Vec::new();
        let mut round = 0;
        for message in &self.messages {
            match message {
                ChatMessage::User { .. } => {}
                ChatMessage::Model(message) => {
                    round += 1;
                    events.push(TurnEvent::Round);
                    calls = identify_calls(&self.prefix, round, message, &mut taken);
                    let mut shown = calls.iter();
                    for part in &message.parts {
                        match &part.content {
                            PartContent::Text(text) if !text.is_empty() => events.push(TurnEvent::Text(text)),
                            PartContent::Call(_) => events.extend(shown.next().cloned().map(TurnEvent::Call)),
                            _ => {}
                        }
                    }
                }
                ChatMessage::Tools { results } => {
                    let answers = calls.drain(..).zip(results);
                    events.extend(answers.map(|(call, result)| TurnEvent::Answer(call.id, &result.response)));
                }
            }
        }
        let open = self.outcomes().filter_map(|(call, response)| Some((call.id.clone(), response?)));
        events.extend(open.map(|(id, response)| TurnEvent::Answer(id, response)));
        events.into_iter()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum TurnEvent<'a> {
    /// A request to the model.
    Round,
    /// Text of the model.
    Text(&'a str),
    Call(TurnCall),
    Answer(String, &'a Arc<ToolResponse>),
}

impl TurnEvent<'_> {
    fn into_id(self) -> Option<String> {
        match self {
            Self::Call(call) => Some(call.id),
            _ => None,
        }
    }
}

/// The calls of a message under ids that are not taken.
fn identify_calls(
    prefix: &str,
    round: u32,
    message: &ModelMessage,
    taken: &mut Vec<String>,
) -> Vec<TurnCall> {
    let shown = message.calls().enumerate().map(|(place, call)| {
        let given = call.id.clone().filter(|id| !id.is_empty() && !taken.contains(id));
        let id = given.unwrap_or_else(|| format!("{prefix}_{round}_{place}"));
        taken.push(id.clone());
        TurnCall { id, call: call.clone() }
    });
    shown.collect()
}

/// A model message with nothing but text.
pub fn text_message(by: &str, text: impl Into<String>) -> ModelMessage {
    ModelMessage { by: by.to_owned(), parts: vec![ModelPart::new(PartContent::Text(text.into()))] }
}
