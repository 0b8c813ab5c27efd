//! Engines that do what a test wants, and a client that plays what it gets.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{
    Audio, CallArguments, ChatError, ChatErrorKind, ChatEvent, ChatMessage, ChatModel, ChatRequest,
    ChatStream, Finish, LiveConnection, LiveEvent, LiveInput, LiveModel, LiveResult, LiveSetup, Meta,
    ModelCall, ModelMessage, ModelPart, ModelReply, Outcome, PartContent, Provider, Sentence, SpeechError,
    SpeechErrorKind, SpeechStream, SpeechToText, TextToSpeech, ToolResponse, Transcript, Usage, Utterance,
};
use quarterdeck_pipeline::{Pipeline, PipelineSettings};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

/// How long the voice of the tests takes for a character: 20 characters are a second.
pub(crate) const SAMPLES_PER_CHAR: usize = 24_000 / 20;

/// One reply of the model.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// Its text, word by word.
    Says(String),
    /// Text, and calls by name.
    Calls(String, Vec<&'static str>),
    Fails(ChatErrorKind),
    /// Some text, and then a failure.
    SaysAndFails(String),
}

pub(crate) fn says(text: &str) -> Reply {
    Reply::Says(text.to_owned())
}

/// Everything that the engines are told to do, and what they were asked.
#[derive(Default)]
pub(crate) struct Script {
    pub(crate) replies: Mutex<VecDeque<Reply>>,
    pub(crate) heard: Mutex<VecDeque<Result<String, SpeechErrorKind>>>,
    /// How the next sentences fail.
    pub(crate) voice_fails: Mutex<VecDeque<SpeechErrorKind>>,
    /// How the next sentences break off, after a third of them.
    pub(crate) voice_breaks: Mutex<VecDeque<SpeechErrorKind>>,
    pub(crate) requests: Mutex<Vec<ChatRequest>>,
    pub(crate) utterances: Mutex<Vec<usize>>,
    pub(crate) sentences: Mutex<Vec<String>>,
    /// How long a transcription, a word of a reply and the first audio of a sentence take.
    pub(crate) delays: Mutex<(u64, u64, u64)>,
}

struct FakeChat(Arc<Script>);
struct FakeEar(Arc<Script>);
struct FakeVoice(Arc<Script>);

impl ChatModel for FakeChat {
    fn declarations(&self) -> Provider {
        Provider::GeminiJsonSchema
    }

    fn name(&self) -> &str {
        "fake/chat"
    }

    fn window(&self) -> usize {
        8_000
    }

    fn ask(&self, request: ChatRequest) -> ChatStream {
        check_request(&request);
        self.0.requests.lock().unwrap().push(request);
        let reply = self.0.replies.lock().unwrap().pop_front().unwrap_or_else(|| says("Yes."));
        let delay = Duration::from_millis(self.0.delays.lock().unwrap().1);
        let events = events_of(reply);
        Box::pin(stream::iter(events).then(move |event| async move {
            sleep(delay).await;
            event
        }))
    }
}

/// What every request must be: it begins with the user, ends with them or with results, and every call has its result.
fn check_request(request: &ChatRequest) {
    assert!(matches!(request.messages.first(), Some(ChatMessage::User { .. })), "{:?}", request.messages);
    assert!(!matches!(request.messages.last(), Some(ChatMessage::Model(_))), "{:?}", request.messages);
    check_history(&request.messages);
}

pub(crate) fn check_history(messages: &[ChatMessage]) {
    for (place, message) in messages.iter().enumerate() {
        let next = messages.get(place + 1);
        match message {
            ChatMessage::Model(message) => {
                assert!(!message.parts.is_empty());
                let called: Vec<_> = message.calls().map(|call| (&call.id, &call.name)).collect();
                let answered: Vec<_> = match next {
                    Some(ChatMessage::Tools { results }) => {
                        results.iter().map(|result| (&result.id, &result.name)).collect()
                    }
                    _ => Vec::new(),
                };
                assert_eq!(called, answered, "every call has its result: {messages:?}");
            }
            ChatMessage::Tools { .. } => assert!(matches!(messages[place - 1], ChatMessage::Model(_))),
            ChatMessage::User { text } => {
                assert!(!text.trim().is_empty());
                assert!(
                    !matches!(next, Some(ChatMessage::User { .. })),
                    "two messages of the user: {messages:?}"
                );
            }
        }
    }
}

fn events_of(reply: Reply) -> Vec<Result<ChatEvent, ChatError>> {
    let (text, calls, error) = match reply {
        Reply::Says(text) => (text, vec![], None),
        Reply::Calls(text, calls) => (text, calls, None),
        Reply::Fails(kind) => (String::new(), vec![], Some(kind)),
        Reply::SaysAndFails(text) => (text, vec![], Some(ChatErrorKind::Cut)),
    };
    let words = text.split_inclusive(' ').map(|word| Ok(ChatEvent::Text(word.to_owned())));
    let mut events: Vec<_> = words.collect();
    if let Some(kind) = error {
        let (model, detail) = ("fake/chat".to_owned(), "told to".to_owned());
        events.push(Err(ChatError { kind, model, detail, retry_after: None, context: None }));
        return events;
    }
    let mut parts = vec![ModelPart::new(PartContent::Text(text))];
    // The ids are the same in every reply, as some servers have them.
    parts.extend(calls.into_iter().enumerate().map(|(place, name)| {
        let arguments = CallArguments::Json(json!({}));
        ModelPart::new(PartContent::Call(ModelCall {
            id: Some(format!("call_{place}")),
            name: name.into(),
            arguments,
        }))
    }));
    let message = ModelMessage { by: "fake/chat".into(), parts };
    events.push(Ok(ChatEvent::Done(ModelReply { message, finish: Finish::Stop, usage: Usage::new(10, 5) })));
    events
}

impl SpeechToText for FakeEar {
    fn name(&self) -> &str {
        "fake/ear"
    }

    fn transcribe(&self, utterance: Utterance) -> BoxFuture<Result<Transcript, SpeechError>> {
        self.0.utterances.lock().unwrap().push(utterance.samples.len());
        let script = self.0.clone();
        Box::pin(async move {
            let delay = script.delays.lock().unwrap().0;
            sleep(Duration::from_millis(delay)).await;
            let heard = script.heard.lock().unwrap().pop_front().unwrap_or_else(|| Ok("Hello there".into()));
            heard.map(|text| Transcript { text, confidence: None }).map_err(speech_error)
        })
    }
}

impl TextToSpeech for FakeVoice {
    fn name(&self) -> &str {
        "fake/voice"
    }

    fn speak(&self, sentence: Sentence) -> SpeechStream {
        if let Some(kind) = self.0.voice_fails.lock().unwrap().pop_front() {
            return Box::pin(stream::iter([Err(speech_error(kind))]));
        }
        let samples = sentence.text.chars().count() * SAMPLES_PER_CHAR;
        self.0.sentences.lock().unwrap().push(sentence.text);
        let delay = Duration::from_millis(self.0.delays.lock().unwrap().2);
        let rest = match self.0.voice_breaks.lock().unwrap().pop_front() {
            Some(kind) => Err(speech_error(kind)),
            None => Ok(samples - samples / 3),
        };
        Box::pin(stream::iter([Ok(samples / 3), rest]).then(move |samples| async move {
            sleep(delay).await;
            samples.map(|samples| vec![1; samples])
        }))
    }
}

fn speech_error(kind: SpeechErrorKind) -> SpeechError {
    SpeechError { kind, engine: "fake".into(), detail: "told to".into() }
}

/// An open conversation, and the client that plays its audio.
pub(crate) struct Talk {
    pub(crate) script: Arc<Script>,
    connection: Box<dyn LiveConnection>,
    /// Every event as a line, audio of one sentence together.
    pub(crate) lines: Vec<String>,
    /// The calls that wait for a result: id and name.
    pub(crate) calls: Vec<(String, String)>,
    /// When the client will have played what it has, and how much it has got of this answer.
    ends: Option<Instant>,
    got: Duration,
}

impl Talk {
    pub(crate) async fn open(script: Script) -> Self {
        Self::open_with(script, vec![], false).await
    }

    pub(crate) async fn open_with(
        script: Script,
        history: Vec<quarterdeck_contracts::LiveTurn>,
        asks: bool,
    ) -> Self {
        let setup = LiveSetup { history, asks, ..LiveSetup::default() };
        Self::connect(script, setup).await
    }

    pub(crate) async fn connect(script: Script, setup: LiveSetup) -> Self {
        let script = Arc::new(script);
        let (chat, ear, voice) =
            (FakeChat(script.clone()), FakeEar(script.clone()), FakeVoice(script.clone()));
        let settings = PipelineSettings::default();
        let pipeline = Pipeline::new(Arc::new(chat), Arc::new(ear), Arc::new(voice), settings);
        assert!(pipeline.relies_on_ear());
        assert_eq!(pipeline.name(), "pipeline/fake/chat");
        let setup = LiveSetup { system: "Be brief.".into(), ..setup };
        let connection = pipeline.connect(setup).await.unwrap();
        Self { script, connection, lines: vec![], calls: vec![], ends: None, got: Duration::ZERO }
    }

    pub(crate) fn send(&mut self, input: LiveInput<'_>) {
        self.connection.send(input);
    }

    /// The user speaks for so long.
    pub(crate) fn speak(&mut self, duration: Duration) {
        self.start_speaking(duration);
        self.send(LiveInput::SpeechEnded);
    }

    pub(crate) fn start_speaking(&mut self, duration: Duration) {
        let frame = vec![1; 640];
        for _ in 0..13 {
            self.send(LiveInput::Audio(Audio::Pcm(frame.as_slice().into())));
        }
        self.send(LiveInput::SpeechStarted);
        for _ in 0..duration.as_millis() / 20 {
            self.send(LiveInput::Audio(Audio::Pcm(frame.as_slice().into())));
        }
    }

    /// Answers a call with data.
    pub(crate) fn answer(&mut self, place: usize, data: Value, is_silent: bool) {
        let (id, name) = self.calls.remove(place);
        let is_last = self.calls.is_empty();
        self.answer_as(&id, &name, data, is_silent, is_last);
    }

    pub(crate) fn answer_as(&mut self, id: &str, name: &str, data: Value, is_silent: bool, is_last: bool) {
        let response = response(name, data);
        let id = Some(id);
        self.send(LiveInput::Result(LiveResult { id, name, response: &response, is_silent, is_last }));
    }

    /// How much the client has played of the answer.
    pub(crate) fn played(&self) -> Duration {
        let left = self.ends.map_or(Duration::ZERO, |ends| ends.saturating_duration_since(Instant::now()));
        self.got.saturating_sub(left)
    }

    /// The user interrupts, and the client says what was played.
    pub(crate) fn interrupt(&mut self) {
        let heard = (!self.got.is_zero()).then(|| self.played());
        self.send(LiveInput::Interrupt { heard });
        (self.ends, self.got) = (None, Duration::ZERO);
    }

    /// Takes what comes until so much time has passed.
    pub(crate) async fn run_for(&mut self, duration: Duration) {
        let until = Instant::now() + duration;
        loop {
            let connection = &mut self.connection;
            tokio::select! {
                biased;
                filled = poll_fn(|context| connection.poll_fill(context)) => filled.unwrap(),
                () = sleep_until(until) => return,
            }
            self.read();
        }
    }

    /// Takes what comes until a line begins like this. At most ten minutes.
    #[track_caller]
    pub(crate) fn run_until(&mut self, line: &str) -> impl Future<Output = ()> {
        let wanted = line.to_owned();
        async move {
            for _ in 0..60_000 {
                if self.lines.iter().any(|line| line.starts_with(&wanted)) {
                    return;
                }
                self.run_for(Duration::from_millis(10)).await;
            }
            panic!("no {wanted:?} in {:#?}", self.lines);
        }
    }

    /// Polls once, and takes what is there.
    pub(crate) fn poll_once(&mut self) {
        if let Poll::Ready(filled) = self.connection.poll_fill(&mut Context::from_waker(Waker::noop())) {
            filled.unwrap();
            self.read();
        }
    }

    fn read(&mut self) {
        while let Some(event) = self.connection.next() {
            let event = event.into_owned();
            self.take(event);
        }
    }

    fn take(&mut self, event: LiveEvent<'static>) {
        let line = match event {
            LiveEvent::Audio(audio) => {
                let length = Duration::from_micros(audio.samples_len() as u64 * 1_000 / 48);
                let now = Instant::now();
                self.ends = Some(self.ends.map_or(now, |ends| ends.max(now)) + length);
                self.got += length;
                if self.lines.last().is_some_and(|line| line == "audio") {
                    return;
                }
                "audio".to_owned()
            }
            LiveEvent::Calls(calls) => {
                let names: Vec<_> = calls.iter().map(|call| call.name.clone()).collect();
                self.calls.extend(calls.into_iter().map(|call| (call.id.unwrap(), call.name)));
                format!("calls {}", names.join(" "))
            }
            LiveEvent::InputTranscript(piece) => format!("user {:?} {}", piece.stage, piece.text),
            LiveEvent::OutputTranscript(piece) => format!("model {:?} {}", piece.stage, piece.text),
            LiveEvent::TurnComplete { more_follows } => {
                if !more_follows {
                    (self.ends, self.got) = (None, Duration::ZERO);
                }
                format!("turn complete, more follows: {more_follows}")
            }
            LiveEvent::Interrupted { end_follows } => {
                assert!(!end_follows);
                (self.ends, self.got) = (None, Duration::ZERO);
                "interrupted".to_owned()
            }
            LiveEvent::HeardAnswer(words) => format!("heard {words}"),
            LiveEvent::Usage(_) => "usage".to_owned(),
            LiveEvent::Warning(what) => format!("warning {what}"),
            other => format!("{other:?}"),
        };
        self.lines.push(line);
    }

    /// The lines since the last look.
    pub(crate) fn take_lines(&mut self) -> String {
        std::mem::take(&mut self.lines).into_iter().map(|line| line + "\n").collect()
    }

    /// The messages of the last request, one line each.
    pub(crate) fn last_request(&self) -> String {
        let requests = self.script.requests.lock().unwrap();
        requests.last().map(|request| history(&request.messages)).unwrap_or_default()
    }

    pub(crate) fn requests(&self) -> usize {
        self.script.requests.lock().unwrap().len()
    }
}

/// Messages, one line each.
pub(crate) fn history(messages: &[ChatMessage]) -> String {
    let line = |message: &ChatMessage| match message {
        ChatMessage::User { text } => format!("user: {}\n", text.replace('\n', "⏎")),
        ChatMessage::Model(message) => {
            let calls: String = message.calls().map(|call| format!(" +{}", call.name)).collect();
            format!("model: {}{calls}\n", message.text())
        }
        ChatMessage::Tools { results } => {
            let results = results.iter().map(|result| match &result.response.outcome {
                Outcome::Success(data) => data.to_string(),
                Outcome::Failure(error) => format!("{}", error.kind),
            });
            format!("tools: {}\n", results.collect::<Vec<_>>().join(" "))
        }
    };
    messages.iter().map(line).collect()
}

pub(crate) fn response(name: &str, data: Value) -> ToolResponse {
    let meta = Meta {
        tool_id: name.into(),
        tool_version: "1.0.0".into(),
        registry_version: "1".into(),
        response_schema_version: "1.1.0".into(),
        duration: 1,
        timestamp: "2026-01-01T00:00:00Z".to_owned(),
        retry_count: None,
        parent_call_id: None,
        background_task_id: None,
        idempotent_cache_hit: None,
        original_turn: None,
    };
    ToolResponse { outcome: Outcome::Success(data), intents: vec![], meta }
}

pub(crate) fn script(replies: impl IntoIterator<Item = Reply>) -> Script {
    let script = Script::default();
    script.replies.lock().unwrap().extend(replies);
    *script.delays.lock().unwrap() = (200, 30, 100);
    script
}

pub(crate) fn hears<const N: usize>(script: &Script, heard: [&str; N]) {
    script.heard.lock().unwrap().extend(heard.map(|text| Ok(text.to_owned())));
}
