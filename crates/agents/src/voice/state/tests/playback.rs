//! How much the user has heard.

use std::time::Duration;

use tokio::time::Instant;

use crate::voice::state::playback::{HeardPart, Playback};

/// A second of model audio in bytes.
const SECOND: usize = 48_000;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn without_reports_the_clock_tells_what_was_heard() {
    let (mut playback, begin) = (Playback::default(), Instant::now());
    playback.add(2 * SECOND, begin);
    assert_eq!(playback.heard(begin + ms(50)), Some(ms(0)), "it is buffered first");
    assert_eq!(playback.heard(begin + ms(600)), Some(ms(500)));
    assert_eq!(playback.played(begin + ms(60_000)), ms(2_000));
    assert!(!playback.is_playing(begin + ms(60_000)));
    assert_eq!(playback.unplayed(), ms(2_000), "the client has not confirmed it");
}

#[test]
fn a_report_corrects_the_clock() {
    let (mut playback, begin) = (Playback::default(), Instant::now());
    playback.add(2 * SECOND, begin);
    playback.report(ms(250), begin + ms(1_000));
    assert_eq!(playback.played(begin + ms(1_100)), ms(350));
    playback.report(ms(90_000), begin + ms(1_100));
    assert_eq!(playback.played(begin + ms(1_100)), ms(2_000), "no more than was sent");
}

#[test]
fn paused_playback_does_not_go_on() {
    let (mut playback, begin) = (Playback::default(), Instant::now());
    playback.add(2 * SECOND, begin);
    playback.pause(begin + ms(600));
    assert_eq!(playback.played(begin + ms(5_000)), ms(500));
    playback.report(ms(480), begin + ms(700));
    assert_eq!(playback.played(begin + ms(5_000)), ms(480));
    playback.resume(begin + ms(5_000));
    assert_eq!(playback.played(begin + ms(5_100)), ms(580));
}

#[test]
fn each_answer_is_counted_by_itself() {
    let (mut playback, begin) = (Playback::default(), Instant::now());
    playback.add(SECOND, begin);
    playback.end_answer();
    playback.add(SECOND, begin);
    playback.report(ms(1_250), begin);
    let part = |heard, of| Some(HeardPart { heard: ms(heard), of: ms(of) });
    assert_eq!(playback.heard_parts(begin), (part(250, 1_000), part(1_000, 1_000)));
    playback.report(ms(400), begin);
    assert_eq!(playback.heard_parts(begin), (part(0, 1_000), part(400, 1_000)));
}

#[test]
fn audio_that_the_client_never_got_does_not_shift_the_next_answer() {
    let (mut playback, begin) = (Playback::default(), Instant::now());
    playback.add(2 * SECOND, begin);
    playback.report(ms(1_500), begin);
    playback.drain();
    playback.end_answer();
    playback.add(SECOND, begin);
    playback.report(ms(1_700), begin);
    assert_eq!(playback.heard(begin), Some(ms(200)));
}
