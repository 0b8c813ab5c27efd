//! How turns begin.

use std::time::Duration;

use quarterdeck_contracts::{ChatRequest, ToolUse};
use tokio::time::Instant;

use super::turn::Turn;
use super::{Errand, MOST_WAITING, Session};
use crate::live::declarations;
use crate::live::desk::Mind;
use crate::live::scenario::{Begins, Interruption, ScriptedTurn, Step, TurnEnd};
use crate::live::server_frame;

/// What may begin a turn.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Input {
    Speech(Duration),
    Text(String),
    /// The last words of the person, and whether they are new.
    Content {
        text: String,
        is_new: bool,
        /// Everything that the person says in it: what was asked may be followed by notes.
        all: String,
    },
}

impl Input {
    fn kind(&self) -> Begins {
        match self {
            Self::Speech(_) => Begins::Speech,
            Self::Text(_) => Begins::Text,
            Self::Content { .. } => Begins::Content,
        }
    }

    /// Where the words are looked for by which a turn is known.
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
    /// Takes an input: it begins a turn, now or when the present one is over.
    pub(super) fn take(&mut self, input: Input, now: Instant) {
        if self.may_interrupt() {
            self.interrupt();
        }
        if self.turn.is_none() {
            self.begin(input, now);
        } else if self.waiting.len() < MOST_WAITING {
            self.waiting.push_back(input);
        }
    }

    fn begin(&mut self, input: Input, now: Instant) {
        match self.desk.mind.clone() {
            Mind::Plays(scenario) => {
                let Some(turn) = scenario.turn(self.conversation.position) else { return };
                if !Self::is_meant(turn, &input) {
                    let (kind, wanted) = (input.kind().word(), turn.wanted());
                    let place = self.conversation.position + 1;
                    self.fault(&format!("{kind} begins no turn: turn {place} waits for {wanted}"));
                    return;
                }
                let heard = turn.heard.concat();
                let text = if heard.is_empty() { input.text() } else { &heard };
                self.conversation.say(text);
                self.play(turn, now);
                if let Input::Speech(_) = input {
                    self.transcribe(&turn.heard);
                }
            }
            Mind::Answers(_) => self.answer(input, now),
        }
    }

    /// Whether an input is what a turn waits for. What a client says again after it was cut off comes as content,
    /// whatever it was at first, so content begins any turn.
    fn is_meant(turn: &ScriptedTurn, input: &Input) -> bool {
        let kind = input.kind();
        let fits = [kind, Begins::Anything].contains(&turn.begins) || kind == Begins::Content;
        let is_written = matches!(turn.begins, Begins::Anything | Begins::Text | Begins::Content);
        let text = input.all().to_lowercase();
        let contains = turn.containing.as_ref().is_none_or(|wanted| text.contains(wanted));
        fits && (contains || !is_written || kind == Begins::Speech)
    }

    /// Begins a turn that needs nobody to say anything.
    pub(super) fn begin_by_itself(&mut self, now: Instant) {
        let Some(scenario) = self.desk.scenario().cloned() else { return };
        if let Some(turn) = scenario.turn(self.conversation.position).filter(|it| it.begins == Begins::Start)
        {
            self.play(turn, now);
        }
    }

    /// Calls that were left open have been answered, and nothing is going on.
    pub(super) fn answers_are_there(&mut self, now: Instant) {
        self.answers_are_due = false;
        if !self.begins_with_answers() {
            return self.offer_handle(now);
        }
        let scenario = self.desk.scenario().cloned();
        if let Some(turn) = scenario.as_ref().and_then(|it| it.turn(self.conversation.position)) {
            self.play(turn, now);
        }
    }

    /// Whether the next turn waits for answers.
    pub(super) fn begins_with_answers(&self) -> bool {
        let turn = self.desk.scenario().and_then(|it| it.turn(self.conversation.position));
        turn.is_some_and(|turn| turn.begins == Begins::Answers)
    }

    /// Begins what came while a turn was on.
    pub(super) fn begin_waiting(&mut self, now: Instant) -> bool {
        let Some(input) = self.waiting.pop_front() else { return false };
        self.begin(input, now);
        true
    }

    fn play(&mut self, scripted: &ScriptedTurn, now: Instant) {
        self.conversation.position += 1;
        let mut steps = scripted.steps.clone();
        match &scripted.end {
            TurnEnd::Complete(_) => steps.extend([Step::Generated, Step::Heard, Step::Complete]),
            TurnEnd::Never => steps.push(Step::Leave),
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
            // While the model speaks or waits for a call, nobody can go on from here.
            self.send(&server_frame::resumption(None));
        }
    }

    fn transcribe(&mut self, pieces: &[String]) {
        if !self.setup.transcribes_input {
            return;
        }
        for (at, piece) in pieces.iter().enumerate() {
            self.send(&server_frame::heard(piece, at + 1 == pieces.len()));
        }
    }

    /// The chat model answers what was written. Speech it cannot understand, and it says so.
    fn answer(&mut self, input: Input, now: Instant) {
        let is_new = !matches!(input, Input::Content { is_new: false, .. });
        if let Input::Speech(length) = input {
            let heard = format!("(speech, {:.1} s)", length.as_secs_f64());
            self.conversation.say(&heard);
            let apology = declarations::cannot_listen(self.conversation.speeches == 0);
            self.conversation.speeches += 1;
            let steps = vec![
                Step::Say { text: apology, audio: true, transcript: true },
                Step::Generated,
                Step::Heard,
                Step::Complete,
            ];
            self.start(Turn::new(steps, Interruption::Cancel, now));
            self.transcribe(&[heard]);
            return;
        }
        if is_new {
            self.conversation.say(input.text());
        }
        if !self.conversation.asks() {
            self.conversation.say("Go on.");
        }
        self.start(Turn::new(vec![Step::Ask], Interruption::Cancel, now));
    }

    /// What the chat model is asked, and that it is to be asked.
    pub(super) fn ask(&mut self) {
        let Mind::Answers(model) = &self.desk.mind else { return };
        self.errand = Some(Errand::Ask(ChatRequest {
            system: self.setup.system.as_str().into(),
            messages: self.conversation.messages(),
            tools: declarations::convert(&self.setup.declarations, model.declarations()).into(),
            tool_use: ToolUse::Allowed,
        }));
    }
}
