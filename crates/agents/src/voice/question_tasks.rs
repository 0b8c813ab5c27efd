//! What a call waits for while it asks by voice: the speech of the question, and the transcript of its answer.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::StreamExt;
use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{
    Sentence, SpeechError, SpeechStream, SpeechToText, TextToSpeech, Transcript, Utterance,
};

/// The engines with which questions are asked by voice. Without a voice, or without ears where they are to be our own, the
/// page asks alone.
#[derive(Clone, Default)]
pub struct SpeechEngines {
    pub speaks: Option<Arc<dyn TextToSpeech>>,
    pub hears: Option<Arc<dyn SpeechToText>>,
    /// The language of users whose own is not known.
    pub language: Option<String>,
}

/// At most one of each; another takes its place, and the older one is given up.
#[derive(Default)]
pub(super) struct QuestionTasks {
    speech: Option<(u64, SpeechStream)>,
    transcript: Option<(u64, BoxFuture<Result<Transcript, SpeechError>>)>,
}

/// What came of a task, by its number.
pub(super) enum QuestionEvent {
    Speech(u64, Vec<i16>),
    Spoken(u64),
    Failed(u64, SpeechError),
    Transcribed(u64, Result<Transcript, SpeechError>),
}

impl QuestionTasks {
    pub(super) fn speak(&mut self, engines: &SpeechEngines, number: u64, text: String, language: String) {
        let sentence = Sentence { text, language: Some(language) };
        self.speech = engines.speaks.as_ref().map(|engine| (number, engine.speak(sentence)));
    }

    pub(super) fn transcribe(
        &mut self,
        engines: &SpeechEngines,
        number: u64,
        samples: Arc<[i16]>,
        language: String,
    ) {
        let utterance = Utterance { samples, language: Some(language) };
        self.transcript = engines.hears.as_ref().map(|engine| (number, engine.transcribe(utterance)));
    }

    pub(super) fn stop(&mut self) {
        *self = Self::default();
    }

    /// The next event, without an end. Speech is taken only while the client takes it.
    pub(super) async fn next(&mut self, may_speak: bool) -> QuestionEvent {
        poll_fn(|context| self.poll(may_speak, context)).await
    }

    fn poll(&mut self, may_speak: bool, context: &mut Context<'_>) -> Poll<QuestionEvent> {
        if let Some((number, future)) = &mut self.transcript
            && let Poll::Ready(result) = future.as_mut().poll(context)
        {
            let number = *number;
            self.transcript = None;
            return Poll::Ready(QuestionEvent::Transcribed(number, result));
        }
        if let Some((number, stream)) = self.speech.as_mut().filter(|_| may_speak)
            && let Poll::Ready(piece) = stream.poll_next_unpin(context)
        {
            let number = *number;
            let event = match piece {
                Some(Ok(samples)) => return Poll::Ready(QuestionEvent::Speech(number, samples)),
                Some(Err(error)) => QuestionEvent::Failed(number, error),
                None => QuestionEvent::Spoken(number),
            };
            self.speech = None;
            return Poll::Ready(event);
        }
        Poll::Pending
    }
}
