//! Moonshine, which hears English, in this process.

mod network;
mod segments;
mod vocabulary;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{HEARD_RATE, SpeechError, SpeechErrorKind, SpeechToText, Transcript, Utterance};
use rten::{RunError, ThreadPool};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use network::{Decoded, DecodingEnd, Network};
use vocabulary::Vocabulary;

pub(crate) use network::{DECODER, ENCODER};
pub(crate) use vocabulary::TOKENIZER;

/// Longer than anyone speaks without a pause.
const MAX_UTTERANCE_SAMPLES: usize = 5 * 60 * HEARD_RATE as usize;

/// How much of the machine Moonshine may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoonshineSettings {
    /// Utterances that are transcribed at the same time.
    pub max_transcriptions: usize,
    /// Threads for each of them.
    pub threads: usize,
    /// Utterances that wait for their turn. One more is refused as busy at once.
    pub max_waiting: usize,
    /// How long one waits before it is refused as busy.
    pub queue_timeout: Duration,
    /// How long one utterance may take once it is its turn.
    pub timeout: Duration,
}

impl Default for MoonshineSettings {
    fn default() -> Self {
        Self {
            max_transcriptions: 2,
            threads: 1,
            max_waiting: 16,
            queue_timeout: Duration::from_secs(3),
            timeout: Duration::from_secs(30),
        }
    }
}

/// Why a folder cannot be used as a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    #[error("{} cannot be read: run `quarterdeck speech install`", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is larger than {limit} bytes and no model of Moonshine", path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    #[error(
        "`{file}` in {} is not one of Moonshine's files ({reason}): remove the folder and run `quarterdeck speech \
         install`",
        folder.display()
    )]
    NotMoonshine { folder: PathBuf, file: &'static str, reason: String },
}

/// Hears English. Its confidence is the geometric mean of the probabilities of all tokens, the end of the text included.
pub struct Moonshine(Arc<MoonshineCore>);

struct MoonshineCore {
    name: String,
    settings: MoonshineSettings,
    network: Network,
    vocabulary: Vocabulary,
    running: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    /// The thread pools that no transcription uses now: one for each permit of `running`.
    pools: Mutex<Vec<Arc<ThreadPool>>>,
}

impl Moonshine {
    /// Loads the model in a folder, which names it. This takes half a second and reads 65 MB: not for a thread of the runtime.
    pub fn load(folder: &Path, settings: MoonshineSettings) -> Result<Self, LoadError> {
        let settings = MoonshineSettings {
            max_transcriptions: settings.max_transcriptions.max(1),
            threads: settings.threads.max(1),
            ..settings
        };
        let folder_name = folder.file_name().unwrap_or_default().to_string_lossy();
        let pool = |_| Arc::new(ThreadPool::with_num_threads(settings.threads));
        Ok(Self(Arc::new(MoonshineCore {
            name: format!("local/{folder_name}"),
            settings,
            network: Network::load(folder)?,
            vocabulary: Vocabulary::load(folder)?,
            running: Arc::new(Semaphore::new(settings.max_transcriptions)),
            waiting: Arc::new(Semaphore::new(settings.max_waiting)),
            pools: Mutex::new((0..settings.max_transcriptions).map(pool).collect()),
        })))
    }
}

impl SpeechToText for Moonshine {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn transcribe(&self, utterance: Utterance) -> BoxFuture<Result<Transcript, SpeechError>> {
        let core = self.0.clone();
        Box::pin(async move { core.transcribe(utterance).await })
    }
}

impl MoonshineCore {
    /// It knows English only and takes everything for it: the language of an utterance is that of a browser, whose user may
    /// well speak another one.
    async fn transcribe(self: Arc<Self>, utterance: Utterance) -> Result<Transcript, SpeechError> {
        if utterance.samples.len() > MAX_UTTERANCE_SAMPLES {
            return Err(self.error(SpeechErrorKind::Refused, "the utterance is longer than five minutes"));
        }
        let permit = self.permit().await?;
        let limit = self.settings.timeout;
        let guard = CancelOnDrop::default();
        let is_cancelled = guard.0.clone();
        let core = self.clone();
        let task = tokio::task::spawn_blocking(move || core.work(&utterance.samples, &is_cancelled, permit));
        match timeout(limit, task).await {
            Ok(Ok(Ok(transcript))) => Ok(transcript),
            Ok(Ok(Err(error))) => Err(self.error(SpeechErrorKind::Malformed, &error.to_string())),
            Ok(Err(error)) => Err(self.error(SpeechErrorKind::Unavailable, &error.to_string())),
            Err(_) => Err(self.error(SpeechErrorKind::TimedOut, "the utterance took too long")),
        }
    }

    /// Waits for its turn, for a while.
    async fn permit(&self) -> Result<OwnedSemaphorePermit, SpeechError> {
        let busy = || self.error(SpeechErrorKind::Busy, "too many utterances are being transcribed");
        if let Ok(permit) = self.running.clone().try_acquire_owned() {
            return Ok(permit);
        }
        let _waiting = self.waiting.try_acquire().map_err(|_| busy())?;
        let permit = timeout(self.settings.queue_timeout, self.running.clone().acquire_owned()).await;
        permit.ok().and_then(Result::ok).ok_or_else(busy)
    }

    /// Transcribes on this thread. The permit is held until the machine is really free again.
    fn work(
        &self,
        samples: &[i16],
        is_cancelled: &AtomicBool,
        _permit: OwnedSemaphorePermit,
    ) -> Result<Transcript, RunError> {
        let pool = BorrowedPool::from(&self.pools, self.settings.threads);
        let mut words = Words::default();
        let samples = segments::without_silence_around(samples);
        for segment in segments::split(samples) {
            let input = segments::network_input(&samples[segment]);
            let max_tokens = segments::max_tokens(input.len());
            let decoded = self
                .network
                .decode(input, max_tokens, &pool.pool, &|| is_cancelled.load(Ordering::Relaxed))?;
            if decoded.end == DecodingEnd::Cancelled {
                break;
            }
            words.add(&decoded, &self.vocabulary);
        }
        Ok(words.into_transcript())
    }

    fn error(&self, kind: SpeechErrorKind, detail: &str) -> SpeechError {
        SpeechError { kind, engine: self.name.clone(), detail: detail.to_owned() }
    }
}

/// The words of the segments so far.
#[derive(Default)]
struct Words {
    text: String,
    log_probability: f32,
    tokens: usize,
}

impl Words {
    fn add(&mut self, decoded: &Decoded, vocabulary: &Vocabulary) {
        let tokens = match decoded.end {
            DecodingEnd::TokenLimit => segments::without_loop(&decoded.tokens),
            DecodingEnd::Complete | DecodingEnd::Cancelled => &decoded.tokens,
        };
        let text = vocabulary.text(tokens);
        if !self.text.is_empty() && !text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(&text);
        self.log_probability += decoded.log_probabilities.iter().sum::<f32>();
        self.tokens += decoded.log_probabilities.len();
    }

    fn into_transcript(self) -> Transcript {
        let confidence = (self.tokens > 0).then(|| (self.log_probability / self.tokens as f32).exp());
        Transcript { text: self.text, confidence }
    }
}

/// Tells a blocking thread that its result is no longer wanted.
#[derive(Default)]
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A thread pool that is given back even if the work panics.
struct BorrowedPool<'a> {
    pool: Arc<ThreadPool>,
    owner: &'a Mutex<Vec<Arc<ThreadPool>>>,
}

impl<'a> BorrowedPool<'a> {
    fn from(owner: &'a Mutex<Vec<Arc<ThreadPool>>>, threads: usize) -> Self {
        let free = owner.lock().unwrap_or_else(PoisonError::into_inner).pop();
        // There is one for each permit, so none is made here.
        let pool = free.unwrap_or_else(|| Arc::new(ThreadPool::with_num_threads(threads)));
        Self { pool, owner }
    }
}

impl Drop for BorrowedPool<'_> {
    fn drop(&mut self) {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner).push(self.pool.clone());
    }
}
