use proptest::prelude::*;

use super::*;
use crate::turn_end::AnyPause;

/// `#` is a frame with a voice, `?` one that may have one, and `.` one without.
fn voicing(frame: char) -> Voicing {
    match frame {
        '#' => Voicing::Certain,
        '?' => Voicing::Possible,
        _ => Voicing::Absent,
    }
}

/// Hears frames, and tells after how many of them what was heard.
fn hear(frames: &str, turn_end: &mut dyn TurnEnd) -> Vec<(usize, EarEvent)> {
    let mut tracker = UtteranceTracker::new(EarSettings::default());
    let events = frames.chars().enumerate();
    events.filter_map(|(at, frame)| Some((at + 1, tracker.on_frame(voicing(frame), turn_end)?))).collect()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn speech_is_suspected_then_confirmed_and_ends_after_the_hangover() {
    let frames = format!("{}{}{}", ".".repeat(10), "#".repeat(30), ".".repeat(60));
    assert_eq!(
        hear(&frames, &mut AnyPause),
        [
            (13, EarEvent::Onset),
            (26, EarEvent::SpeechStarted { ago: ms(256) }),
            (78, EarEvent::SpeechEnded { ago: ms(608) }),
        ]
    );
}

#[test]
fn a_cough_is_a_false_alarm() {
    let frames = format!("{}{}", "#".repeat(10), ".".repeat(60));
    assert_eq!(hear(&frames, &mut AnyPause), [(3, EarEvent::Onset), (23, EarEvent::FalseAlarm)]);
}

#[test]
fn a_hiss_counts_once_the_vowel_has_come() {
    assert_eq!(hear("..??#", &mut AnyPause), [(5, EarEvent::Onset)]);
    assert_eq!(hear("..?#?#", &mut AnyPause), [(6, EarEvent::Onset)]);
}

#[test]
fn what_only_may_be_a_voice_is_no_onset_and_however_long_no_speech() {
    assert_eq!(hear(&"?".repeat(500), &mut AnyPause), []);
    let frames = format!("{}#{}", "?".repeat(500), ".".repeat(60));
    assert_eq!(hear(&frames, &mut AnyPause), [(501, EarEvent::Onset), (514, EarEvent::FalseAlarm)]);
}

#[test]
fn clicks_are_not_even_an_onset() {
    assert_eq!(hear(&"##..".repeat(100), &mut AnyPause), []);
}

#[test]
fn a_pause_for_breath_does_not_end_an_utterance() {
    let frames = format!("{}{}{}", "#".repeat(30), ".".repeat(37), "#".repeat(30));
    assert_eq!(hear(&frames, &mut AnyPause).len(), 2, "an onset and its confirmation");
}

#[test]
fn an_unfinished_sentence_waits_longer() {
    struct Unfinished;
    impl TurnEnd for Unfinished {
        fn sounds_finished(&mut self) -> bool {
            false
        }
    }
    let frames = format!("{}{}", "#".repeat(30), ".".repeat(120));
    let events = hear(&frames, &mut Unfinished);
    assert_eq!(events.last(), Some(&(124, EarEvent::SpeechEnded { ago: ms(1_504) })));
}

#[test]
fn an_endless_noise_ends_after_the_longest_utterance() {
    let events = hear(&"#".repeat(4_000), &mut AnyPause);
    assert!(matches!(events[2], (3_750, EarEvent::SpeechEnded { .. })), "{events:?}");
}

proptest! {
    #[test]
    fn events_come_in_order_and_every_onset_is_resolved(frames in "([?]{0,30}[#]{0,30}[.]{0,60}){0,12}") {
        let mut tracker = UtteranceTracker::new(EarSettings::default());
        let mut heard: Vec<EarEvent> =
            frames.chars().filter_map(|frame| tracker.on_frame(voicing(frame), &mut AnyPause)).collect();
        heard.extend(tracker.stop());
        prop_assert_eq!(tracker.stop(), None, "nothing is left");
        let mut expected = "silence";
        for event in heard {
            expected = match (expected, event) {
                ("silence", EarEvent::Onset) => "suspected",
                ("suspected", EarEvent::FalseAlarm) => "silence",
                ("suspected", EarEvent::SpeechStarted { .. }) => "speech",
                ("speech", EarEvent::SpeechEnded { .. }) => "silence",
                other => return Err(TestCaseError::fail(format!("{other:?}"))),
            };
        }
        prop_assert_eq!(expected, "silence");
    }

    #[test]
    fn less_voice_than_the_minimum_is_never_speech(voiced in 0_usize..16, silence in 13_usize..40) {
        let frames = format!("{}{}", "#".repeat(voiced), ".".repeat(silence)).repeat(8);
        let is_speech = |event: &(usize, EarEvent)| matches!(event.1, EarEvent::SpeechStarted { .. });
        prop_assert!(!hear(&frames, &mut AnyPause).iter().any(is_speech));
    }
}
