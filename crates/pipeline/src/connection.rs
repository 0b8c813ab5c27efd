//! One conversation: the dialogue with its engines. It has no task of its own; what is under way is polled, and cancelled by
//! being dropped.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quarterdeck_contracts::telemetry::ConversationTracer;
use quarterdeck_contracts::{
    ChatEvent, ChatRequest, LiveConnection, LiveError, LiveEvent, LiveInput, LiveSetup, TranscriptStage,
};
use serde_json::Value;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::conversation::Conversation;
use crate::dialogue::Dialogue;
use crate::hearing::{Heard, Hearing};
use crate::input_audio::InputAudio;
use crate::language::Language;
use crate::latency::Latency;
use crate::model::Engines;
use crate::model_request::ModelRequest;
use crate::voice::{Spoken, Voice};

pub(crate) struct Connection {
    engines: Arc<Engines>,
    system: Arc<str>,
    tools: Arc<[Value]>,
    dialogue: Dialogue,
    input: InputAudio,
    hearing: Hearing,
    request: Option<ModelRequest>,
    tracer: ConversationTracer,
    voice: Voice,
    timer: Pin<Box<Sleep>>,
    latency: Latency,
    /// How many tokens the messages of a request may have.
    max_tokens: usize,
}

impl Connection {
    /// `prefix` makes the ids of calls unlike those of any other connection.
    pub(crate) fn new(engines: Arc<Engines>, setup: LiveSetup, prefix: String) -> Self {
        let LiveSetup { system, tools, history, asks, language, tracer, .. } = setup;
        let settings = &engines.settings;
        let tag = language.or_else(|| settings.language.clone());
        let conversation = Conversation::new(engines.chat.name(), prefix, history);
        let dialogue = Dialogue::new(conversation, asks, Language::of(tag.as_deref()), settings);
        Self {
            dialogue,
            input: InputAudio::new(settings.pre_roll, settings.max_utterance),
            hearing: Hearing::new(engines.hears.clone(), tag.clone()),
            request: None,
            tracer,
            voice: Voice::new(engines.speaks.clone(), tag),
            timer: Box::pin(sleep_until(Instant::now())),
            latency: Latency::default(),
            max_tokens: engines.max_message_tokens(&system, &tools),
            engines,
            system,
            tools,
        }
    }

    fn begin_utterance(&mut self, now: Instant) {
        if self.input.is_listening() {
            return;
        }
        let earlier = self.hearing.take_back(|samples| self.input.has_room_for(samples));
        self.input.begin(earlier);
        self.dialogue.set_transcribing(self.hearing.is_busy());
        self.dialogue.on_speech_started(now);
    }

    fn end_utterance(&mut self, now: Instant) {
        let Some(samples) = self.input.end() else { return };
        self.latency.on_speech_ended(now);
        self.dialogue.on_speech_ended();
        self.transcribe(samples, TranscriptStage::Final);
    }

    fn transcribe(&mut self, samples: Arc<[i16]>, stage: TranscriptStage) {
        if !self.hearing.push(samples, stage) {
            let what = "speech was dropped: its transcription takes longer than it".to_owned();
            self.dialogue.events.push_back(LiveEvent::Warning(what));
        }
        self.dialogue.set_transcribing(self.hearing.is_busy());
    }

    /// Drops what the dialogue does not want any more.
    fn drop_cancelled(&mut self) {
        if !self.dialogue.is_generating() {
            self.request = None;
        }
        if !self.dialogue.is_speaking() {
            self.voice.stop();
        }
    }

    /// Moves whatever can be moved. Returns whether anything was.
    fn advance(&mut self, context: &mut Context<'_>, now: Instant) -> bool {
        let has_heard = self.poll_hearing(context, now);
        let has_asked = self.ask(now);
        let has_read = self.poll_reply(context, now);
        let has_spoken = self.poll_voice(context, now);
        has_heard || has_asked || has_read || has_spoken || self.dialogue.end_turn_if_done(now)
    }

    fn poll_hearing(&mut self, context: &mut Context<'_>, now: Instant) -> bool {
        let Poll::Ready(heard) = self.hearing.poll(context) else { return false };
        let (result, stage): Heard = heard;
        self.dialogue.set_transcribing(self.hearing.is_busy());
        match result {
            Ok(transcript) => {
                self.latency.on_transcript(now);
                self.dialogue.on_transcript(&transcript.text, stage, now);
            }
            Err(error) => self.dialogue.on_not_heard(error.to_string()),
        }
        true
    }

    fn ask(&mut self, now: Instant) -> bool {
        let Some(question) = self.dialogue.next_question(now, self.max_tokens) else { return false };
        let (system, tools) = (self.system.clone(), self.tools.clone());
        let request = ChatRequest {
            system,
            messages: question.messages,
            tools,
            tool_use: question.tool_use,
            span: None,
        };
        self.request = Some(ModelRequest::begin(&self.engines, &self.tracer, request, now));
        true
    }

    fn poll_reply(&mut self, context: &mut Context<'_>, now: Instant) -> bool {
        let Some(request) = &mut self.request else { return false };
        let Poll::Ready(event) = request.poll(&self.engines, context, now) else { return false };
        match event {
            Ok(ChatEvent::Text(text)) => {
                self.latency.on_token(now);
                self.dialogue.on_reply_text(&text);
                return true;
            }
            Ok(ChatEvent::Thought(_)) => return true,
            Ok(ChatEvent::Done(done)) => self.dialogue.on_reply_done(done),
            Err(error) => self.dialogue.on_reply_failed(&error),
        }
        self.request = None;
        true
    }

    fn poll_voice(&mut self, context: &mut Context<'_>, now: Instant) -> bool {
        if let Some(sentence) = self.dialogue.next_sentence(now) {
            self.voice.speak(sentence);
        }
        if !self.dialogue.is_speaking() || !self.dialogue.may_make_audio(now) {
            return !self.dialogue.events.is_empty();
        }
        let Poll::Ready(spoken) = self.voice.poll(context) else { return false };
        match spoken {
            Spoken::Audio(samples) => {
                self.latency.on_audio(&self.engines.name, now);
                self.dialogue.on_audio(&samples, now);
                if let Some(samples) = self.voice.whole_length() {
                    self.dialogue.set_sentence_length(samples);
                }
            }
            Spoken::Ended(Ok(())) => self.dialogue.on_sentence_end(),
            Spoken::Ended(Err(error)) => self.dialogue.on_sentence_failed(error.to_string()),
        }
        true
    }

    /// Whether the time has come for which the dialogue waits.
    fn poll_timer(&mut self, context: &mut Context<'_>, now: Instant) -> bool {
        let Some(at) = self.dialogue.deadline(now) else { return false };
        if self.timer.deadline() != at {
            self.timer.as_mut().reset(at);
        }
        self.timer.as_mut().poll(context).is_ready()
    }
}

impl LiveConnection for Connection {
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LiveError>> {
        loop {
            if !self.dialogue.events.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let now = Instant::now();
            if !self.advance(context, now) && !self.poll_timer(context, now) {
                return Poll::Pending;
            }
        }
    }

    fn next(&mut self) -> Option<LiveEvent<'_>> {
        self.dialogue.events.pop_front()
    }

    fn send(&mut self, input: LiveInput<'_>) {
        let now = Instant::now();
        match input {
            LiveInput::Audio(audio) => {
                if let Some(samples) = self.input.push(&audio) {
                    self.transcribe(samples, TranscriptStage::Segment);
                }
                return;
            }
            LiveInput::SpeechStarted => self.begin_utterance(now),
            LiveInput::SpeechEnded | LiveInput::AudioEnded => self.end_utterance(now),
            LiveInput::Text(text) => self.dialogue.on_text(text, now),
            LiveInput::Note { text, asks } => self.dialogue.on_note(text, asks, now),
            LiveInput::Filler { words, .. } => self.dialogue.on_filler(words),
            LiveInput::Result(result) => self.dialogue.on_result(&result),
            LiveInput::Interrupt { heard } => self.dialogue.on_interrupt(heard, now),
            _ => {}
        }
        self.drop_cancelled();
    }

    /// Nothing is queued: what is sent is taken at once.
    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<Result<(), LiveError>> {
        Poll::Ready(Ok(()))
    }

    fn close(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }
}
