//! Transcriptions under way, one at a time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{
    SpeechError, SpeechErrorKind, SpeechToText, Transcript, TranscriptStage, Utterance,
};
use tokio::time::{sleep, timeout};

/// How long one transcription may take. Engines have shorter limits of their own.
const TRANSCRIPTION_TIMEOUT: Duration = Duration::from_secs(30);
/// How often an utterance is tried, and how long to wait before each further attempt.
const MAX_ATTEMPTS: u32 = 4;
const RETRY_BACKOFF: Duration = Duration::from_millis(250);
/// How many utterances may wait. More come only when an engine is slower than speech.
const MAX_WAITING: usize = 2;

pub(crate) struct Hearing {
    engine: Arc<dyn SpeechToText>,
    language: Option<String>,
    current: Option<Transcription>,
    waiting: VecDeque<(Arc<[i16]>, TranscriptStage)>,
}

struct Transcription {
    samples: Arc<[i16]>,
    stage: TranscriptStage,
    result: BoxFuture<Result<Transcript, SpeechError>>,
}

/// What came of an utterance.
pub(crate) type Heard = (Result<Transcript, SpeechError>, TranscriptStage);

impl Hearing {
    pub(crate) fn new(engine: Arc<dyn SpeechToText>, language: Option<String>) -> Self {
        Self { engine, language, current: None, waiting: VecDeque::new() }
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.current.is_some()
    }

    /// Takes an utterance; `false` when too many wait.
    pub(crate) fn push(&mut self, samples: Arc<[i16]>, stage: TranscriptStage) -> bool {
        if self.current.is_none() {
            self.begin(samples, stage);
        } else if self.waiting.len() < MAX_WAITING {
            self.waiting.push_back((samples, stage));
        } else {
            return false;
        }
        true
    }

    /// Gives up the only transcription, whose audio is to be transcribed with what follows, if that may be.
    pub(crate) fn take_back(&mut self, may_join: impl Fn(&[i16]) -> bool) -> Option<Arc<[i16]>> {
        let is_alone = self.waiting.is_empty();
        let taken = self.current.take_if(|current| is_alone && may_join(&current.samples))?;
        Some(taken.samples)
    }

    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Heard> {
        let Some(current) = &mut self.current else { return Poll::Pending };
        let Poll::Ready(result) = current.result.as_mut().poll(context) else { return Poll::Pending };
        let stage = current.stage;
        self.current = None;
        if let Some((samples, stage)) = self.waiting.pop_front() {
            self.begin(samples, stage);
        }
        Poll::Ready((result, stage))
    }

    fn begin(&mut self, samples: Arc<[i16]>, stage: TranscriptStage) {
        let utterance = Utterance { samples: samples.clone(), language: self.language.clone() };
        let result = Box::pin(transcribe(self.engine.clone(), utterance));
        self.current = Some(Transcription { samples, stage, result });
    }
}

async fn transcribe(engine: Arc<dyn SpeechToText>, utterance: Utterance) -> Result<Transcript, SpeechError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let result = match timeout(TRANSCRIPTION_TIMEOUT, engine.transcribe(utterance.clone())).await {
            Ok(result) => result,
            Err(_) => return Err(timed_out(engine.name())),
        };
        match result {
            Err(error) if may_retry(error.kind, attempt, MAX_ATTEMPTS) => {
                sleep(RETRY_BACKOFF * attempt).await
            }
            result => return result,
        }
    }
}

/// An engine that is busy is tried several times, one that fails otherwise once more.
pub(crate) fn may_retry(kind: SpeechErrorKind, attempt: u32, max_attempts: u32) -> bool {
    match kind {
        SpeechErrorKind::Busy => attempt < max_attempts,
        // It has taken its time already.
        SpeechErrorKind::TimedOut => false,
        kind => kind.is_retryable() && attempt < 2,
    }
}

pub(crate) fn timed_out(engine: &str) -> SpeechError {
    let (engine, detail) = (engine.to_owned(), "nothing came in time".to_owned());
    SpeechError { kind: SpeechErrorKind::TimedOut, engine, detail }
}
