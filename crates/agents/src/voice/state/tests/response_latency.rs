//! From when to when the wait for an answer counts.

use std::time::Duration;

use tokio::time::Instant;

use crate::voice::state::response_latency::{MAX_RESPONSE_LATENCY, ResponseLatency};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn the_first_audio_after_the_end_of_speech_counts_and_no_other() {
    let (mut latency, start) = (ResponseLatency::default(), Instant::now());
    assert_eq!(latency.on_audio(start), None, "nothing was said");
    latency.on_speech_started();
    assert_eq!(latency.on_speech_ended(start + ms(1_000)), None);
    assert_eq!(latency.on_audio(start + ms(1_650)), Some(ms(650)));
    assert_eq!(latency.on_audio(start + ms(1_670)), None);
}

#[test]
fn an_answer_that_begins_before_our_ear_is_sure_counts_from_the_end_of_speech() {
    let (mut latency, start) = (ResponseLatency::default(), Instant::now());
    latency.on_speech_started();
    assert_eq!(latency.on_audio(start + ms(1_300)), None);
    assert_eq!(latency.on_audio(start + ms(1_320)), None);
    assert_eq!(latency.on_speech_ended(start + ms(1_000)), Some(ms(300)));
    assert_eq!(latency.on_audio(start + ms(1_700)), None, "it has been counted");
}

#[test]
fn audio_from_before_the_end_of_speech_is_no_answer() {
    let (mut latency, start) = (ResponseLatency::default(), Instant::now());
    latency.on_speech_started();
    latency.on_audio(start + ms(500));
    assert_eq!(latency.on_speech_ended(start + ms(1_000)), None);
    assert_eq!(latency.on_audio(start + ms(1_800)), Some(ms(800)));
}

#[test]
fn a_turn_that_is_over_and_a_minute_of_silence_are_no_latency() {
    let (mut latency, start) = (ResponseLatency::default(), Instant::now());
    latency.on_speech_started();
    latency.on_speech_ended(start);
    latency.forget();
    assert_eq!(latency.on_audio(start + ms(100)), None);
    latency.on_speech_started();
    latency.on_speech_ended(start);
    assert_eq!(latency.on_audio(start + MAX_RESPONSE_LATENCY + ms(1)), None);
}
