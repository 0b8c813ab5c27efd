//! Synthesisers with shell scripts in the place of their programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::StreamExt;
use quarterdeck_contracts::{Sentence, SpeechErrorKind, TextToSpeech};
use quarterdeck_local_speech::{PiperFiles, Synthesiser, SynthesiserSettings, Voice};
use tempfile::TempDir;

/// A WAV header for 24 kHz, as espeak-ng writes one to a pipe, then two samples: 1 and 2.
const SPEAK: &str = r"printf 'RIFF\377\377\377\377WAVEfmt \020\0\0\0\001\0\001\0\300\135\0\0\200\273\0\0\002\0\020\0data\377\377\377\377\001\0\002\0'";
/// What Piper's process says first: that its rate is 24 kHz.
const READY: &str = r"printf 'R\004\0\0\0\300\135\0\0'";

fn script(folder: &TempDir, body: &str) -> PathBuf {
    let path = folder.path().join("program");
    // Written elsewhere and moved: a file that is open for writing somewhere cannot be run.
    let draft = folder.path().join("draft");
    fs::write(&draft, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(draft, &path).unwrap();
    path
}

fn espeak(folder: &TempDir, body: &str, settings: SynthesiserSettings) -> Synthesiser {
    Synthesiser::new(Voice::Espeak(script(folder, body)), settings)
}

fn piper(folder: &TempDir, body: &str, settings: SynthesiserSettings) -> Synthesiser {
    let files = PiperFiles {
        python: script(folder, body),
        packages: "/nowhere".into(),
        voice: "/nowhere/en_US-joe-medium.onnx".into(),
    };
    Synthesiser::new(Voice::Piper(files), settings)
}

fn sentence(text: &str) -> Sentence {
    Sentence { text: text.into(), language: None }
}

async fn speak(engine: &Synthesiser, sentence: Sentence) -> Result<Vec<i16>, (SpeechErrorKind, String)> {
    let mut stream = engine.speak(sentence);
    let mut samples = Vec::new();
    while let Some(piece) = stream.next().await {
        samples.extend(piece.map_err(|error| (error.kind, error.detail))?);
    }
    Ok(samples)
}

fn quick() -> SynthesiserSettings {
    SynthesiserSettings { timeout: Duration::from_millis(300), ..SynthesiserSettings::default() }
}

fn is_alive(pid: &str) -> bool {
    // A zombie has no command line.
    fs::read(format!("/proc/{}/cmdline", pid.trim())).is_ok_and(|line| !line.is_empty())
}

async fn read_when_there(path: &Path) -> String {
    loop {
        match fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text,
            _ => tokio::task::yield_now().await,
        }
    }
}

#[tokio::test]
async fn text_goes_through_the_pipe_and_no_secret_is_in_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let body = format!("{{ echo \"$@\"; cat; echo; /usr/bin/env; }} > {}; {SPEAK}", seen.display());
    let engine = espeak(&folder, &body, SynthesiserSettings::default());
    let said = Sentence { text: "It is\n[[x]] $(reboot) \u{7}fine.".into(), language: Some("de-AT".into()) };
    assert_eq!(speak(&engine, said).await, Ok(vec![1, 2]));
    let seen = fs::read_to_string(seen).unwrap();
    let mut lines = seen.lines();
    assert_eq!(lines.next(), Some("-v de -s 145 --stdin --stdout"));
    assert_eq!(lines.next(), Some("It is x $(reboot) fine."));
    let names: Vec<_> = lines.filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    // A shell adds these by itself.
    let own = ["LANG", "PWD", "SHLVL", "_", "OLDPWD"];
    assert!(names.iter().all(|name| own.contains(name)), "{names:?}");
}

#[tokio::test]
async fn nothing_to_say_starts_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let engine = espeak(&folder, "exit 1", SynthesiserSettings::default());
    assert_eq!(speak(&engine, sentence(" \n\u{7}")).await, Ok(vec![]));
}

#[tokio::test]
async fn a_sentence_that_cannot_be_spoken_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let engine = espeak(&folder, "cat >/dev/null; exit 3", SynthesiserSettings::default());
    let kind = async |said: Sentence| speak(&engine, said).await.unwrap_err().0;
    assert_eq!(kind(sentence("Yes.")).await, SpeechErrorKind::Refused);
    assert_eq!(kind(sentence(&"long ".repeat(500))).await, SpeechErrorKind::Refused);
    let option = Sentence { text: "Yes.".into(), language: Some("--path=/".into()) };
    assert_eq!(kind(option).await, SpeechErrorKind::Refused);
    let missing =
        Synthesiser::new(Voice::Espeak("/no/such/espeak-ng".into()), SynthesiserSettings::default());
    let (kind, detail) = speak(&missing, sentence("Yes.")).await.unwrap_err();
    assert_eq!(kind, SpeechErrorKind::Unavailable);
    assert!(detail.starts_with("/no/such/espeak-ng does not start"), "{detail}");
}

#[tokio::test]
async fn output_that_is_no_sound_or_does_not_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let engine =
        espeak(&folder, "cat >/dev/null; echo hello, this is no WAV file", SynthesiserSettings::default());
    assert_eq!(speak(&engine, sentence("Yes.")).await.unwrap_err().0, SpeechErrorKind::Malformed);
    let endless = espeak(&folder, &format!("{SPEAK}; exec cat /dev/zero"), SynthesiserSettings::default());
    let error = speak(&endless, sentence("Yes.")).await.unwrap_err();
    assert_eq!(error, (SpeechErrorKind::Malformed, "it does not stop speaking".to_owned()));
}

#[tokio::test]
async fn a_process_that_hangs_is_timed_out_and_killed_with_what_it_has_started() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let body = format!("/bin/sleep 1000 & echo $! > {}; wait", pids.display());
    let engine = espeak(&folder, &body, quick());
    assert_eq!(speak(&engine, sentence("Yes.")).await.unwrap_err().0, SpeechErrorKind::TimedOut);
    let pid = fs::read_to_string(pids).unwrap();
    while is_alive(&pid) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn dropping_the_stream_kills_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let body = format!("/bin/sleep 1000 & echo $! > {}; wait", pids.display());
    let engine = espeak(&folder, &body, SynthesiserSettings::default());
    let stream = engine.speak(sentence("Yes."));
    let pid = read_when_there(&pids).await;
    assert!(is_alive(&pid));
    drop(stream);
    while is_alive(&pid) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn one_sentence_too_many_is_busy() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let body = format!("echo $$ > {}; exec /bin/sleep 1000", pids.display());
    let settings = SynthesiserSettings {
        max_sentences: 1,
        max_waiting: 1,
        queue_timeout: Duration::from_millis(50),
        ..SynthesiserSettings::default()
    };
    let engine = espeak(&folder, &body, settings);
    let _speaking = engine.speak(sentence("One."));
    read_when_there(&pids).await;
    let (waiting, refused) =
        tokio::join!(speak(&engine, sentence("Two.")), speak(&engine, sentence("Three.")));
    assert_eq!(waiting.unwrap_err().0, SpeechErrorKind::Busy, "after a while");
    assert_eq!(refused.unwrap_err().0, SpeechErrorKind::Busy, "at once");
}

/// Answers each line with the number of lines so far as its only sample.
fn counting(before: &str) -> String {
    format!(
        "{before}{READY}; n=0; while read -r line; do n=$((n + 1)); printf \"A\\002\\0\\0\\0\\00$n\\0E\\0\\0\\0\\0\"; done"
    )
}

#[tokio::test]
async fn piper_stays_for_the_next_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let engine = piper(&folder, &counting(""), SynthesiserSettings::default());
    assert_eq!(engine.name(), "local/piper/en_US-joe-medium");
    engine.warm_up().await.unwrap();
    for n in 1..=3 {
        assert_eq!(speak(&engine, sentence("Yes.")).await, Ok(vec![n]));
    }
    let german = Sentence { text: "Ja.".into(), language: Some("de".into()) };
    assert_eq!(speak(&engine, german).await, Ok(vec![4]), "with an accent");
}

#[tokio::test]
async fn piper_that_has_died_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let once = format!("{READY}; read -r line; printf 'A\\002\\0\\0\\0\\007\\0E\\0\\0\\0\\0'");
    let engine = piper(&folder, &once, SynthesiserSettings::default());
    for _ in 0..3 {
        assert_eq!(speak(&engine, sentence("Yes.")).await, Ok(vec![7]));
    }
}

#[tokio::test]
async fn piper_finishes_a_sentence_without_a_listener_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let settings = SynthesiserSettings { max_sentences: 1, ..SynthesiserSettings::default() };
    let engine = piper(&folder, &counting(""), settings);
    engine.warm_up().await.unwrap();
    let mut stream = engine.speak(sentence("One."));
    assert!(stream.next().await.is_some());
    drop(stream);
    assert_eq!(speak(&engine, sentence("Two.")).await, Ok(vec![2]), "the same process");
}

#[tokio::test]
async fn piper_that_fails_hangs_or_talks_nonsense_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let error = async |body: &str, settings| {
        speak(&piper(&folder, body, settings), sentence("Yes.")).await.unwrap_err()
    };
    let failed = format!("{READY}; read -r line; printf 'X\\012\\0\\0\\0ValueError'; read -r line");
    let (kind, detail) = error(&failed, SynthesiserSettings::default()).await;
    assert_eq!((kind, detail.as_str()), (SpeechErrorKind::Malformed, "it failed with ValueError"));
    let (kind, _) = error("exec /bin/sleep 1000", quick()).await;
    assert_eq!(kind, SpeechErrorKind::TimedOut);
    let (kind, _) = error("exit 1", SynthesiserSettings::default()).await;
    assert_eq!(kind, SpeechErrorKind::Unavailable);
    for nonsense in ["echo hello", r"printf 'A\377\377\377\377'", r"printf 'R\004\0\0\0\0\0\0\0'"] {
        let (kind, _) =
            error(&format!("{nonsense}; exec /bin/sleep 1000"), SynthesiserSettings::default()).await;
        assert_eq!(kind, SpeechErrorKind::Malformed, "{nonsense}");
    }
}

#[tokio::test]
async fn say_writes_a_file_that_is_read_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let body = format!(
        "for out; do :; done; {{ echo \"$out\"; cat; echo; }} > {}; {SPEAK} > \"$out\"",
        seen.display()
    );
    let engine = Synthesiser::new(Voice::Say(script(&folder, &body)), SynthesiserSettings::default());
    assert_eq!(speak(&engine, sentence("Yes.")).await, Ok(vec![1, 2]));
    let seen = fs::read_to_string(seen).unwrap();
    let (path, text) = seen.split_once('\n').unwrap();
    assert_eq!(text, "Yes.\n");
    assert!(!Path::new(path).exists());
}
