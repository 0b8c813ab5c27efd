//! The sentence that is being spoken.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{
    SPOKEN_RATE, Sentence, SpeechError, SpeechErrorKind, SpeechStream, TextToSpeech,
};
use tokio::time::{Sleep, sleep};

use crate::hearing::{may_retry, timed_out};

/// How much audio is handed on at once: short, so that an interruption finds little on its way.
const CHUNK_SAMPLES: usize = SPOKEN_RATE as usize / 10;
/// How long one sentence may be. An engine that goes on and on is stopped.
const MAX_SENTENCE_SAMPLES: usize = SPOKEN_RATE as usize * 120;
/// How long a voice may take for the next piece. Engines have shorter limits of their own.
const PIECE_TIMEOUT: Duration = Duration::from_secs(20);
/// How often a sentence is tried, and how long to wait before each further attempt.
const MAX_ATTEMPTS: u32 = 5;
const RETRY_BACKOFF: Duration = Duration::from_millis(200);

pub(crate) struct Voice {
    engine: Arc<dyn TextToSpeech>,
    language: Option<String>,
    state: State,
    /// Audio that was made and not handed on, and whether the piece after it was asked for.
    made: VecDeque<i16>,
    has_looked_ahead: bool,
    /// Samples of this sentence so far.
    total: usize,
    timer: Option<Pin<Box<Sleep>>>,
}

enum State {
    Silent,
    /// Until the first audio has come, the sentence may be tried again.
    Opening(BoxFuture<Opened>),
    Streaming(SpeechStream),
    /// Everything was made.
    Ended(Result<(), SpeechError>),
}

type Opened = (Option<Result<Vec<i16>, SpeechError>>, SpeechStream);

/// What came of the sentence.
#[derive(Debug)]
pub(crate) enum Spoken {
    Audio(Vec<i16>),
    Ended(Result<(), SpeechError>),
}

impl Voice {
    pub(crate) fn new(engine: Arc<dyn TextToSpeech>, language: Option<String>) -> Self {
        Self {
            engine,
            language,
            state: State::Silent,
            made: VecDeque::new(),
            has_looked_ahead: false,
            total: 0,
            timer: None,
        }
    }

    /// Begins a sentence, in place of any other.
    pub(crate) fn speak(&mut self, text: String) {
        self.stop();
        let sentence = Sentence { text, language: self.language.clone() };
        self.state = State::Opening(Box::pin(open(self.engine.clone(), sentence)));
    }

    pub(crate) fn stop(&mut self) {
        self.state = State::Silent;
        self.made.clear();
        (self.total, self.timer) = (0, None);
    }

    /// The next audio of the sentence, or its end. Pending for ever while there is none.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Spoken> {
        loop {
            if !self.made.is_empty() {
                self.look_ahead(context);
                let length = self.made.len().min(CHUNK_SAMPLES);
                return Poll::Ready(Spoken::Audio(self.made.drain(..length).collect()));
            }
            if let State::Ended(result) = &mut self.state {
                let result = std::mem::replace(result, Ok(()));
                self.stop();
                return Poll::Ready(Spoken::Ended(result));
            }
            if self.poll_engine(context).is_pending() && !self.is_too_slow(context) {
                return Poll::Pending;
            }
        }
    }

    /// How long the sentence is, once all of it was made.
    pub(crate) fn whole_length(&self) -> Option<usize> {
        matches!(self.state, State::Ended(Ok(()))).then_some(self.total)
    }

    /// An engine may make a sentence in one piece. Then its length is known before it was played.
    fn look_ahead(&mut self, context: &mut Context<'_>) {
        if !std::mem::replace(&mut self.has_looked_ahead, true) {
            let _ = self.poll_engine(context);
        }
    }

    fn poll_engine(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let piece = match &mut self.state {
            State::Silent | State::Ended(_) => return Poll::Pending,
            State::Opening(opening) => match opening.as_mut().poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready((first, stream)) => {
                    self.state = State::Streaming(stream);
                    first
                }
            },
            State::Streaming(stream) => match stream.as_mut().poll_next(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(piece) => piece,
            },
        };
        self.timer = None;
        match piece {
            Some(Ok(samples)) => {
                self.has_looked_ahead = !self.made.is_empty();
                let room = MAX_SENTENCE_SAMPLES.saturating_sub(self.total);
                self.total += samples.len();
                if samples.len() > room {
                    let (engine, detail) =
                        (self.engine.name().to_owned(), "a sentence without an end".to_owned());
                    let error = SpeechError { kind: SpeechErrorKind::Malformed, engine, detail };
                    self.state = State::Ended(Err(error));
                }
                self.made.extend(samples.into_iter().take(room));
            }
            Some(Err(error)) => self.state = State::Ended(Err(error)),
            None => self.state = State::Ended(Ok(())),
        }
        Poll::Ready(())
    }

    /// Gives up a voice from which nothing comes. Attempts and the waits between them count together.
    fn is_too_slow(&mut self, context: &mut Context<'_>) -> bool {
        if matches!(self.state, State::Silent | State::Ended(_)) {
            return false;
        }
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(PIECE_TIMEOUT)));
        let is_due = timer.as_mut().poll(context).is_ready();
        if is_due {
            self.state = State::Ended(Err(timed_out(self.engine.name())));
        }
        is_due
    }
}

/// Waits for the first audio. As long as there is none, a failure may be tried again.
async fn open(engine: Arc<dyn TextToSpeech>, sentence: Sentence) -> Opened {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let mut stream = engine.speak(sentence.clone());
        match poll_fn(|context| stream.as_mut().poll_next(context)).await {
            Some(Err(error)) if may_retry(error.kind, attempt, MAX_ATTEMPTS) => {
                drop(stream);
                sleep(RETRY_BACKOFF * attempt).await;
            }
            first => return (first, stream),
        }
    }
}
