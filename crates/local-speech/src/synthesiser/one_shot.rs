//! Engines that are a process for each sentence: espeak-ng and macOS's say.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use quarterdeck_audio::{AudioError, WavReader};
use quarterdeck_contracts::{SPOKEN_RATE, SpeechErrorKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, Command};

use super::output::{Fault, Output};
use super::process::{EngineProcess, Pipes};

/// Three minutes of two channels at 48 kHz, with a header.
const MAX_FILE_BYTES: u64 = 36 << 20;

/// Slower than its own 175, at which Whisper understood 70 % of the words of six sentences; at this rate it was 88 %.
const ESPEAK_WORDS_PER_MINUTE: &str = "145";

/// Speaks with espeak-ng, which writes while it speaks. Its process ends when the listener goes.
pub(super) async fn espeak(
    program: &Path,
    language: &str,
    text: &str,
    output: &mut Output,
) -> Result<(), Fault> {
    let mut command = Command::new(program);
    command.args(["-v", language, "-s", ESPEAK_WORDS_PER_MINUTE, "--stdin", "--stdout"]);
    let (mut process, Pipes { stdin, mut stdout }) = start(command, program)?;
    give(stdin, text).await;
    let mut wav = WavReader::new(SPOKEN_RATE);
    let mut buffer = vec![0; 16 << 10];
    loop {
        let read = tokio::select! {
            read = stdout.read(&mut buffer) => read.map_err(lost)?,
            () = output.closed() => return Ok(()),
        };
        if read == 0 {
            break;
        }
        output.send(wav.feed(&buffer[..read]).map_err(malformed)?)?;
    }
    let status = process.wait().await.map_err(lost)?;
    if !status.success() {
        let detail = format!("it failed ({status}), perhaps because it has no voice for `{language}`");
        return Err(Fault::new(SpeechErrorKind::Refused, detail));
    }
    output.send(wav.finish().map_err(malformed)?)
}

/// Speaks with say, which writes a file and goes back to its beginning at the end, so that it cannot write to a pipe.
pub(super) async fn say(program: &Path, text: &str, output: &mut Output) -> Result<(), Fault> {
    // A folder that only this user can look into.
    let folder = tempfile::tempdir().map_err(lost)?;
    let path = folder.path().join("speech.wav");
    let mut command = Command::new(program);
    command.args(["--file-format=WAVE", "--data-format=LEI16@24000", "-f", "-", "-o"]).arg(&path);
    let (mut process, Pipes { stdin, stdout: _stdout }) = start(command, program)?;
    give(stdin, text).await;
    let status = tokio::select! {
        status = process.wait() => status.map_err(lost)?,
        () = output.closed() => return Ok(()),
    };
    if !status.success() {
        return Err(Fault::new(SpeechErrorKind::Unavailable, format!("it failed ({status})")));
    }
    let read = tokio::task::spawn_blocking(move || read_bounded(path)).await;
    let bytes = read.map_err(|error| lost(io::Error::other(error)))?.map_err(lost)?;
    let mut wav = WavReader::new(SPOKEN_RATE);
    output.send(wav.feed(&bytes).map_err(malformed)?)?;
    output.send(wav.finish().map_err(malformed)?)
}

fn start(command: Command, program: &Path) -> Result<(EngineProcess, Pipes), Fault> {
    EngineProcess::start(command).map_err(|error| {
        let detail = format!("{} does not start: {error}", program.display());
        Fault::new(SpeechErrorKind::Unavailable, detail)
    })
}

/// Gives the text through a pipe: every user of the machine can read a process's arguments. It fits in the pipe, so
/// nothing has to be read meanwhile.
async fn give(mut stdin: ChildStdin, text: &str) {
    // A program that does not read to the end says so by how it ends.
    let _ = stdin.write_all(text.as_bytes()).await;
}

fn read_bounded(path: PathBuf) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn lost(error: io::Error) -> Fault {
    Fault::new(SpeechErrorKind::Unavailable, error.to_string())
}

fn malformed(error: AudioError) -> Fault {
    Fault::new(SpeechErrorKind::Malformed, error.to_string())
}
