//! What starts a turn.

use std::time::Duration;

use quarterdeck_contracts::{ChatRequest, ToolUse};
use tokio::time::Instant;

use super::turn::Turn;
use super::{MAX_PENDING_INPUTS, Session, Task};
use crate::live::declarations;
use crate::live::scenario::{Interruption, ScriptedTurn, Step, TurnEnd, TurnTrigger};
use crate::live::server_frame;
use crate::live::simulation::ReplySource;

/// What may begin a turn.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Input {
    Speech(Duration),
    Text(String),
    /// The last text of the user, and whether it is new.
    Content {
        text: String,
        is_new: bool,
        /// All texts of the user in it: a question may be followed by notes.
        all: String,
    },
}

impl Input {
    fn kind(&self) -> TurnTrigger {
        match self {
            Self::Speech(_) => TurnTrigger::Speech,
            Self::Text(_) => TurnTrigger::Text,
            Self::Content { .. } => TurnTrigger::Content,
        }
    }

    /// What `containing` is looked for in.
    fn all(&self) -> &str {
        match self {
            Self::Content { all, .. } => all,
            other => other.text(),
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Speech(_) => "",
            Self::Text(text) | Self::Content { text, .. } => text,
        }
    }
}

impl Session {
    /// Starts a turn, now or when the present one has ended.
    pub(super) fn take(&mut self, input: Input, now: Instant) {
        if self.may_interrupt() {
            self.interrupt();
        }
        if self.turn.is_none() {
            self.begin(input, now);
        } else if self.pending_inputs.len() < MAX_PENDING_INPUTS {
            self.pending_inputs.push_back(input);
        }
    }

    fn begin(&mut self, input: Input, now: Instant) {
        match self.simulation.source.clone() {
            ReplySource::Scenario(scenario) => {
                let Some(turn) = scenario.turn(self.conversation.position) else { return };
                if !Self::matches(turn, &input) {
                    let (kind, wanted) = (input.kind().word(), turn.describe_trigger());
                    let place = self.conversation.position + 1;
                    self.fault(&format!("{kind} begins no turn: turn {place} waits for {wanted}"));
                    return;
                }
                let heard = turn.heard.concat();
                let text = if heard.is_empty() { input.text() } else { &heard };
                self.conversation.add_user(text);
                self.play(turn, now);
                if let Input::Speech(_) = input {
                    self.transcribe(&turn.heard);
                }
            }
            ReplySource::ChatModel(_) => self.answer(input, now),
        }
    }

    /// Whether an input is what a turn waits for. A client that reconnects repeats speech as content, so
    /// content starts any turn.
    fn matches(turn: &ScriptedTurn, input: &Input) -> bool {
        let kind = input.kind();
        let fits = [kind, TurnTrigger::Anything].contains(&turn.trigger) || kind == TurnTrigger::Content;
        let is_written =
            matches!(turn.trigger, TurnTrigger::Anything | TurnTrigger::Text | TurnTrigger::Content);
        let text = input.all().to_lowercase();
        let contains = turn.containing.as_ref().is_none_or(|wanted| text.contains(wanted));
        fits && (contains || !is_written || kind == TurnTrigger::Speech)
    }

    /// Starts a turn that waits for no input.
    pub(super) fn begin_unprompted(&mut self, now: Instant) {
        let Some(scenario) = self.simulation.scenario().cloned() else { return };
        if let Some(turn) =
            scenario.turn(self.conversation.position).filter(|it| it.trigger == TurnTrigger::Start)
        {
            self.play(turn, now);
        }
    }

    /// Open calls have been answered, and no turn is active.
    pub(super) fn begin_with_answers(&mut self, now: Instant) {
        self.calls.answers_are_due = false;
        if !self.begins_with_answers() {
            return self.offer_handle(now);
        }
        let scenario = self.simulation.scenario().cloned();
        if let Some(turn) = scenario.as_ref().and_then(|it| it.turn(self.conversation.position)) {
            self.play(turn, now);
        }
    }

    /// Whether the next turn waits for answers.
    pub(super) fn begins_with_answers(&self) -> bool {
        let turn = self.simulation.scenario().and_then(|it| it.turn(self.conversation.position));
        turn.is_some_and(|turn| turn.trigger == TurnTrigger::Answers)
    }

    /// Starts a turn with input that came during the last one.
    pub(super) fn begin_pending(&mut self, now: Instant) -> bool {
        let Some(input) = self.pending_inputs.pop_front() else { return false };
        self.begin(input, now);
        true
    }

    fn play(&mut self, scripted: &ScriptedTurn, now: Instant) {
        self.conversation.position += 1;
        let mut steps = scripted.steps.clone();
        match &scripted.end {
            TurnEnd::Complete(_) => {
                steps.extend([Step::GenerationComplete, Step::WaitForPlayback, Step::Complete])
            }
            TurnEnd::Never => steps.push(Step::EndSilently),
        }
        let mut turn = Turn::new(steps, scripted.interruption, now);
        if let TurnEnd::Complete(beside) = &scripted.end {
            turn.beside = beside.clone();
        }
        self.start(turn);
    }

    fn start(&mut self, turn: Turn) {
        self.turn = Some(turn);
        if self.setup.resumption.is_some() {
            // A conversation cannot be resumed in the middle of a turn.
            self.send(&server_frame::resumption(None));
        }
    }

    fn transcribe(&mut self, pieces: &[String]) {
        if !self.setup.transcribes_input {
            return;
        }
        for (at, piece) in pieces.iter().enumerate() {
            self.send(&server_frame::input_transcription(piece, at + 1 == pieces.len()));
        }
    }

    /// Asks the chat model. Speech is answered with an apology, since there is no recognition.
    fn answer(&mut self, input: Input, now: Instant) {
        let is_new = !matches!(input, Input::Content { is_new: false, .. });
        if let Input::Speech(length) = input {
            let heard = format!("(speech, {:.1} s)", length.as_secs_f64());
            self.conversation.add_user(&heard);
            let apology = no_speech_recognition(self.conversation.speeches == 0);
            self.conversation.speeches += 1;
            let steps = vec![
                Step::Say { text: apology, audio: true, transcript: true },
                Step::GenerationComplete,
                Step::WaitForPlayback,
                Step::Complete,
            ];
            self.start(Turn::new(steps, Interruption::Cancel, now));
            self.transcribe(&[heard]);
            return;
        }
        if is_new {
            self.conversation.add_user(input.text());
        }
        if !self.conversation.needs_reply() {
            self.conversation.add_user("Go on.");
        }
        self.start(Turn::new(vec![Step::Ask], Interruption::Cancel, now));
    }

    pub(super) fn ask(&mut self) {
        self.task = Some(Task::Ask(ChatRequest {
            system: self.setup.system.as_str().into(),
            messages: self.conversation.messages(),
            tools: declarations::to_functions(&self.setup.declarations).into(),
            tool_use: ToolUse::Allowed,
            span: None,
        }));
    }
}

/// What is said instead of an answer to speech.
fn no_speech_recognition(is_first: bool) -> String {
    let honest = "I heard you, but this is a simulator without speech recognition, so please type.";
    match is_first {
        true => format!("{honest} Typing works as it always does: try “What can you do?”."),
        false => honest.to_owned(),
    }
}
