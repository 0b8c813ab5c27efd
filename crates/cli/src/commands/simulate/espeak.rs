//! Speech by espeak-ng, where it is installed.
//!
//! Each text is a process. Running and queued processes are bounded, and the text goes through a pipe: every user of
//! the machine can read a process's arguments.

use std::ffi::OsString;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quarterdeck_simulator::live::{SpeechFuture, Voice, samples_from_wav};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::environment;
use crate::terminal::info;

/// About two minutes of speech.
const MAX_TEXT_BYTES: usize = 2_000;
/// Six minutes of samples.
const MAX_SPEECH_BYTES: u64 = 16 << 20;
const NOTICE_INTERVAL: Duration = Duration::from_secs(5);

/// The installed program.
#[derive(Clone)]
pub(crate) struct Espeak(Arc<EspeakCore>);

struct EspeakCore {
    program: OsString,
    limits: Limits,
    processes: Semaphore,
    waiting: Semaphore,
    noticed: Mutex<Option<Instant>>,
}

#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Processes that run at the same time.
    max_processes: usize,
    /// Texts that wait for one.
    max_waiting: usize,
    queue_timeout: Duration,
    speech_timeout: Duration,
}

const LIMITS: Limits = Limits {
    max_processes: 4,
    max_waiting: 64,
    queue_timeout: Duration::from_secs(5),
    speech_timeout: Duration::from_secs(10),
};

const PROGRAM: &str = "espeak-ng";

impl Espeak {
    /// The program, if it is on the search path. Whether it works shows when it speaks: a server would wait for it at each
    /// start.
    pub(crate) fn installed() -> Option<Self> {
        let folders = environment::search_path()?;
        let mut programs = std::env::split_paths(&folders).map(|folder| folder.join(PROGRAM));
        programs.find(|program| program.is_file()).map(|program| Self::new(program.into(), LIMITS))
    }

    /// The same, after it has been started once.
    pub(crate) async fn find() -> Option<Self> {
        let espeak = Self::new(PROGRAM.into(), LIMITS);
        let found = timeout(LIMITS.speech_timeout, espeak.0.run(&["--version"], "")).await;
        found.is_ok_and(|found| found.is_ok()).then_some(espeak)
    }

    fn new(program: OsString, limits: Limits) -> Self {
        Self(Arc::new(EspeakCore {
            program,
            limits,
            processes: Semaphore::new(limits.max_processes),
            waiting: Semaphore::new(limits.max_waiting),
            noticed: Mutex::default(),
        }))
    }
}

impl Voice for Espeak {
    fn speak(&self, text: &str) -> SpeechFuture {
        let text = text[..text.floor_char_boundary(MAX_TEXT_BYTES)].to_owned();
        let core = self.0.clone();
        Box::pin(async move {
            match core.speak(&text).await {
                Ok(samples) => Some(samples),
                Err(reason) => {
                    core.notice(reason);
                    None
                }
            }
        })
    }
}

impl EspeakCore {
    /// Samples of the text, or the reason why there are none.
    async fn speak(&self, text: &str) -> Result<Vec<i16>, &'static str> {
        let waiting = self.waiting.try_acquire().map_err(|_| "too many texts are queued")?;
        let permit = timeout(self.limits.queue_timeout, self.processes.acquire()).await;
        let _permit = permit.ok().and_then(Result::ok).ok_or("too many texts are being spoken")?;
        drop(waiting);
        let arguments = ["-v", "en", "--stdin", "--stdout"];
        let spoken = timeout(self.limits.speech_timeout, self.run(&arguments, text)).await;
        let wav = spoken.map_err(|_| "it took too long")??;
        samples_from_wav(&wav).ok_or("its output is not a WAV file")
    }

    /// What it writes when it is given `input`, if it ends well. Dropping the future ends the process.
    async fn run(&self, arguments: &[&str], input: &str) -> Result<Vec<u8>, &'static str> {
        let mut command = Command::new(&self.program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.kill_on_drop(true).spawn().map_err(|_| "it cannot be started")?;
        let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("its pipes cannot be opened");
        };
        let write = async move {
            // A program that does not read its input to the end says so with what it writes.
            let _ = stdin.write_all(input.as_bytes()).await;
        };
        let mut written = Vec::new();
        let mut bounded = stdout.take(MAX_SPEECH_BYTES + 1);
        let (_, read) = tokio::join!(write, bounded.read_to_end(&mut written));
        if read.is_err() || written.len() as u64 > MAX_SPEECH_BYTES {
            return Err("it wrote too much");
        }
        let status = child.wait().await.map_err(|_| "it was lost")?;
        if status.success() { Ok(written) } else { Err("it failed") }
    }

    /// Reports at most once per interval that tones are played instead of speech.
    fn notice(&self, reason: &str) {
        let mut noticed = self.noticed.lock().unwrap_or_else(PoisonError::into_inner);
        if noticed.is_none_or(|noticed| noticed.elapsed() >= NOTICE_INTERVAL) {
            *noticed = Some(Instant::now());
            info(&format!("nothing is spoken for now; espeak-ng: {reason}"));
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
