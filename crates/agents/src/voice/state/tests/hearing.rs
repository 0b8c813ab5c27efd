//! What our own ear makes of the user's audio.

use std::time::Duration;

use quarterdeck_contracts::{LiveErrorKind, LiveEvent};

use super::harness::{Step, TestCall, calls, heard, said};
use crate::voice::Settings;
use crate::voice::link::ClientMessage;
use crate::voice::state::{ClientOutput, ProviderOutput};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A call in which the model is speaking, and the client plays it for two seconds already. Nothing of it comes back from the
/// loudspeaker.
fn talking(settings: Settings, relies_on_ear: bool) -> TestCall {
    let mut call = TestCall::ready_with(settings, relies_on_ear);
    call.play(Step::Provider(heard("Tell me about the Fram.")));
    call.play(Step::Provider(said("The Fram was built by Colin Archer for the ice of the north.")));
    call.play(Step::ModelSpeaks(ms(10_000)));
    call.play(Step::UserIsSilent(ms(2_000)));
    call.to_client.clear();
    call.sent.clear();
    call
}

fn count(call: &TestCall, message: &ClientOutput) -> usize {
    call.to_client.iter().filter(|sent| *sent == message).count()
}

fn interrupts(call: &TestCall) -> Vec<Option<Duration>> {
    let heard = |output: &ProviderOutput| match output {
        ProviderOutput::Interrupt { heard } => Some(*heard),
        _ => None,
    };
    call.sent.iter().filter_map(heard).collect()
}

#[test]
fn a_cough_pauses_playback_and_the_answer_goes_on() {
    let mut call = talking(Settings::default(), false);
    call.play(Step::UserSpeaks(ms(200)));
    assert_eq!(call.to_client, [ClientOutput::Pause]);
    call.play(Step::UserIsSilent(ms(1_000)));
    assert_eq!(call.to_client, [ClientOutput::Pause, ClientOutput::Resume]);
    assert_eq!(call.sent, [], "the provider is not told");
    assert!(call.hear_model_audio());
}

#[test]
fn playback_pauses_within_200_ms_of_speech_and_then_stops() {
    let mut call = talking(Settings::default(), false);
    call.play(Step::UserSpeaks(ms(200)));
    assert_eq!(call.to_client, [ClientOutput::Pause]);
    call.play(Step::UserSpeaks(ms(600)));
    assert_eq!(call.to_client, [ClientOutput::Pause, ClientOutput::Interrupted]);
    let heard = interrupts(&call);
    assert!(matches!(heard[..], [Some(heard)] if (ms(1_900)..ms(2_300)).contains(&heard)), "{heard:?}");
    assert!(!call.hear_model_audio(), "the rest of the response is dropped");
}

#[test]
fn a_provider_that_reports_the_interruption_later_interrupts_nothing() {
    let mut call = talking(Settings::default(), false);
    call.play(Step::UserSpeaks(ms(1_000)));
    call.play(Step::Provider(LiveEvent::Interrupted { end_follows: true }));
    assert_eq!(count(&call, &ClientOutput::Interrupted), 1);
    call.play(Step::Provider(LiveEvent::TurnComplete { more_follows: false }));
    call.play(Step::Provider(heard("Who sailed her?")));
    call.play(Step::Provider(said("Nansen.")));
    assert!(call.hear_model_audio(), "the next answer is heard");
    call.play(Step::Provider(LiveEvent::Interrupted { end_follows: false }));
    assert_eq!(count(&call, &ClientOutput::Interrupted), 2, "another interruption is one");
}

#[test]
fn a_provider_that_reports_the_interruption_first_leaves_nothing_to_interrupt() {
    let mut call = talking(Settings::default(), false);
    call.play(Step::UserSpeaks(ms(200)));
    call.play(Step::Provider(LiveEvent::Interrupted { end_follows: false }));
    call.play(Step::UserSpeaks(ms(1_000)));
    assert_eq!(count(&call, &ClientOutput::Interrupted), 1, "{:?}", call.to_client);
    assert_eq!((count(&call, &ClientOutput::Resume), interrupts(&call)), (0, vec![]));
}

#[test]
fn speech_that_the_provider_noticed_first_belongs_to_a_new_turn() {
    let mut call = talking(Settings::default(), false);
    call.play(Step::Provider(LiveEvent::SpeechStarted));
    call.play(Step::UserSpeaks(ms(1_000)));
    call.play(Step::Provider(LiveEvent::Interrupted { end_follows: false }));
    call.play(Step::Provider(heard("Stop.")));
    let late =
        call.to_client.iter().any(|sent| matches!(sent, ClientOutput::Transcript { is_late: true, .. }));
    assert!(!late, "{:?}", call.to_client);
}

#[test]
fn an_answer_that_is_only_still_being_played_is_cut_off_and_cut_in_the_history() {
    let mut call = talking(Settings::default(), false);
    call.play(Step::Provider(LiveEvent::GenerationComplete));
    call.play(Step::Provider(LiveEvent::TurnComplete { more_follows: false }));
    call.play(Step::Client(ClientMessage::Played(ms(2_500))));
    call.play(Step::UserSpeaks(ms(800)));
    assert_eq!(count(&call, &ClientOutput::Interrupted), 1);
    assert_eq!(interrupts(&call).len(), 1);
    call.play(Step::Provider(LiveEvent::Interrupted { end_follows: false }));
    assert_eq!(count(&call, &ClientOutput::Interrupted), 1, "it is known");
    let replay = call.state.journal().replay("other", &[], false);
    assert_eq!(replay.history.last().map(|turn| turn.text.as_str()), Some("The Fram was"), "{replay:?}");
}

#[test]
fn the_history_holds_what_the_client_has_reported_as_played() {
    let mut call = talking(Settings::default(), false);
    call.play(Step::Client(ClientMessage::Played(ms(5_000))));
    call.play(Step::Client(ClientMessage::Interrupt));
    assert_eq!(interrupts(&call), [Some(ms(5_000))]);
    let replay = call.state.journal().replay("other", &[], false);
    assert_eq!(
        replay.history.last().map(|turn| turn.text.as_str()),
        Some("The Fram was built by Colin"),
        "{replay:?}"
    );
}

#[test]
fn an_answer_that_was_heard_to_the_end_is_not_cut() {
    let mut call = talking(Settings::default(), false);
    call.play(Step::Provider(LiveEvent::TurnComplete { more_follows: false }));
    call.play(Step::Client(ClientMessage::Played(ms(9_990))));
    call.play(Step::Client(ClientMessage::Drained));
    call.play(Step::UserSpeaks(ms(1_000)));
    assert_eq!(call.to_client, [ClientOutput::TurnComplete], "there is nothing to interrupt");
    let replay = call.state.journal().replay("other", &[], false);
    assert!(replay.history.last().is_some_and(|turn| turn.text.ends_with("north.")), "{replay:?}");
}

#[test]
fn speech_while_nothing_is_played_is_left_to_the_provider() {
    let mut call = TestCall::ready();
    call.play(Step::UserSpeaks(ms(1_000)));
    call.play(Step::UserIsSilent(ms(1_000)));
    assert_eq!((call.sent.len(), call.to_client.len()), (0, 1), "{:?} {:?}", call.sent, call.to_client);
}

#[test]
fn a_provider_that_relies_on_our_ear_is_told_when_the_user_speaks() {
    let mut call = talking(Settings { ear: false, ..Settings::default() }, true);
    call.play(Step::UserSpeaks(ms(1_000)));
    assert!(
        matches!(call.sent[..], [ProviderOutput::Interrupt { .. }, ProviderOutput::SpeechStarted]),
        "{:?}",
        call.sent
    );
    call.play(Step::UserIsSilent(ms(1_000)));
    assert_eq!(call.sent.last(), Some(&ProviderOutput::SpeechEnded));
    assert_eq!(call.sent.len(), 3);
}

#[test]
fn a_cough_is_no_turn_of_a_provider_that_relies_on_our_ear() {
    let mut call = TestCall::ready_with(Settings::default(), true);
    call.play(Step::UserSpeaks(ms(200)));
    call.play(Step::UserIsSilent(ms(1_000)));
    assert_eq!(call.sent, []);
}

#[test]
fn a_new_connection_hears_an_utterance_that_the_lost_one_has_not_transcribed() {
    let mut call = TestCall::ready_with(Settings::default(), true);
    call.play(Step::UserSpeaks(ms(1_000)));
    call.play(Step::Lose(LiveErrorKind::Lost));
    call.play(Step::UserIsSilent(ms(900)));
    call.play(Step::Open);
    assert_eq!(call.sent, [ProviderOutput::SpeechStarted, ProviderOutput::SpeechEnded]);
    assert!(call.replayed_frames > 40, "{}", call.replayed_frames);
    let log = call.log();
    let order = ["provider: SpeechStarted", "frames of input audio", "provider: SpeechEnded"]
        .map(|line| log.rfind(line));
    assert!(order.is_sorted() && order[0].is_some(), "{log}");
    call.play(Step::Provider(heard("Who built her?")));
    call.play(Step::Lose(LiveErrorKind::Lost));
    call.play(Step::Wait(ms(2_000)));
    call.play(Step::Open);
    assert_eq!(call.sent, [], "words stand for it now");
}

#[test]
fn a_microphone_that_is_switched_off_in_a_word_lets_playback_go_on() {
    let mut call = talking(Settings::default(), false);
    call.play(Step::UserSpeaks(ms(200)));
    call.play(Step::Wait(ms(600)));
    assert_eq!(call.to_client, [ClientOutput::Pause, ClientOutput::Resume]);
}

#[test]
fn a_microphone_that_is_switched_off_ends_the_utterance() {
    let mut call = TestCall::ready_with(Settings::default(), true);
    call.play(Step::UserSpeaks(ms(1_000)));
    call.play(Step::Wait(ms(3_000)));
    let expected = [ProviderOutput::SpeechStarted, ProviderOutput::SpeechEnded, ProviderOutput::AudioEnded];
    assert_eq!(call.sent, expected);
}

#[test]
fn without_an_ear_only_the_provider_interrupts() {
    let mut call = talking(Settings { ear: false, ..Settings::default() }, false);
    call.play(Step::UserSpeaks(ms(1_000)));
    assert_eq!((call.sent.len(), call.to_client.len()), (0, 0));
}

#[test]
fn a_blocked_client_cannot_talk_over_its_farewell() {
    let mut call = talking(Settings::default(), false);
    call.play(Step::Block("Goodbye."));
    call.play(Step::Provider(calls(&["c1"])));
    call.play(Step::Complete(0));
    call.to_client.clear();
    call.play(Step::UserSpeaks(ms(1_000)));
    assert_eq!(count(&call, &ClientOutput::Pause) + count(&call, &ClientOutput::Interrupted), 0);
}

#[test]
fn notes_wait_until_the_user_has_stopped() {
    let mut call = TestCall::ready();
    call.play(Step::UserSpeaks(ms(1_000)));
    call.play(Step::LateAnswer);
    assert_eq!(call.sent, []);
    call.play(Step::UserIsSilent(ms(1_000)));
    assert!(matches!(call.sent[..], [ProviderOutput::Note { .. }]), "{:?}", call.sent);
}

#[test]
fn the_wait_for_an_answer_counts_from_the_end_of_speech_to_the_first_audio() {
    for relies_on_ear in [false, true] {
        let mut call = TestCall::ready_with(Settings::default(), relies_on_ear);
        call.play(Step::UserSpeaks(ms(2_000)));
        call.play(Step::UserIsSilent(ms(2_000)));
        call.play(Step::Provider(heard("Who built her?")));
        call.play(Step::ModelSpeaks(ms(1_000)));
        call.play(Step::ModelSpeaks(ms(1_000)));
        let [latency] = call.reports.latencies[..] else { panic!("{:?}", call.reports.latencies) };
        assert!((ms(1_800)..ms(2_200)).contains(&latency), "{latency:?}");
    }
}

#[test]
fn a_provider_that_answers_before_our_ear_is_sure_is_measured_too() {
    let mut call = TestCall::ready_with(Settings::default(), false);
    call.play(Step::UserSpeaks(ms(2_000)));
    call.play(Step::UserIsSilent(ms(300)));
    call.play(Step::Provider(heard("Who built her?")));
    call.play(Step::ModelSpeaks(ms(4_000)));
    assert_eq!(call.reports.latencies, [], "the user may go on");
    call.play(Step::UserIsSilent(ms(2_000)));
    let [latency] = call.reports.latencies[..] else { panic!("{:?}", call.reports.latencies) };
    assert!((ms(150)..ms(450)).contains(&latency), "{latency:?}");
}

#[test]
fn what_was_written_is_no_wait_for_an_answer_to_speech() {
    let mut call = TestCall::ready_with(Settings::default(), false);
    call.play(Step::UserSpeaks(ms(2_000)));
    call.play(Step::UserIsSilent(ms(2_000)));
    call.play(Step::Client(ClientMessage::Text("Never mind. Who sailed her?")));
    call.play(Step::ModelSpeaks(ms(1_000)));
    assert_eq!(call.reports.latencies, []);
}
