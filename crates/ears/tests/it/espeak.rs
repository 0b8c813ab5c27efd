//! A synthesiser's speech, where one is installed.

use std::process::Command;
use std::time::Duration;

use quarterdeck_ears::{Ear, EarEvent};

use crate::sound::{RATE, hear, silence};

/// Mono samples at 16 kHz of a sentence; `None` where there is no synthesiser.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "where programs are required, and saying that one is not there"
)]
fn espeak(sentence: &str) -> Option<Vec<i16>> {
    let output = match Command::new("espeak-ng").args(["-v", "en", "--stdout", sentence]).output() {
        Ok(output) if output.status.success() => output.stdout,
        _ => {
            let is_required = std::env::var("QUARTERDECK_REQUIRE_CLIENTS").is_ok_and(|value| value == "1");
            assert!(!is_required, "espeak-ng is not installed");
            eprintln!("SKIPPED: espeak-ng is not installed");
            return None;
        }
    };
    // A header of 44 bytes, then 22050 Hz.
    let samples: Vec<i16> =
        output[44..].as_chunks().0.iter().map(|sample| i16::from_le_bytes(*sample)).collect();
    let count = samples.len() * RATE / 22_050;
    Some((0..count).map(|at| samples[at * 22_050 / RATE]).collect())
}

#[test]
fn a_synthesised_sentence_is_one_utterance() {
    let Some(sentence) = espeak("When was the lighthouse built, and who kept it?") else { return };
    let pause = silence(Duration::from_secs(1), RATE);
    let events = hear(&mut Ear::default(), &[&*pause, &*sentence, &*pause].concat(), |_| None);
    let [(onset, EarEvent::Onset), (_, EarEvent::SpeechStarted { .. }), (_, EarEvent::SpeechEnded { .. })] =
        events[..]
    else {
        panic!("an onset, speech and its end: {events:?}")
    };
    // The synthesiser begins with some silence of its own.
    assert!((1_000..1_250).contains(&onset), "onset after {} ms", onset - 1_000);
}
