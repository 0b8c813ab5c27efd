//! What the model's provider sends, and what comes of it.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{
    CallArguments, ErrorType, LiveEvent, LiveInput, LiveResult, ModelCall, SideEffects, Speaker, ToolError,
    ToolResponse, TranscriptPiece, TranscriptStage,
};
use quarterdeck_runtime::Reply;
use serde_json::Value;
use tokio::time::Instant;

use super::call::Call;
use super::cuts::Cut;
use super::flights::{AskedCall, Landed};
use super::line::ServerMessage;
use super::speech::Owes;
use super::unavailable;
use crate::{describe, note};

/// How long a connection is taken to last when a provider does not say.
const USUALLY_LEFT: Duration = Duration::from_secs(10);
/// No connection lasts longer than this, whatever a provider says.
const LONGEST_LEFT: Duration = Duration::from_secs(3_600);

impl Call {
    /// Looks at everything that has arrived from the model.
    pub(super) fn hear_model(&mut self) {
        loop {
            let Some(live) = self.upstream.live() else { return };
            let event = match live.next() {
                None => return,
                Some(LiveEvent::Audio(audio)) => {
                    // What still comes of an answer that was cut off is nobody's.
                    if self.speech.cuts.swallows() {
                        continue;
                    }
                    self.speech.answering();
                    if self.speech.lets_audio_through()
                        && let Some(line) = &mut self.line
                    {
                        self.speech.sent(audio.samples_len());
                        line.send(ServerMessage::Audio(audio));
                    }
                    continue;
                }
                Some(event) => event.into_owned(),
            };
            self.model_says(event);
        }
    }

    fn model_says(&mut self, event: LiveEvent<'static>) {
        match event {
            LiveEvent::Calls(calls) => self.run_calls(calls),
            LiveEvent::CallsCancelled(ids) => {
                self.flights.cancel(&ids);
                self.session.cancel(&ids.iter().map(String::as_str).collect::<Vec<_>>());
            }
            LiveEvent::InputTranscript(words) => self.heard(&words),
            LiveEvent::OutputTranscript(words) => self.said(&words),
            LiveEvent::SpeechStarted => {
                self.speech.signalled();
                self.sign_of_input();
            }
            LiveEvent::Interrupted { end_follows } => self.interrupted(end_follows),
            LiveEvent::GenerationComplete => self.journal.answered(),
            LiveEvent::TurnComplete { more_follows: false } => self.turn_complete(),
            LiveEvent::TurnComplete { more_follows: true } => self.speech.pauses(),
            LiveEvent::ResponseFailed => {
                let message = "The model could not answer that. Please say it again.";
                self.tell(ServerMessage::Error(&ToolError { retryable: true, ..unavailable(message) }));
            }
            LiveEvent::GoingAway { left } => {
                let left = left.unwrap_or(USUALLY_LEFT).min(LONGEST_LEFT);
                tracing::info!(
                    session = self.session.id(),
                    left_ms = left.as_millis() as u64,
                    "the model goes away"
                );
                self.upstream.leaves(Instant::now() + left);
                self.hurry();
            }
            LiveEvent::ResumptionHandle(Some(handle)) => {
                let by = self.upstream.name().to_owned();
                self.journal.resumable(&by, handle);
                self.forgettable.clear();
                self.keep_journal();
            }
            LiveEvent::Warning(what) => {
                tracing::warn!(
                    session = self.session.id(),
                    model = self.upstream.name(),
                    what,
                    "trouble with the model"
                );
            }
            LiveEvent::Usage(usage) => {
                let (system, tools) = (self.brief.system_tokens as u64, self.brief.tool_tokens as u64);
                let used = usage.input_tokens + usage.output_tokens;
                self.agent.orchestrator.metrics().context(system, tools, used, self.agent.model.window());
            }
            // Without a handle the older one stays as good as it was.
            LiveEvent::ResumptionHandle(None) => {}
            // Audio is handed on where it comes in; what else there may be one day says nothing yet.
            _ => {}
        }
    }

    /// What the person said, as far as it was understood.
    fn heard(&mut self, words: &TranscriptPiece<'_>) {
        if words.text.is_empty() {
            return;
        }
        if !self.speech.is_turn_open && self.speech.is_signalled {
            // Nobody has begun to speak since the turn was over, so these are words of that turn.
            if words.stage != TranscriptStage::Interim {
                self.journal.heard_late(&words.text);
                self.echo.clear();
            }
            return self.show(Speaker::User, words, true);
        }
        self.sign_of_input();
        self.journal.heard(&words.text, words.stage);
        // The words stand for the audio now.
        if words.stage != TranscriptStage::Interim {
            self.echo.clear();
        }
        self.show(Speaker::User, words, false);
        if words.stage == TranscriptStage::Final {
            self.keep_journal();
        }
    }

    fn said(&mut self, words: &TranscriptPiece<'_>) {
        if self.speech.cuts.swallows_words(self.speech.owes_words()) {
            return;
        }
        self.speech.answering();
        self.journal.said(&words.text);
        self.show(Speaker::Model, words, false);
    }

    fn show(&mut self, by: Speaker, words: &TranscriptPiece<'_>, is_late: bool) {
        if self.speech.hides_transcript || words.text.is_empty() {
            return;
        }
        let is_final = words.stage != TranscriptStage::Interim;
        self.tell(ServerMessage::Transcript { by, text: &words.text, is_final, is_late });
    }

    /// The person has barged in.
    fn interrupted(&mut self, end_follows: bool) {
        match self.speech.interrupted(end_follows) {
            Cut::Known => {}
            Cut::Older if self.speech.is_answering => {
                self.silence();
                self.journal.unsay();
                self.speech.awaits_again();
            }
            Cut::Older => {}
            Cut::Present => {
                let was_spoken_into = self.speech.cuts.was_spoken_into();
                self.cut_off();
                if was_spoken_into {
                    self.sign_of_input();
                }
            }
        }
    }

    pub(super) fn turn_complete(&mut self) {
        // What was cut off is over already; by now the person may have begun another turn.
        if self.speech.is_cut_end() {
            return;
        }
        self.upstream.settled();
        self.session.complete_turn();
        if self.journal.is_answered() {
            // What was said of it is told again wherever the call goes on, so who asks for the same again means it.
            self.forgettable.clear();
        }
        self.journal.turn_over();
        self.echo.clear();
        self.speech.turn_over();
        self.tell(ServerMessage::TurnComplete);
        self.keep_journal();
        self.end_if_heard();
    }

    /// Hands the calls of a message to the orchestrator.
    fn run_calls(&mut self, calls: Vec<ModelCall>) {
        if self.speech.cuts.swallows() {
            return self.take_back(&calls);
        }
        self.speech.called();
        let (mut asked, mut submitted) = (Vec::new(), Vec::new());
        let count = calls.len();
        for (place, call) in calls.into_iter().enumerate() {
            let given = call.id.clone().filter(|id| !id.is_empty());
            // A name and a number are no id that anybody relies on, but the page can tell calls apart by it.
            let shown = given.clone().unwrap_or_else(|| {
                self.nameless += 1;
                format!("{}-{}", call.name, self.nameless)
            });
            let args = match &call.arguments {
                CallArguments::Json(value) => value.clone(),
                // The first gate refuses what is no object and says so.
                CallArguments::Broken(text) => Value::String(text.clone()),
            };
            self.tell(ServerMessage::ToolCall { id: &shown, name: &call.name, args: &args });
            let id = Some(shown.clone());
            let of = Arc::new(AskedCall { id: given, name: call.name.clone(), shown });
            if self.brief.describes && call.name == describe::NAME {
                let now = self.agent.orchestrator.now();
                let response = describe::answer(&self.session, &call, &mut self.described, now);
                self.tell(ServerMessage::ToolResult { id: &of.shown, response: &response, gates: None });
                self.answer(&of, &response, false, place + 1 == count && submitted.is_empty());
            } else {
                let made = quarterdeck_runtime::Call { id, name: call.name, args };
                submitted.push(made);
                asked.push(of);
            }
        }
        if !submitted.is_empty() {
            let batch = self.connection.submit(submitted);
            self.flights.add(batch, asked, self.upstream.generation());
            self.hurry();
        }
    }

    /// Calls of an answer that the person has cut off do not begin.
    fn take_back(&mut self, calls: &[ModelCall]) {
        for (place, call) in calls.iter().enumerate() {
            let error = ToolError::new(ErrorType::Cancelled, "The person has interrupted. Nothing was done.");
            let now = self.agent.orchestrator.now();
            let response = self.session.snapshot().refuse(&call.name, error, now);
            let (id, name) = (call.id.as_deref().filter(|id| !id.is_empty()), call.name.as_str());
            let is_last = place + 1 == calls.len();
            let result = LiveResult { id, name, response: &response, is_silent: true, is_last };
            self.upstream.send(LiveInput::Result(result));
            tracing::info!(session = self.session.id(), tool = name, "a call was cut off before it began");
        }
    }

    /// A call has its answer, which goes to the connection that asked and to no other.
    pub(super) fn landed(&mut self, landed: Landed) {
        self.hand_back(landed);
        // An end that was asked for may have waited for nothing but this.
        if self.awaits_farewell() && self.speech.is_silent() {
            self.end_if_heard();
        }
    }

    fn hand_back(&mut self, landed: Landed) {
        let Landed { call, reply, generation, is_last } = landed;
        let Reply::Answer(answer) = reply else {
            // In speech nobody waits for a person: the call is answered first and decided later.
            tracing::error!(
                session = self.session.id(),
                tool = call.name,
                "a spoken call waits for a person"
            );
            return;
        };
        self.follow_state();
        // Of what was cut off the session tells the person itself, perhaps before it lands.
        if answer.is_wanted || !self.shown.has(&answer.call_id) {
            self.shown.add(&answer.call_id);
            let gates = answer.trace.as_ref();
            self.tell(ServerMessage::ToolResult { id: &call.shown, response: &answer.response, gates });
        }
        let is_asked_here = generation == self.upstream.generation() && self.upstream.is_connected();
        if !is_asked_here || self.flights.was_cancelled(&call) {
            // Dropping it hands it back: what the model should know of it comes as a note.
            return;
        }
        self.answer(&call, &answer.response, !answer.is_wanted, is_last);
        let writes = self
            .session
            .snapshot()
            .find(&call.name)
            .is_some_and(|tool| tool.metadata().side_effects == SideEffects::Writes);
        if let Some(done) = note::completed_write_note(&call.name, &answer.response).filter(|_| writes) {
            self.journal.done(done);
        }
        self.unsent.push(answer);
    }

    fn answer(&mut self, call: &AskedCall, response: &ToolResponse, is_silent: bool, is_last: bool) {
        let (id, name) = (call.id.as_deref(), call.name.as_str());
        self.notes.answered(name, response);
        if !is_silent && is_last {
            self.speech.resulted();
        }
        self.upstream.send(LiveInput::Result(LiveResult { id, name, response, is_silent, is_last }));
    }

    /// Tells the model what it must know, in a pause: in the middle of a turn it would be cut off by it.
    pub(super) fn send_notes(&mut self) {
        let can_listen = self.upstream.is_connected() && !self.upstream.is_connecting();
        if self.notes.is_empty() || !can_listen || !self.is_idle() {
            return;
        }
        let (_, last) = self.notes.texts();
        let Some(text) = self.notes.told(last) else { return };
        if self.upstream.send(LiveInput::Note { text: &text, asks: true }) {
            self.speech.owes = Owes::Words;
        }
        self.journal.noted(&text);
    }

    /// Takes over what tools have asked for.
    pub(super) fn follow_state(&mut self) {
        let state = self.session.state();
        self.speech.follow(&state);
        if state.pending_end_voice_session.is_some() && !self.awaits_farewell() {
            self.end_is_asked();
        }
    }
}
