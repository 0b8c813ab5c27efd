use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use quarterdeck_testkit::{Tree, tree};

use super::*;

/// A program that keeps a record: what it was called with, how many of it ran, and which are still running.
fn recording(then: &str) -> Tree {
    let files = tree("");
    std::fs::create_dir(files.join("running")).unwrap();
    let script = format!(
        "#!/bin/sh\nhere=\"${{0%/*}}\"\necho \"$*\" >> \"$here/arguments\"\nmkdir \"$here/running/$$\"\n\
         ls \"$here/running\" | wc -l >> \"$here/concurrency\"\n{then}\nrmdir \"$here/running/$$\"\n"
    );
    files.write("espeak-ng", script);
    std::fs::set_permissions(files.join("espeak-ng"), Permissions::from_mode(0o755)).unwrap();
    files
}

fn espeak(files: &Tree, limits: Limits) -> Espeak {
    Espeak::new(files.join("espeak-ng").into(), limits)
}

/// Half a second of silence.
fn wav() -> Vec<u8> {
    let mut wav = b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
    for field in [24_000_u32, 48_000] {
        wav.extend(field.to_le_bytes());
    }
    wav.extend(b"\x02\0\x10\0data\xff\xff\xff\xff");
    wav.extend([0; 24_000]);
    wav
}

const FAST: Limits = Limits {
    max_processes: 2,
    max_waiting: 4,
    queue_timeout: Duration::from_secs(20),
    speech_timeout: Duration::from_secs(20),
};

#[tokio::test]
async fn texts_go_through_the_pipe_and_so_many_processes_run_at_once() {
    let files = recording("cat >> \"$here/texts\"; sleep 0.1; cat \"$here/voice.wav\"");
    files.write("voice.wav", wav());
    let espeak = espeak(&files, Limits { max_waiting: 100, ..FAST });
    let speaking: Vec<_> =
        (0..12).map(|n| tokio::spawn(espeak.speak(&format!("secret {n}; --help\n")))).collect();
    for spoken in speaking {
        assert_eq!(spoken.await.unwrap().map(|samples| samples.len()), Some(12_000));
    }
    let read = |name: &str| std::fs::read_to_string(files.join(name)).unwrap();
    assert!(!read("arguments").contains("secret"), "{}", read("arguments"));
    assert_eq!(read("texts").matches("secret").count(), 12);
    let most = read("concurrency").lines().map(|line| line.trim().parse::<usize>().unwrap()).max();
    assert!(most <= Some(2), "{most:?}");
}

#[tokio::test]
async fn what_waits_too_long_or_is_too_much_becomes_tones() {
    let files = recording("exec sleep 60");
    let limits = Limits {
        queue_timeout: Duration::from_millis(200),
        speech_timeout: Duration::from_millis(600),
        ..FAST
    };
    let espeak = espeak(&files, limits);
    let start = Instant::now();
    let speaking: Vec<_> = (0..20).map(|_| tokio::spawn(espeak.speak("hello"))).collect();
    for spoken in speaking {
        assert_eq!(spoken.await.unwrap(), None);
    }
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    let begun = std::fs::read_to_string(files.join("concurrency")).unwrap().lines().count();
    assert!(begun <= 2, "only two of twenty were begun: {begun}");
    // Killed, and not left behind: another text can be spoken, and so its process begins.
    assert_eq!(espeak.speak("again").await, None);
    assert!(is_gone(&files).await, "every process was ended");
}

#[tokio::test]
async fn a_text_that_is_not_wanted_any_more_ends_its_process() {
    let files = recording("exec sleep 60");
    let espeak = espeak(&files, FAST);
    let speaking = tokio::spawn(espeak.speak("hello"));
    while !files.join("concurrency").exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    speaking.abort();
    let _ = speaking.await;
    assert!(is_gone(&files).await);
    assert_eq!(espeak.0.processes.available_permits(), 2);
}

#[tokio::test]
async fn whatever_else_it_does_is_tones_and_not_an_error() {
    let limits = Limits { speech_timeout: Duration::from_secs(5), ..FAST };
    for then in ["exit 3", "echo no sound", "exec head -c 40000000 /dev/zero", "kill -9 $$"] {
        let files = recording(then);
        assert_eq!(espeak(&files, limits).speak("hello").await, None, "{then}");
    }
    assert_eq!(Espeak::new("/nowhere/espeak-ng".into(), limits).speak("hello").await, None);
    let long = "word ".repeat(10_000);
    let files = recording("wc -c > \"$here/length\"; cat \"$here/voice.wav\"");
    files.write("voice.wav", wav());
    assert!(espeak(&files, limits).speak(&long).await.is_some());
    let length = std::fs::read_to_string(files.join("length")).unwrap();
    assert_eq!(length.trim(), MAX_TEXT_BYTES.to_string());
}

/// The real one, where it is installed.
#[tokio::test]
#[expect(clippy::print_stderr, reason = "that a test could not look is said")]
async fn the_installed_program_takes_its_text_from_the_pipe() {
    let Some(espeak) = Espeak::find().await else {
        return eprintln!("espeak-ng is not installed; nothing was tested");
    };
    let short = espeak.speak("Good morning.").await.unwrap().len();
    let long = espeak.speak("Good morning. How are you today, and what can I do for you?").await.unwrap();
    assert!(short > 2_000 && long.len() > 2 * short, "{short} and {}", long.len());
}

/// Whether no process of the recording program is left, soon.
async fn is_gone(files: &Tree) -> bool {
    let ids: Vec<_> = std::fs::read_dir(files.join("running"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let is_running = |id: &String| {
        // A process that has ended and was not yet waited for is `Z`.
        std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    };
    for _ in 0..500 {
        if !ids.iter().any(is_running) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}
