//! A voice call as a state machine. It performs no I/O and reads no clock.
//!
//! The driver feeds it inputs, each with the time at which it came, and carries out the outputs in order before the next
//! input. The session that it asks is in memory and never waits. Audio goes from link to link past all this; the machine
//! is only asked whether a frame may pass ([`CallState::admit_model_audio`]) and keeps the last of what the user said
//! ([`CallState::on_client_audio`]).

mod asking;
mod calls;
mod client;
mod connection;
mod ending;
mod farewell;
mod from_client;
mod from_provider;
mod hearing;
mod input;
mod input_audio;
mod interruption;
mod notes;
mod output;
mod pending;
mod playback;
mod question;
mod receipts;
mod resemblance;
mod response_latency;
mod samples;
mod speech;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{Audio, LiveError, ToolError};
use quarterdeck_runtime::PendingEnd;
use tokio::time::Instant;

pub(super) use input::Input;
pub(super) use output::{CallIdentity, ClientOutput, Output, ProviderOutput, SpokenReply, SpokenTurn};
pub(super) use pending::RequestedCall;
pub(super) use playback::HeardPart;
pub(super) use question::SpokenQuestions;

use super::Settings;
use super::answers::AnswerId;
use super::journal::Journal;
use super::session::CallSession;
use client::ClientState;
use connection::ConnectionState;
use farewell::Farewell;
use hearing::Hearing;
use input_audio::InputAudioBuffer;
use notes::ModelNotes;
use pending::PendingCalls;
use question::Question;
use speech::Speech;

/// How often the machine wants to look at the time while something is under way, and while nothing is.
const BUSY_TICK: Duration = Duration::from_millis(250);
const IDLE_TICK: Duration = Duration::from_secs(1);

pub(super) struct CallState<S> {
    settings: Settings,
    session: S,
    journal: Journal,
    speech: Speech,
    hearing: Hearing,
    input_audio: InputAudioBuffer,
    pending: PendingCalls,
    question: Question,
    notes: ModelNotes,
    connection: ConnectionState,
    client: ClientState,
    farewell: Option<Farewell>,
    end: Option<CallEnd>,
    timing: Timing,
    outputs: VecDeque<Output>,
}

#[derive(Debug)]
struct Timing {
    /// When the present input came.
    now: Instant,
    started_at: Instant,
    next_tick: Instant,
    /// When every call must have ended, once the server is about to stop.
    stop_deadline: Option<Instant>,
}

/// Why a call is over.
#[derive(Debug, Clone)]
pub(super) enum CallEnd {
    /// The user, a tool or a limit has ended it, and its session.
    Ended(PendingEnd),
    /// The client has not come back. Its session can be resumed.
    ClientGone,
    /// The client has begun another call.
    Replaced,
    /// Another node continues it.
    HandedOver,
    ProviderUnreachable(LiveError),
    ServerStopping,
}

/// What a call starts with.
pub(super) struct CallStart {
    pub(super) settings: Settings,
    pub(super) model: Arc<str>,
    /// Whether the model takes from us when the user begins and stops to speak.
    pub(super) relies_on_ear: bool,
    pub(super) journal: Journal,
    pub(super) is_resumed: bool,
    /// What the user wants before they have said anything.
    pub(super) pending_request: Option<String>,
    /// How questions are asked by voice, where they are.
    pub(super) spoken: Option<SpokenQuestions>,
    /// When every call must have ended, if the server is about to stop already.
    pub(super) stop_deadline: Option<Instant>,
}

impl<S: CallSession> CallState<S> {
    /// Begins a call whose client is there and whose provider is being connected.
    pub(super) fn new(start: CallStart, session: S, now: Instant) -> Self {
        let CallStart {
            settings,
            model,
            relies_on_ear,
            journal,
            is_resumed,
            pending_request,
            spoken,
            stop_deadline,
        } = start;
        let hearing = Hearing::new(settings.ear, relies_on_ear);
        let timing = Timing { now, started_at: now, next_tick: now + BUSY_TICK, stop_deadline };
        let mut state = Self {
            settings,
            session,
            journal,
            speech: Speech::default(),
            hearing,
            input_audio: InputAudioBuffer::default(),
            pending: PendingCalls::default(),
            question: Question::new(spoken),
            notes: ModelNotes::default(),
            connection: ConnectionState::new(model),
            client: ClientState::new(is_resumed, now),
            farewell: None,
            end: None,
            timing,
            outputs: VecDeque::new(),
        };
        state.speech.follow(state.session.flags());
        if let Some(request) = pending_request {
            state.begin_turn();
            state.journal.add_user_text(&request);
        }
        state.connect_provider();
        state
    }

    /// Takes an input that came at `now`. After the end nothing is taken any more.
    pub(super) fn on(&mut self, input: Input<'_>, now: Instant) {
        if self.end.is_some() {
            return;
        }
        self.timing.now = now;
        match input {
            Input::Client(message) => self.on_client_message(message),
            Input::ClientAttached => self.attach_client(),
            Input::ClientLost => self.detach_client(),
            Input::Provider(event) => self.on_provider_event(event),
            Input::ProviderOpened => self.on_provider_opened(),
            Input::ProviderCaughtUp => self.greet_first(),
            Input::ProviderLost(error) => self.on_provider_lost(error),
            Input::ProviderUnreachable(error) => self.on_provider_unreachable(error),
            Input::ToolMessage(value) => self.send_client(ClientOutput::Message(value)),
            Input::Progress { call_id: id, text } => self.send_client(ClientOutput::Progress { id, text }),
            Input::Partial { call_id: id, response } => {
                self.send_client(ClientOutput::Partial { id, response });
            }
            Input::ConfirmationRequested { call_id, request } => self.request_confirmation(call_id, request),
            Input::LateAnswer { reason, answer } => self.on_late_answer(reason, answer),
            Input::SessionEnded(end) => self.end = Some(CallEnd::Ended(end)),
            Input::LongWait { calls } => self.fill_wait(&calls),
            Input::CallCompleted { call, answer, generation, is_last } => {
                self.on_call_completed(&call, answer, generation, is_last);
            }
            Input::ConfirmationResolved { token, answer } => self.on_confirmation_resolved(&token, answer),
            Input::QuestionSpoken { number } => self.on_question_spoken(number),
            Input::QuestionFailed { number } => self.on_question_failed(number),
            Input::AnswerTranscribed { number, transcript } => self.on_answer_transcribed(number, transcript),
            Input::HandedOver => self.end = Some(CallEnd::HandedOver),
            Input::SessionReplaced => self.end = Some(CallEnd::Replaced),
            Input::ServerStopping { deadline } => self.on_server_stopping(deadline),
            Input::BatchDone => self.send_notes(),
            Input::Tick => self.on_tick(),
        }
        self.advance_question();
    }

    pub(super) fn pop_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When the machine wants an [`Input::Tick`].
    pub(super) fn next_tick(&self) -> Instant {
        self.timing.next_tick
    }

    pub(super) fn is_ended(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn end(&self) -> Option<CallEnd> {
        self.end.clone()
    }

    /// Whether notes wait for an [`Input::BatchDone`].
    pub(super) fn has_notes(&self) -> bool {
        !self.notes.is_empty()
    }

    /// Counts provider connections that were accepted.
    pub(super) fn generation(&self) -> u64 {
        self.connection.generation
    }

    pub(super) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The journal as it is stored at the end, with the notes that the model was never told.
    pub(super) fn final_journal(&mut self) -> &Journal {
        if let Some(untold) = self.notes.take_untold() {
            self.journal.add_note(&untold);
        }
        &self.journal
    }

    /// Everything that was queued for the provider has been sent: these answers with it.
    pub(super) fn take_sent_answers(&mut self) -> impl Iterator<Item = AnswerId> {
        self.connection.unsent.drain(..)
    }

    /// Audio from the client. Returns whether the driver hands it on to the provider, before it carries out the outputs: a
    /// client that is blocked is not listened to, so that it cannot talk over the farewell.
    pub(super) fn on_client_audio(&mut self, audio: &Audio<'_>, now: Instant) -> bool {
        self.speech.mic_moved = true;
        if self.end.is_some() || self.is_blocked() {
            return false;
        }
        self.timing.now = now;
        self.input_audio.push(audio);
        self.speech.mic_is_on = true;
        let is_held = self.question.hear(audio);
        self.listen(audio);
        if self.question.is_active() {
            self.advance_question();
        }
        !is_held
    }

    /// Audio from the model. Returns whether the driver hands it on to the client.
    pub(super) fn admit_model_audio(&mut self, audio: &Audio<'_>, now: Instant) -> bool {
        let is_admitted = self.end.is_none() && self.speech.admit_audio(now) && self.client.is_connected;
        if is_admitted {
            self.timing.now = now;
            self.on_audio_over_question(audio);
            self.speech.playback.add(audio.samples_len(), now);
            self.hearing.add_playback(audio);
            let latency = self.hearing.latency.on_audio(now);
            self.report_latency(latency);
            self.farewell.iter_mut().for_each(Farewell::on_audio);
        }
        is_admitted
    }

    /// Hands over the audio that no provider has transcribed, the oldest first.
    pub(super) fn drain_input_audio(&mut self, to: impl FnMut(Audio<'_>)) {
        self.input_audio.drain(to);
    }

    fn push(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    /// Sends the client a message, now or when it is back.
    fn send_client(&mut self, message: ClientOutput) {
        match self.client.is_connected {
            true => self.push(Output::Client(message)),
            false => self.client.missed.push(message),
        }
    }

    fn send_error(&mut self, error: ToolError) {
        self.send_client(ClientOutput::Error(Box::new(error)));
    }

    /// Sends the provider something; `false` when it is not connected.
    fn send_provider(&mut self, message: ProviderOutput) -> bool {
        if self.connection.is_connected {
            self.push(Output::Provider(message));
        }
        self.connection.is_connected
    }

    /// The words of the present turn, before they are cut to what was heard.
    pub(super) fn spoken_turn(&self) -> SpokenTurn {
        let (user, answer) = (self.journal.user_text().trim(), self.journal.model_text().trim());
        SpokenTurn { turn: self.session.turn(), user: user.to_owned(), answer: answer.to_owned() }
    }

    fn record_turn(&mut self, turn: SpokenTurn) {
        if !turn.user.is_empty() || !turn.answer.is_empty() {
            self.push(Output::RecordTurn(turn));
        }
    }

    fn store_journal(&mut self) {
        self.push(Output::StoreJournal);
    }

    fn deliver(&mut self, answers: impl IntoIterator<Item = AnswerId>) {
        self.outputs.extend(answers.into_iter().map(Output::DeliverAnswer));
    }

    /// Something is under way that must be looked at soon.
    fn tick_soon(&mut self) {
        self.timing.next_tick = self.timing.next_tick.min(self.timing.now + BUSY_TICK);
    }

    /// Neither side is talking or about to, and no call is running.
    fn is_idle(&self) -> bool {
        self.speech.is_quiet() && self.pending.is_empty() && !self.hearing.hears_speech()
    }
}

#[cfg(test)]
mod tests;
