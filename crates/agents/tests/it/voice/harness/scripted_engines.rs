//! The engines of a pipeline, played by a scenario. Any event of theirs can be made to fail, or never to come.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{
    CallArguments, ChatError, ChatErrorKind, ChatEvent, ChatMessage, ChatModel, ChatRequest, ChatStream,
    Finish, LiveModel, ModelCall, ModelMessage, ModelPart, ModelReply, PartContent, Provider, Sentence,
    SpeechError, SpeechErrorKind, SpeechStream, SpeechToText, TextToSpeech, Transcript, Usage, Utterance,
};
use quarterdeck_pipeline::{Pipeline, PipelineSettings};
use quarterdeck_testkit::{ScriptedReply, ScriptedTurns, Shown};
use tokio::time::sleep;

/// How long the voice takes for a character: 20 of them are a second.
const SAMPLES_PER_CHAR: usize = 24_000 / 20;
/// How long a transcription, an event of a reply and a piece of audio take.
const TRANSCRIPTION_DELAY: Duration = Duration::from_millis(200);
const REPLY_DELAY: Duration = Duration::from_millis(5);
const AUDIO_DELAY: Duration = Duration::from_millis(50);
/// When a transport gives up a model from which nothing comes.
const CHAT_IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// How many pieces a sentence comes in.
const PIECES: usize = 3;

/// What makes an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    Transcription,
    FirstToken,
    NextToken,
    /// The end of a reply, with its calls.
    Calls,
    ReplyEnd,
    FirstAudio,
    NextAudio,
}

/// What becomes of an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    /// Only these events, or those of all engines, counted from 0.
    pub(crate) stage: Option<Stage>,
    pub(crate) at: usize,
    pub(crate) kind: FaultKind,
    /// How often, from this event on.
    pub(crate) times: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    Fails,
    /// It never comes.
    Hangs,
}

pub(crate) struct ScriptedEngines {
    turns: ScriptedTurns,
    fault: Option<Fault>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    heard: VecDeque<String>,
    requests: Vec<ChatRequest>,
    /// Where replies have broken off as the scenario says.
    broken: HashSet<(usize, usize)>,
    /// How many events have come that the fault may be about, and those that failed or never came.
    events: usize,
    failed: Vec<Stage>,
    /// Every word that was spoken. Its samples are its place in this list, counted from 1.
    words: Vec<SpokenWord>,
}

#[derive(Debug, Clone)]
struct SpokenWord {
    text: String,
    samples: usize,
    is_last: bool,
}

/// The same engines as each of them.
struct Engine(Arc<ScriptedEngines>);

impl ScriptedEngines {
    pub(crate) fn new(turns: ScriptedTurns) -> Arc<Self> {
        Self::with_fault(turns, None)
    }

    pub(crate) fn with_fault(turns: ScriptedTurns, fault: Option<Fault>) -> Arc<Self> {
        let state = State { heard: turns.utterances().collect(), ..State::default() };
        Arc::new(Self { turns, fault, state: Mutex::new(state) })
    }

    /// The pipeline of these engines.
    pub(crate) fn pipeline(self: &Arc<Self>) -> Arc<dyn LiveModel> {
        let engine = || Arc::new(Engine(self.clone()));
        Arc::new(Pipeline::new(engine(), engine(), engine(), PipelineSettings::default()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The events that failed or never came.
    pub(crate) fn failed(&self) -> Vec<Stage> {
        self.state().failed.clone()
    }

    /// How often a reply has broken off as the scenario says.
    pub(crate) fn breaks(&self) -> usize {
        self.state().broken.len()
    }

    pub(crate) fn requests(&self) -> Vec<ChatRequest> {
        self.state().requests.clone()
    }

    /// The words that are in these samples to the end. Of the last word of a sentence, 20 ms may be missing.
    pub(crate) fn words_in(&self, samples: &[i16]) -> Vec<String> {
        let state = self.state();
        let mut heard = vec![0; state.words.len() + 1];
        samples.iter().for_each(|sample| heard[*sample as usize] += 1);
        let is_heard = |(word, heard): &(&SpokenWord, usize)| {
            // Clients report in milliseconds.
            let may_miss = if word.is_last { 480 + 24 } else { 24 };
            heard + may_miss >= word.samples
        };
        let words = state.words.iter().zip(heard.into_iter().skip(1));
        words.filter(is_heard).map(|(word, _)| word.text.clone()).collect()
    }

    /// An event of an engine comes, unless it fails or never comes.
    async fn pass(&self, stage: Stage) -> bool {
        let Some(fault) = self.fault.filter(|fault| fault.stage.is_none_or(|only| only == stage)) else {
            return true;
        };
        let number = {
            let mut state = self.state();
            state.events += 1;
            state.events - 1
        };
        if !(fault.at..fault.at + fault.times).contains(&number) {
            return true;
        }
        self.state().failed.push(stage);
        if fault.kind == FaultKind::Hangs {
            match stage {
                Stage::Transcription | Stage::FirstAudio | Stage::NextAudio => std::future::pending().await,
                // A transport has a limit of its own.
                _ => sleep(CHAT_IDLE_TIMEOUT).await,
            }
        }
        false
    }

    fn chat_error(&self) -> ChatError {
        let is_silent = self.fault.is_some_and(|fault| fault.kind == FaultKind::Hangs);
        let kind = if is_silent { ChatErrorKind::Silent } else { ChatErrorKind::Cut };
        let (model, detail) = ("scripted/chat".into(), "as the test wants".into());
        ChatError { kind, model, detail, retry_after: None, context: None }
    }

    fn events_of(&self, reply: &ScriptedReply) -> Vec<(Stage, Result<ChatEvent, ChatError>)> {
        let words = reply.text.split_inclusive(' ').map(|word| Ok(ChatEvent::Text(word.to_owned())));
        let stages = [Stage::FirstToken].into_iter().chain(std::iter::repeat(Stage::NextToken));
        let mut events: Vec<_> = stages.zip(words).collect();
        if let Some(place) = reply.breaks_at {
            self.state().broken.insert(place);
            let stage = if events.is_empty() { Stage::FirstToken } else { Stage::NextToken };
            events.push((stage, Err(self.chat_error())));
            return events;
        }
        let message = message_of(reply);
        let done = ModelReply { message, finish: Finish::Stop, usage: Usage::new(10, 5) };
        let stage = if reply.calls.is_empty() { Stage::ReplyEnd } else { Stage::Calls };
        events.push((stage, Ok(ChatEvent::Done(done))));
        events
    }

    /// Samples of which each says which word it belongs to.
    fn samples_of(&self, sentence: &str) -> Vec<i16> {
        let mut state = self.state();
        let mut samples = Vec::new();
        for word in sentence.split_inclusive(' ') {
            let text = word.trim_end();
            let length = text.chars().count() * SAMPLES_PER_CHAR;
            state.words.push(SpokenWord { text: text.to_owned(), samples: length, is_last: false });
            let code = i16::try_from(state.words.len()).unwrap();
            samples.extend(std::iter::repeat_n(code, length));
            let pause = (word.chars().count() - text.chars().count()) * SAMPLES_PER_CHAR;
            samples.extend(std::iter::repeat_n(0, pause));
        }
        state.words.iter_mut().last().unwrap().is_last = true;
        samples
    }
}

impl ChatModel for Engine {
    fn declarations(&self) -> Provider {
        Provider::GeminiJsonSchema
    }

    fn name(&self) -> &str {
        "scripted/chat"
    }

    fn window(&self) -> usize {
        100_000
    }

    fn ask(&self, request: ChatRequest) -> ChatStream {
        let engines = self.0.clone();
        let shown: Vec<Shown> = request.messages.iter().map(shown).collect();
        let reply = engines.turns.reply(&shown, |place| engines.state().broken.contains(&place));
        engines.state().requests.push(request);
        let events = engines.events_of(&reply);
        Box::pin(stream::iter(events).then(move |(stage, event)| {
            let engines = engines.clone();
            async move {
                sleep(REPLY_DELAY).await;
                if engines.pass(stage).await { event } else { Err(engines.chat_error()) }
            }
        }))
    }
}

impl SpeechToText for Engine {
    fn name(&self) -> &str {
        "scripted/ears"
    }

    fn transcribe(&self, _: Utterance) -> BoxFuture<Result<Transcript, SpeechError>> {
        let engines = self.0.clone();
        Box::pin(async move {
            sleep(TRANSCRIPTION_DELAY).await;
            if !engines.pass(Stage::Transcription).await {
                return Err(speech_error());
            }
            let text = engines.state().heard.pop_front().unwrap_or_default();
            Ok(Transcript { text, confidence: None })
        })
    }
}

impl TextToSpeech for Engine {
    fn name(&self) -> &str {
        "scripted/voice"
    }

    fn speak(&self, sentence: Sentence) -> SpeechStream {
        let engines = self.0.clone();
        let samples = engines.samples_of(&sentence.text);
        let length = samples.len().div_ceil(PIECES);
        let pieces: Vec<_> = samples.chunks(length).map(<[i16]>::to_vec).enumerate().collect();
        Box::pin(stream::iter(pieces).then(move |(number, piece)| {
            let engines = engines.clone();
            async move {
                sleep(AUDIO_DELAY).await;
                let stage = if number == 0 { Stage::FirstAudio } else { Stage::NextAudio };
                if engines.pass(stage).await { Ok(piece) } else { Err(speech_error()) }
            }
        }))
    }
}

fn shown(message: &ChatMessage) -> Shown {
    match message {
        ChatMessage::User { text } => Shown::User(text.clone()),
        ChatMessage::Tools { .. } => Shown::Results,
        ChatMessage::Model(_) => Shown::Other,
    }
}

fn message_of(reply: &ScriptedReply) -> ModelMessage {
    let mut parts = vec![ModelPart::new(PartContent::Text(reply.text.clone()))];
    parts.extend(reply.calls.iter().map(|call| {
        let (name, arguments) = (call["name"].as_str().unwrap().into(), call["args"].clone());
        let arguments = CallArguments::Json(arguments);
        ModelPart::new(PartContent::Call(ModelCall { id: None, name, arguments }))
    }));
    ModelMessage { by: "scripted/chat".into(), parts }
}

fn speech_error() -> SpeechError {
    let (engine, detail) = ("scripted".into(), "as the test wants".into());
    SpeechError { kind: SpeechErrorKind::Unavailable, engine, detail }
}
