//! Engines that speak, each as processes of their own.

mod one_shot;
mod output;
mod piper;
mod process;
mod text;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quarterdeck_audio::Resampler;
use quarterdeck_contracts::{
    HEARD_RATE, SPOKEN_RATE, Sentence, SpeechError, SpeechErrorKind, SpeechStream, TextToSpeech,
};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::language::primary;
use output::{Fault, Output, channel};
use piper::Piper;
use text::{MAX_TEXT_BYTES, speakable};

pub use piper::PiperFiles;

/// How much of the machine a synthesiser may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SynthesiserSettings {
    /// Sentences that are spoken at the same time: also the number of Piper's processes.
    pub max_sentences: usize,
    /// Threads for each of Piper's processes.
    pub threads: usize,
    /// Sentences that wait for their turn. One more is refused as busy at once.
    pub max_waiting: usize,
    /// How long one waits before it is refused as busy.
    pub queue_timeout: Duration,
    /// How long one sentence may take once it is its turn, with the start of a process.
    pub timeout: Duration,
}

impl Default for SynthesiserSettings {
    fn default() -> Self {
        Self {
            max_sentences: 2,
            threads: 1,
            max_waiting: 32,
            queue_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(30),
        }
    }
}

/// Speech as a microphone would give it: from [`SPOKEN_RATE`] to [`HEARD_RATE`]. For trying a voice and ears together.
pub fn to_heard_rate(samples: &[i16]) -> Vec<i16> {
    let mut resampler = Resampler::new(SPOKEN_RATE, HEARD_RATE);
    let mut heard = resampler.take(samples);
    heard.extend(resampler.finish());
    heard
}

/// A program that speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Voice {
    /// Speaks English best of all, and takes 240 MB of memory for each process.
    Piper(PiperFiles),
    /// `say` of macOS, by its path. It speaks with the voice of the system's settings.
    Say(PathBuf),
    /// espeak-ng by its path. It speaks a hundred languages, like a machine.
    Espeak(PathBuf),
}

impl Voice {
    /// Engine and voice.
    pub fn name(&self) -> String {
        match self {
            Self::Piper(files) => {
                format!("local/piper/{}", files.voice.file_stem().unwrap_or_default().to_string_lossy())
            }
            Self::Say(_) => "local/say".to_owned(),
            Self::Espeak(_) => "local/espeak-ng".to_owned(),
        }
    }
}

/// Speaks with a program on this machine.
pub struct Synthesiser(Arc<SynthesiserCore>);

struct SynthesiserCore {
    name: String,
    engine: Engine,
    settings: SynthesiserSettings,
    running: Semaphore,
    waiting: Semaphore,
}

enum Engine {
    Piper(Piper),
    Say(PathBuf),
    Espeak(PathBuf),
}

impl Synthesiser {
    /// Nothing is started yet.
    pub fn new(voice: Voice, settings: SynthesiserSettings) -> Self {
        let settings = SynthesiserSettings {
            max_sentences: settings.max_sentences.max(1),
            threads: settings.threads.max(1),
            ..settings
        };
        Self(Arc::new(SynthesiserCore {
            name: voice.name(),
            engine: match voice {
                Voice::Piper(files) => Engine::Piper(Piper::new(files, settings.threads)),
                Voice::Say(program) => Engine::Say(program),
                Voice::Espeak(program) => Engine::Espeak(program),
            },
            settings,
            running: Semaphore::new(settings.max_sentences),
            waiting: Semaphore::new(settings.max_waiting),
        }))
    }

    /// Starts what would make the first sentence wait. Piper loads its voice for two seconds; the others need nothing.
    pub async fn warm_up(&self) -> Result<(), SpeechError> {
        let core = &self.0;
        let Engine::Piper(piper) = &core.engine else { return Ok(()) };
        match timeout(core.settings.timeout, piper.warm_up()).await {
            Ok(started) => started.map_err(|fault| core.error(fault)),
            Err(_) => Err(core.error(Fault::new(SpeechErrorKind::TimedOut, "it does not start in time"))),
        }
    }
}

impl TextToSpeech for Synthesiser {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn speak(&self, sentence: Sentence) -> SpeechStream {
        let (mut output, receiver) = channel();
        let core = self.0.clone();
        match Handle::try_current() {
            // A task of its own: a process that is to stay must say its sentence to the end without a listener.
            Ok(runtime) => drop(runtime.spawn(async move {
                if let Err(fault) = core.speak(&sentence, &mut output).await {
                    output.fail(core.error(fault));
                }
            })),
            Err(error) => {
                output.fail(core.error(Fault::new(SpeechErrorKind::Unavailable, error.to_string())));
            }
        }
        Box::pin(receiver)
    }
}

impl SynthesiserCore {
    async fn speak(&self, sentence: &Sentence, output: &mut Output) -> Result<(), Fault> {
        let text = speakable(&sentence.text);
        if text.is_empty() {
            return Ok(());
        }
        if text.len() > MAX_TEXT_BYTES {
            return Err(Fault::new(SpeechErrorKind::Refused, "the sentence is longer than 2000 bytes"));
        }
        let tag = sentence.language.as_deref().unwrap_or("en");
        let language = primary(tag)
            .ok_or_else(|| Fault::new(SpeechErrorKind::Refused, "the sentence's language is not a tag"))?;
        let _permit = tokio::select! {
            permit = self.permit() => permit?,
            () = output.closed() => return Ok(()),
        };
        let spoken = timeout(self.settings.timeout, self.engine.speak(&text, &language, output)).await;
        spoken.unwrap_or_else(|_| Err(Fault::new(SpeechErrorKind::TimedOut, "the sentence took too long")))
    }

    /// Waits for its turn, for a while.
    async fn permit(&self) -> Result<SemaphorePermit<'_>, Fault> {
        let busy = || Fault::new(SpeechErrorKind::Busy, "too many sentences are being spoken");
        if let Ok(permit) = self.running.try_acquire() {
            return Ok(permit);
        }
        let _waiting = self.waiting.try_acquire().map_err(|_| busy())?;
        let permit = timeout(self.settings.queue_timeout, self.running.acquire()).await;
        permit.ok().and_then(Result::ok).ok_or_else(busy)
    }

    fn error(&self, fault: Fault) -> SpeechError {
        SpeechError { kind: fault.kind, engine: self.name.clone(), detail: fault.detail }
    }
}

impl Engine {
    async fn speak(&self, text: &str, language: &str, output: &mut Output) -> Result<(), Fault> {
        match self {
            // Its voice is English. Another language with an accent is better than silence.
            Self::Piper(piper) => piper.speak(text, output).await,
            Self::Say(program) => one_shot::say(program, text, output).await,
            Self::Espeak(program) => one_shot::espeak(program, language, text, output).await,
        }
    }
}
