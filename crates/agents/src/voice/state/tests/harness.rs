//! A driver for the machine that writes down what goes in and out.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use quarterdeck_contracts::{
    Audio, CallArguments, ConfirmationAnswer, HandlerAnswer, LiveError, LiveErrorKind, LiveEvent, Meta,
    ModelCall, Outcome, Speaker, ToolError, ToolResponse, TranscriptPiece, TranscriptStage,
};
use quarterdeck_runtime::{DeliveryReason, HeardReceipt, PendingEnd};
use quarterdeck_testkit::sound::speech;
use serde_json::json;
use tokio::time::Instant;

use crate::voice::Settings;
use crate::voice::answers::{AnswerId, ReceivedAnswer};
use crate::voice::journal::{ContextReplay, Journal};
use crate::voice::link::ClientMessage;
use crate::voice::session::{CallSession, RequestedEnd, SessionFlags};
use crate::voice::state::{
    CallStart, CallState, ClientOutput, Input, Output, ProviderOutput, RequestedCall, SpokenQuestions,
    SpokenReply,
};

/// A session that does what a test wants.
#[derive(Default)]
pub(super) struct FakeSession {
    pub(super) end: Option<PendingEnd>,
    /// Notes that the session gives at the beginning of the next turn.
    pub(super) notes: Vec<String>,
    /// The user's words of this turn.
    pub(super) user_words: String,
    turn: u64,
}

impl CallSession for FakeSession {
    fn begin_turn(&mut self) -> Vec<String> {
        self.turn += 1;
        self.user_words.clear();
        std::mem::take(&mut self.notes)
    }

    fn turn(&self) -> u64 {
        self.turn
    }

    fn add_user_words(&mut self, words: &str) {
        self.user_words.push_str(words);
    }

    fn interrupt(&mut self) {
        self.end.take_if(|end| !end.is_block());
    }

    fn complete_turn(&mut self) {}

    fn take_end(&mut self) -> Option<PendingEnd> {
        self.end.take()
    }

    fn flags(&self) -> SessionFlags {
        let is_block = self.end.as_ref().is_some_and(PendingEnd::is_block);
        SessionFlags { is_end_pending: self.end.is_some(), is_block, ..SessionFlags::default() }
    }

    fn requested_end(&self) -> Option<RequestedEnd> {
        let end = self.end.as_ref()?;
        Some(RequestedEnd { words: end.closing_message.clone(), is_block: end.is_block() })
    }

    fn take_notes(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn cancel(&mut self, _: &[String]) {}

    fn is_write(&self, tool: &str) -> bool {
        tool == "book"
    }

    fn refuse(&self, _: &str, error: ToolError) -> Arc<ToolResponse> {
        Arc::new(HandlerAnswer::failure(error).stamp(meta()))
    }

    fn describe_tool(&mut self, _: &ModelCall) -> Option<Arc<ToolResponse>> {
        None
    }
}

/// Something that happens to a call. A step that cannot happen, as an event without a connection, is skipped.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Client(ClientMessage<'static>),
    ClientAudio,
    /// The user speaks, or is silent, for this long, in frames of 20 ms.
    UserSpeaks(Duration),
    UserIsSilent(Duration),
    DetachClient,
    AttachClient,
    Provider(LiveEvent<'static>),
    ModelAudio,
    /// So much of the model's speech comes at once.
    ModelSpeaks(Duration),
    /// The connection that is being opened is opened.
    Open,
    FailToOpen(LiveErrorKind),
    Lose(LiveErrorKind),
    /// The running call at this index, modulo their number, is answered.
    Complete(usize),
    /// The provider cancels the running call at this index, modulo their number.
    Cancel(usize),
    /// The session reports the answer of a call of an earlier connection.
    LateAnswer,
    /// The session has a note for the next turn.
    SessionNote(String),
    /// A tool asks for the end of the session.
    AskToEnd,
    /// A tool blocks the client, with this farewell.
    Block(&'static str),
    /// Time passes, with ticks.
    Wait(Duration),
    /// What is queued for the provider is sent.
    Flush,
}

/// Three seconds of speech: the user's at 16 kHz, and twenty of the model's at 24 kHz.
static USER: LazyLock<Vec<i16>> = LazyLock::new(|| speech(Duration::from_secs(3), 0.4, 16_000));
static MODEL: LazyLock<Vec<i16>> = LazyLock::new(|| speech(Duration::from_secs(20), 0.3, 24_000));

pub(super) fn pcm(samples: &[i16]) -> Audio<'static> {
    Audio::Pcm(samples.iter().flat_map(|sample| sample.to_le_bytes()).collect::<Vec<_>>().into())
}

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Held,
    Delivered,
    Returned,
}

pub(super) struct RunningCall {
    pub(super) call: Arc<RequestedCall>,
    generation: u64,
    batch: usize,
}

/// What came of questions that are asked by voice.
#[derive(Default)]
pub(super) struct Questions {
    /// Questions that were to be spoken, and answers to be transcribed.
    pub(super) spoken: Vec<(u64, String)>,
    pub(super) transcribing: Vec<(u64, usize)>,
    /// Decisions that were taken, with the words of spoken ones.
    pub(super) resolved: Vec<(String, ConfirmationAnswer, Option<SpokenReply>)>,
    /// What the session says to the next decision.
    pub(super) refusal: Option<ToolError>,
    /// Samples that were held back from the provider and then sent.
    pub(super) held_samples: usize,
}

pub(super) struct TestCall {
    pub(super) state: CallState<FakeSession>,
    pub(super) now: Instant,
    log: String,
    pub(super) is_connected: bool,
    pub(super) opening: Option<ContextReplay>,
    /// The context of the present connection.
    pub(super) context: Option<ContextReplay>,
    /// What was sent on the present connection.
    pub(super) sent: Vec<ProviderOutput>,
    pub(super) to_client: Vec<ClientOutput>,
    pub(super) running: VecDeque<RunningCall>,
    pub(super) fates: BTreeMap<AnswerId, Fate>,
    batches: usize,
    pub(super) replayed_frames: usize,
    pub(super) questions: Questions,
    pub(super) reports: Reports,
}

/// What is told to the operator.
#[derive(Default)]
pub(super) struct Reports {
    pub(super) latencies: Vec<Duration>,
    pub(super) heard: Vec<HeardReceipt>,
}

impl TestCall {
    /// A call whose provider is being connected.
    pub(super) fn new() -> Self {
        Self::begin(None, Settings::default(), false)
    }

    /// A call with these settings that is set up; the provider may rely on our ear.
    pub(super) fn ready_with(settings: Settings, relies_on_ear: bool) -> Self {
        let mut call = Self::begin(None, settings, relies_on_ear);
        call.play(Step::Open);
        call.log.clear();
        call
    }

    /// The same with a request that the chat has handed over.
    pub(super) fn with_pending_request(request: &str) -> Self {
        Self::begin(Some(request.to_owned()), Settings::default(), false)
    }

    /// A call in which questions are asked by voice.
    pub(super) fn asking(spoken: SpokenQuestions, relies_on_ear: bool) -> Self {
        let mut call = Self::begin_with(None, Settings::default(), relies_on_ear, Some(spoken));
        call.play(Step::Open);
        call.log.clear();
        call
    }

    fn begin(pending_request: Option<String>, settings: Settings, relies_on_ear: bool) -> Self {
        Self::begin_with(pending_request, settings, relies_on_ear, None)
    }

    fn begin_with(
        pending_request: Option<String>,
        settings: Settings,
        relies_on_ear: bool,
        spoken: Option<SpokenQuestions>,
    ) -> Self {
        let start = CallStart {
            settings,
            model: "test/1".into(),
            relies_on_ear,
            journal: Journal::default(),
            is_resumed: false,
            pending_request,
            spoken: spoken.clone(),
            stop_deadline: None,
        };
        let now = Instant::now();
        let mut call = Self {
            state: CallState::new(start, FakeSession::default(), now),
            now,
            log: String::new(),
            is_connected: false,
            opening: None,
            context: None,
            sent: Vec::new(),
            to_client: Vec::new(),
            running: VecDeque::new(),
            fates: BTreeMap::new(),
            batches: 0,
            replayed_frames: 0,
            questions: Questions::default(),
            reports: Reports::default(),
        };
        call.perform();
        call
    }

    /// A call that is set up.
    pub(super) fn ready() -> Self {
        let mut call = Self::new();
        call.play(Step::Open);
        call.log.clear();
        call
    }

    pub(super) fn log(&self) -> String {
        self.log.clone()
    }

    pub(super) fn is_connecting(&self) -> bool {
        self.opening.is_some()
    }

    pub(super) fn play(&mut self, step: Step) {
        match step {
            Step::Client(message) => {
                self.line(format_args!("> client {message:?}"));
                self.feed(Input::Client(message));
            }
            Step::ClientAudio => {
                if !self.hear_user(&[0; 320]) {
                    self.line(format_args!("> client audio: dropped"));
                }
            }
            Step::UserSpeaks(time) => self.hear_frames(&USER, time),
            Step::UserIsSilent(time) => self.hear_frames(&[], time),
            Step::DetachClient => {
                self.line(format_args!("> client lost"));
                self.feed(Input::ClientLost);
            }
            Step::AttachClient => {
                self.line(format_args!("> client attached"));
                self.feed(Input::ClientAttached);
            }
            Step::Provider(event) if self.is_connected => {
                self.line(format_args!("> provider {}", describe_event(&event)));
                self.feed(Input::Provider(event));
            }
            Step::ModelAudio if self.is_connected => {
                let verdict = if self.hear_model_audio() { "played" } else { "dropped" };
                self.line(format_args!("> provider audio: {verdict}"));
            }
            Step::ModelSpeaks(time) if self.is_connected => {
                let samples = &MODEL[..time.as_millis() as usize * 24];
                let verdict =
                    if self.state.admit_model_audio(&pcm(samples), self.now) { "played" } else { "dropped" };
                self.line(format_args!("> provider audio: {verdict}"));
            }
            Step::Open => self.open(),
            Step::FailToOpen(kind) if self.opening.take().is_some() => {
                self.line(format_args!("> provider unreachable"));
                self.feed(Input::ProviderUnreachable(error(kind)));
            }
            Step::Lose(kind) if self.is_connected => {
                self.line(format_args!("> provider lost"));
                self.is_connected = false;
                self.feed(Input::ProviderLost(error(kind)));
            }
            Step::Complete(index) => self.complete(index),
            Step::Cancel(index) if self.is_connected && !self.running.is_empty() => {
                let ids = Vec::from_iter(self.running[index % self.running.len()].call.id.clone());
                self.line(format_args!("> provider cancels {ids:?}"));
                self.feed(Input::Provider(LiveEvent::CallsCancelled(ids)));
            }
            Step::LateAnswer => {
                let answer = self.hold("earlier-call", "book");
                self.line(format_args!("> late answer"));
                self.feed(Input::LateAnswer { reason: DeliveryReason::Late, answer });
            }
            Step::SessionNote(note) => self.state.session.notes.push(note),
            Step::AskToEnd => self.state.session.end = Some(PendingEnd::with_reason("done")),
            Step::Block(farewell) => {
                let closing_message = Some(farewell.to_owned());
                let end = PendingEnd { closing_message, ..PendingEnd::with_reason("blocked") };
                self.state.session.end = Some(end);
            }
            Step::Wait(time) => self.wait(time),
            Step::Flush => self.flush(),
            Step::Provider(_) | Step::ModelAudio | Step::ModelSpeaks(_) => {}
            Step::FailToOpen(_) | Step::Lose(_) | Step::Cancel(_) => {}
        }
        self.feed(Input::BatchDone);
    }

    /// Whether the client gets a frame of the model's.
    pub(super) fn hear_model_audio(&mut self) -> bool {
        self.state.admit_model_audio(&Audio::Pcm(vec![0; 960].into()), self.now)
    }

    /// Whether the provider gets a frame of the user's.
    fn hear_user(&mut self, samples: &[i16]) -> bool {
        let is_heard = self.state.on_client_audio(&pcm(samples), self.now);
        self.perform();
        is_heard
    }

    /// Hears sound, and silence after its end, while time passes.
    pub(super) fn hear_frames(&mut self, sound: &[i16], time: Duration) {
        let mut frames = sound.chunks_exact(320);
        for _ in 0..time.as_millis() / 20 {
            self.wait(Duration::from_millis(20));
            if self.state.client.is_connected {
                self.hear_user(frames.next().unwrap_or(&[0; 320]));
            }
        }
    }

    pub(super) fn feed(&mut self, input: Input<'_>) {
        let was_ended = self.state.is_ended();
        self.state.on(input, self.now);
        let outputs = self.perform();
        assert!(!was_ended || outputs == 0, "{outputs} outputs after the end");
        if !was_ended && self.state.is_ended() {
            let end = format!("{:?}", self.state.end());
            self.line(format_args!("= {}", end.split(['(', ')', ' ']).nth(1).unwrap_or_default()));
        }
    }

    fn open(&mut self) {
        if self.opening.is_none() {
            return;
        }
        self.line(format_args!("> provider opened"));
        let generation = self.state.generation();
        self.feed(Input::ProviderOpened);
        if self.state.generation() > generation {
            self.feed(Input::ProviderCaughtUp);
        }
    }

    fn complete(&mut self, index: usize) {
        if self.running.is_empty() {
            return;
        }
        // The answers of a batch come in order.
        let batch = self.running[index % self.running.len()].batch;
        let first = self.running.iter().position(|running| running.batch == batch).expect("it is there");
        let Some(RunningCall { call, generation, .. }) = self.running.remove(first) else { return };
        let is_last = !self.running.iter().any(|running| running.batch == batch);
        self.line(format_args!("> completed {}", call.shown_id));
        let answer = Some(self.hold(&call.shown_id.clone(), &call.name.clone()));
        self.feed(Input::CallCompleted { call, answer, generation, is_last });
    }

    fn hold(&mut self, call_id: &str, name: &str) -> ReceivedAnswer {
        let id = AnswerId(self.fates.len() as u64);
        self.fates.insert(id, Fate::Held);
        let response = Arc::new(HandlerAnswer::success(json!({ "of": call_id })).stamp(meta()));
        let (call_id, name) = (call_id.into(), name.into());
        ReceivedAnswer { id, call_id, name, response, trace: None, is_wanted: true }
    }

    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while !self.state.is_ended() && self.state.next_tick() <= until {
            self.now = self.state.next_tick();
            self.feed(Input::Tick);
            assert!(self.state.is_ended() || self.state.next_tick() > self.now, "time goes on");
            self.feed(Input::BatchDone);
        }
        self.now = until;
    }

    pub(super) fn flush(&mut self) {
        let sent: Vec<AnswerId> = self.state.take_sent_answers().collect();
        sent.into_iter().for_each(|id| self.settle(id, Fate::Delivered));
    }

    fn settle(&mut self, id: AnswerId, fate: Fate) {
        let before = self.fates.insert(id, fate);
        assert_eq!(before, Some(Fate::Held), "{id:?} has one fate");
    }

    fn perform(&mut self) -> usize {
        let mut count = 0;
        while let Some(output) = self.state.pop_output() {
            count += 1;
            self.perform_one(output);
        }
        count
    }

    fn perform_one(&mut self, output: Output) {
        match output {
            Output::Client(message) => {
                self.line(format_args!("client: {}", describe_message(&message)));
                self.to_client.push(message);
            }
            Output::Provider(message) => {
                assert!(self.is_connected, "{message:?} goes to a connection");
                self.line(format_args!("provider: {}", describe_input(&message)));
                self.sent.push(message);
            }
            Output::Connect(replay) => {
                let turns: Vec<_> = replay.history.iter().map(|turn| turn.text.as_str()).collect();
                self.line(format_args!("connect {turns:?} asks={}", replay.asks));
                self.opening = Some(replay);
            }
            Output::AcceptConnection => {
                self.line(format_args!("accept"));
                self.context = self.opening.take();
                assert!(self.context.is_some(), "a connection was opened");
                self.sent.clear();
                self.is_connected = true;
            }
            Output::RejectConnection => {
                self.line(format_args!("reject"));
                assert!(self.opening.take().is_some() && self.is_connected, "an older connection stands");
            }
            Output::Submit { requested, generation, .. } => {
                self.batches += 1;
                let batch = self.batches;
                let running = requested.into_iter();
                self.running.extend(running.map(|call| RunningCall { call, generation, batch }));
            }
            Output::DeliverAnswer(id) => self.settle(id, Fate::Delivered),
            Output::ReturnAnswer(id) => {
                self.line(format_args!("return answer"));
                self.settle(id, Fate::Returned);
            }
            Output::ReplayInputAudio => {
                let mut frames = 0;
                self.state.drain_input_audio(|_| frames += 1);
                self.replayed_frames += frames;
                self.line(format_args!("provider: {frames} frames of input audio"));
            }
            Output::DropClientAudio | Output::PingClient | Output::DetachClient => {}
            Output::SpeakQuestion { number, text, .. } => self.questions.spoken.push((number, text)),
            Output::TranscribeAnswer { number, samples, .. } => {
                self.questions.transcribing.push((number, samples.len()))
            }
            Output::StopQuestion => {}
            Output::SendHeldAudio(samples) => {
                self.questions.held_samples += samples.len();
                self.line(format_args!("provider: held audio"));
            }
            Output::ResolveConfirmation { token, answer, spoken } => {
                self.line(format_args!("resolve {token}"));
                self.questions.resolved.push((token.clone(), answer, spoken));
                let mut answer = Some(self.hold("confirmed-call", "pay"));
                if let (Some(error), Some(answer)) = (self.questions.refusal.take(), &mut answer) {
                    answer.response = Arc::new(HandlerAnswer::failure(error).stamp(meta()));
                }
                self.feed(Input::ConfirmationResolved { token, answer });
            }
            Output::SettleReceipts | Output::ForgetReceipts | Output::StoreJournal => {}
            Output::RecordTurn(_) | Output::AmendTurn(_) => {}
            Output::ReportLatency(latency) => self.reports.latencies.push(latency),
            Output::ReportHeard(receipt) => self.reports.heard.push(receipt),
        }
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.log, "{line}");
    }
}

fn describe_message(message: &ClientOutput) -> String {
    match message {
        ClientOutput::Ready { is_resumed } => format!("ready resumed={is_resumed}"),
        ClientOutput::Transcript { by, text, .. } => {
            format!("{} {text:?}", if *by == Speaker::User { "user" } else { "model" })
        }
        ClientOutput::ToolCall { call, .. } => format!("tool call {}", call.shown_id),
        ClientOutput::ToolResult { id, .. } => format!("tool result {id}"),
        ClientOutput::Interrupted => "interrupted".into(),
        ClientOutput::TurnComplete => "turn complete".into(),
        other => format!("{other:?}"),
    }
}

fn describe_input(message: &ProviderOutput) -> String {
    match message {
        ProviderOutput::Result { id, response, is_silent, is_last, .. } => {
            let outcome = match &response.outcome {
                Outcome::Success(_) => "ok".to_owned(),
                Outcome::Failure(error) => error.kind.to_string(),
            };
            format!("result {} {outcome} silent={is_silent} last={is_last}", id.as_deref().unwrap_or("-"))
        }
        other => format!("{other:?}"),
    }
}

fn describe_event(event: &LiveEvent<'_>) -> String {
    match event {
        LiveEvent::InputTranscript(piece) => format!("user said {:?}", piece.text),
        LiveEvent::OutputTranscript(piece) => format!("model said {:?}", piece.text),
        LiveEvent::Calls(calls) => {
            let ids: Vec<_> = calls.iter().map(|call| call.id.as_deref().unwrap_or("-")).collect();
            format!("calls {}", ids.join(" "))
        }
        LiveEvent::TurnComplete { more_follows: false } => "turn complete".into(),
        LiveEvent::Interrupted { .. } => "interrupted".into(),
        other => format!("{other:?}"),
    }
}

pub(super) fn heard(text: &str) -> LiveEvent<'static> {
    LiveEvent::InputTranscript(TranscriptPiece {
        text: text.to_owned().into(),
        stage: TranscriptStage::Final,
    })
}

pub(super) fn said(text: &str) -> LiveEvent<'static> {
    LiveEvent::OutputTranscript(TranscriptPiece {
        text: text.to_owned().into(),
        stage: TranscriptStage::Segment,
    })
}

pub(super) fn calls(ids: &[&str]) -> LiveEvent<'static> {
    let call = |id: &&str| ModelCall {
        id: Some((*id).to_owned()),
        name: "book".into(),
        arguments: CallArguments::Json(json!({})),
    };
    LiveEvent::Calls(ids.iter().map(call).collect())
}

pub(super) fn error(kind: LiveErrorKind) -> LiveError {
    LiveError { kind, model: "test/1".into(), code: None, detail: "as the test wants".into() }
}

fn meta() -> Meta {
    Meta {
        tool_id: "book".into(),
        tool_version: "1.0.0".into(),
        registry_version: "1".into(),
        response_schema_version: "1.1.0".into(),
        duration: 0,
        timestamp: "2026-01-13T09:00:00.000Z".into(),
        retry_count: None,
        parent_call_id: None,
        background_task_id: None,
        idempotent_cache_hit: None,
        original_turn: None,
    }
}
