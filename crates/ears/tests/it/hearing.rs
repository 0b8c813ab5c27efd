//! What is speech and what is not.

use std::time::Duration;

use quarterdeck_ears::{Ear, EarEvent};
use quarterdeck_testkit::sound::{Noise, speech};

use crate::sound::{RATE, hear, silence};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn started(events: &[(u64, EarEvent)]) -> Option<u64> {
    events.iter().find_map(|(at, event)| matches!(event, EarEvent::SpeechStarted { .. }).then_some(*at))
}

#[test]
fn speech_is_noticed_within_200_ms_and_ends_after_the_hangover() {
    let sound = [silence(ms(500), RATE), speech(ms(2_000), 0.3, RATE), silence(ms(1_500), RATE)].concat();
    let events = hear(&mut Ear::default(), &sound, |_| None);
    let [
        (onset, EarEvent::Onset),
        (start, EarEvent::SpeechStarted { .. }),
        (end, EarEvent::SpeechEnded { ago }),
    ] = events[..]
    else {
        panic!("an onset, speech and its end: {events:?}")
    };
    assert!((500..=700).contains(&onset), "onset after {} ms", onset - 500);
    assert!(start <= 950, "confirmed after {} ms", start - 500);
    assert!((3_000..=3_400).contains(&end), "{end}");
    assert!(ago >= ms(600), "{ago:?}");
}

#[test]
fn the_same_sound_gives_the_same_events() {
    let sound = [silence(ms(200), RATE), speech(ms(1_000), 0.2, RATE), silence(ms(900), RATE)].concat();
    assert_eq!(hear(&mut Ear::default(), &sound, |_| None), hear(&mut Ear::default(), &sound, |_| None));
}

#[test]
fn noise_and_tones_are_not_speech() {
    let mut noise = Noise(3);
    for loudness in [100.0, 300.0, 600.0, 2_000.0, 8_000.0] {
        let hiss: Vec<i16> = (0..3 * RATE).map(|_| (noise.sample() * loudness) as i16).collect();
        assert_eq!(started(&hear(&mut Ear::default(), &hiss, |_| None)), None, "hiss, {loudness}");
    }
    for frequency in [50.0, 440.0, 1_000.0] {
        let turn = std::f32::consts::TAU * frequency / RATE as f32;
        let tone: Vec<i16> = (0..3 * RATE).map(|at| ((at as f32 * turn).sin() * 2_000.0) as i16).collect();
        assert_eq!(started(&hear(&mut Ear::default(), &tone, |_| None)), None, "tone, {frequency} Hz");
    }
}

#[test]
fn a_knock_is_at_most_a_false_alarm() {
    let mut sound = silence(ms(2_000), RATE);
    let mut noise = Noise(5);
    for at in 0..RATE / 20 {
        sound[RATE + at] = (noise.sample() * 20_000.0 * (-(at as f32) / 200.0).exp()) as i16;
    }
    assert_eq!(started(&hear(&mut Ear::default(), &sound, |_| None)), None);
}

#[test]
fn the_echo_of_an_answer_is_not_taken_for_the_user() {
    let (answer, mut ear) = (speech(ms(6_000), 0.4, 24_000), Ear::default());
    ear.add_playback(&crate::sound::pcm(&answer));
    // What comes back is softer, a fifth of a second late, and at another rate.
    let echo: Vec<i16> = speech(ms(6_000), 0.08, RATE);
    let heard = [silence(ms(200), RATE), echo].concat();
    let events = hear(&mut ear, &heard, |now| Some(now.min(ms(6_000))));
    assert_eq!(started(&events), None, "{events:?}");
}

#[test]
fn a_user_who_talks_over_the_echo_is_heard() {
    let (answer, mut ear) = (speech(ms(8_000), 0.4, 24_000), Ear::default());
    ear.add_playback(&crate::sound::pcm(&answer));
    let mut heard = speech(ms(8_000), 0.02, RATE);
    let user = speech(ms(2_000), 0.4, RATE);
    for (at, sample) in user.iter().enumerate() {
        // A different place in the sentence, so that the two do not rise and fall together.
        heard[4 * RATE + 1_700 + at] = heard[4 * RATE + 1_700 + at].saturating_add(*sample);
    }
    let events = hear(&mut ear, &heard, |now| Some(now.min(ms(8_000))));
    let at = started(&events);
    assert!(at.is_some_and(|at| (4_106..4_900).contains(&at)), "{events:?}");
}

#[test]
fn a_microphone_that_stops_ends_the_utterance() {
    let mut ear = Ear::default();
    hear(&mut ear, &speech(ms(1_000), 0.3, RATE), |_| None);
    assert!(ear.hears_speech());
    assert!(matches!(ear.stop(), Some(EarEvent::SpeechEnded { .. })));
    assert_eq!((ear.stop(), ear.hears_speech()), (None, false));
}
