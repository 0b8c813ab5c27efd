//! Piper, in processes that stay: loading a voice takes longer than speaking a sentence.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use quarterdeck_audio::Resampler;
use quarterdeck_contracts::{SPOKEN_RATE, SpeechErrorKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout, Command};

use super::output::{Fault, Output};
use super::process::{EngineProcess, Pipes};

/// Piper is under the GPL, so it is not part of this process; the script is ours.
const WORKER: &str = include_str!("piper_worker.py");
/// A sentence of Piper's is one frame: a minute and a half at 22 kHz.
const MAX_FRAME_BYTES: u32 = 4 << 20;

/// Where the parts of Piper are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PiperFiles {
    /// The interpreter that its packages were installed for.
    pub python: PathBuf,
    /// The folder of its packages.
    pub packages: PathBuf,
    /// The voice, an ONNX file beside its `.onnx.json`.
    pub voice: PathBuf,
}

pub(super) struct Piper {
    files: PiperFiles,
    threads: usize,
    /// Processes that have said their last sentence to its end. As many as speak at the same time, at the most.
    idle: Mutex<Vec<Worker>>,
}

struct Worker {
    _process: EngineProcess,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    rate: u32,
}

enum Frame {
    Rate(u32),
    Audio(Vec<i16>),
    End,
    Failed(String),
}

impl Piper {
    pub(super) fn new(files: PiperFiles, threads: usize) -> Self {
        Self { files, threads, idle: Mutex::default() }
    }

    /// Starts a process, unless one is there.
    pub(super) async fn warm_up(&self) -> Result<(), Fault> {
        if self.idle.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            let worker = self.start().await?;
            self.give_back(worker);
        }
        Ok(())
    }

    /// Speaks a line. A listener who has gone does not stop the process, which would have to load its voice again: what it
    /// still says is thrown away. The caller's time-out ends it.
    pub(super) async fn speak(&self, text: &str, output: &mut Output) -> Result<(), Fault> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(mut worker) = idle {
            match worker.speak(text, output).await {
                Ok(()) => {
                    self.give_back(worker);
                    return Ok(());
                }
                // It may have died since its last sentence.
                Err(fault) if fault.kind == SpeechErrorKind::Unavailable && !output.has_sent() => {}
                Err(fault) => return Err(fault),
            }
        }
        let mut worker = self.start().await?;
        worker.speak(text, output).await?;
        self.give_back(worker);
        Ok(())
    }

    async fn start(&self) -> Result<Worker, Fault> {
        let PiperFiles { python, packages, voice } = &self.files;
        let mut command = Command::new(python);
        // Isolated: neither the user's packages nor this folder's files are imported.
        command.args(["-I", "-c", WORKER]).arg(packages).arg(voice).arg(self.threads.to_string());
        let (process, Pipes { stdin, stdout }) = EngineProcess::start(command)
            .map_err(|error| lost(format!("{} does not start: {error}", python.display())))?;
        let mut worker =
            Worker { _process: process, stdin, stdout: BufReader::new(stdout), rate: SPOKEN_RATE };
        match worker.frame().await? {
            Frame::Rate(rate) if (8_000..=48_000).contains(&rate) => worker.rate = rate,
            _ => return Err(malformed()),
        }
        Ok(worker)
    }

    fn give_back(&self, worker: Worker) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
    }
}

impl Worker {
    async fn speak(&mut self, text: &str, output: &mut Output) -> Result<(), Fault> {
        let line = format!("{text}\n");
        self.stdin.write_all(line.as_bytes()).await.map_err(|error| lost(error.to_string()))?;
        let mut resampler = Resampler::new(self.rate, SPOKEN_RATE);
        loop {
            match self.frame().await? {
                Frame::Audio(samples) => output.send(resampler.take(&samples))?,
                Frame::End => return output.send(resampler.finish()),
                Frame::Failed(reason) => {
                    return Err(Fault::new(SpeechErrorKind::Malformed, format!("it failed with {reason}")));
                }
                Frame::Rate(_) => return Err(malformed()),
            }
        }
    }

    async fn frame(&mut self) -> Result<Frame, Fault> {
        let ended = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                lost("its process has ended; `quarterdeck speech check` says more")
            }
            _ => lost(error.to_string()),
        };
        let letter = self.stdout.read_u8().await.map_err(ended)?;
        let length = self.stdout.read_u32_le().await.map_err(ended)?;
        if length > MAX_FRAME_BYTES {
            return Err(malformed());
        }
        let mut body = vec![0; length as usize];
        self.stdout.read_exact(&mut body).await.map_err(ended)?;
        match (letter, &body[..]) {
            (b'R', &[a, b, c, d]) => Ok(Frame::Rate(u32::from_le_bytes([a, b, c, d]))),
            (b'A', samples) => {
                let (samples, _) = samples.as_chunks::<2>();
                Ok(Frame::Audio(samples.iter().map(|sample| i16::from_le_bytes(*sample)).collect()))
            }
            (b'E', []) => Ok(Frame::End),
            (b'X', reason) => Ok(Frame::Failed(String::from_utf8_lossy(reason).chars().take(100).collect())),
            _ => Err(malformed()),
        }
    }
}

fn lost(detail: impl Into<String>) -> Fault {
    Fault::new(SpeechErrorKind::Unavailable, detail)
}

fn malformed() -> Fault {
    Fault::new(SpeechErrorKind::Malformed, "what its process writes cannot be understood")
}
