//! What a user who is blocked hears before the call ends.

use std::time::Duration;

use expect_test::expect;
use proptest::prelude::*;
use quarterdeck_contracts::LiveEvent;
use tokio::time::Instant;

use super::harness::{Step, TestCall, calls, heard, said};
use super::{INTERRUPTED, TURN_COMPLETE, check, text};
use crate::voice::link::ClientMessage;
use crate::voice::session::RequestedEnd;
use crate::voice::state::farewell::{Farewell, resembles};
use crate::voice::state::{CallEnd, ProviderOutput};

const FAREWELL: &str = "Let us take a break.";

/// The user has gone too far, and a tool has blocked them.
fn blocked() -> [Step; 4] {
    [
        Step::Provider(heard("You fool!")),
        Step::Provider(calls(&["ignore"])),
        Step::Block(FAREWELL),
        Step::Complete(0),
    ]
}

fn drained() -> Step {
    Step::Client(ClientMessage::Drained)
}

#[test]
fn a_model_that_says_the_farewell_by_itself_is_not_asked_for_it() {
    let more = [
        Step::Provider(said("Let us take a break.")),
        Step::ModelAudio,
        Step::Provider(TURN_COMPLETE),
        Step::Wait(Duration::from_secs(2)),
        drained(),
    ];
    check(
        blocked().into_iter().chain(more),
        expect![[r#"
            > provider user said "You fool!"
            client: user "You fool!"
            > provider calls ignore
            client: tool call ignore
            > completed ignore
            client: tool result ignore
            provider: result ignore ok silent=false last=true
            > provider model said "Let us take a break."
            client: model "Let us take a break."
            > provider audio: played
            > provider turn complete
            client: turn complete
            > client Drained
            = Ended
        "#]],
    );
}

#[test]
fn a_model_that_says_nothing_is_asked_for_the_farewell_once() {
    let more = [
        Step::Provider(TURN_COMPLETE),
        drained(),
        Step::Wait(Duration::from_secs(4)),
        drained(),
        Step::ModelAudio,
        Step::Provider(said(FAREWELL)),
        Step::Provider(TURN_COMPLETE),
        drained(),
    ];
    check(
        blocked().into_iter().chain(more),
        expect![[r#"
            > provider user said "You fool!"
            client: user "You fool!"
            > provider calls ignore
            client: tool call ignore
            > completed ignore
            client: tool result ignore
            provider: result ignore ok silent=false last=true
            > provider turn complete
            client: turn complete
            > client Drained
            provider: Note { text: "[Note: The call is about to end. Say this farewell to the user now, in these words and nothing else: Let us take a break.]", asks: true }
            > client Drained
            > provider audio: played
            > provider model said "Let us take a break."
            client: model "Let us take a break."
            > provider turn complete
            client: turn complete
            > client Drained
            = Ended
        "#]],
    );
}

#[test]
fn a_model_that_says_something_else_is_asked_for_the_farewell() {
    let mut call = TestCall::ready();
    blocked().into_iter().for_each(|step| call.play(step));
    for step in [
        Step::ModelAudio,
        Step::Provider(said("One moment, please.")),
        Step::Provider(TURN_COMPLETE),
        drained(),
        Step::Wait(Duration::from_secs(4)),
    ] {
        call.play(step);
    }
    assert_eq!(requests(&call), 1, "{}", call.log());
    assert!(!call.state.is_ended());
}

#[test]
fn a_result_that_comes_after_the_turn_does_not_end_the_call_in_silence() {
    let mut call = TestCall::ready();
    for step in [
        Step::Provider(heard("You fool!")),
        Step::Provider(calls(&["ignore"])),
        Step::Provider(TURN_COMPLETE),
        Step::Block(FAREWELL),
        Step::Complete(0),
        Step::Wait(Duration::from_secs(1)),
    ] {
        call.play(step);
    }
    assert!(!call.state.is_ended(), "{}", call.log());
    assert_eq!(requests(&call), 0, "the model is about to speak by itself");
}

#[test]
fn a_model_that_never_speaks_does_not_keep_the_call() {
    let mut call = TestCall::ready();
    blocked().into_iter().for_each(|step| call.play(step));
    call.play(Step::Provider(TURN_COMPLETE));
    call.play(Step::Wait(Duration::from_secs(10)));
    assert_eq!(requests(&call), 1);
    assert!(is_blocked_end(&call), "{}", call.log());
}

#[test]
fn a_blocked_user_is_not_listened_to_and_cannot_talk_over_the_farewell() {
    let more = [Step::ClientAudio, text("Wait!"), Step::ModelAudio, Step::Provider(said(FAREWELL))];
    let mut call = TestCall::ready();
    call.play(Step::ClientAudio);
    blocked().into_iter().chain(more).for_each(|step| call.play(step));
    let log = call.log();
    assert!(log.contains("provider: AudioEnded"), "{log}");
    assert!(log.contains("> client audio: dropped"), "{log}");
    assert!(log.contains("Blocked") && !log.contains("provider: Text"), "{log}");
}

#[test]
fn an_interruption_before_the_farewell_does_not_take_it_away() {
    let mut call = TestCall::ready();
    blocked().into_iter().for_each(|step| call.play(step));
    for step in
        [Step::Provider(INTERRUPTED), Step::Provider(TURN_COMPLETE), Step::Wait(Duration::from_secs(4))]
    {
        call.play(step);
    }
    assert_eq!(requests(&call), 1, "{}", call.log());
    call.play(Step::ModelAudio);
    call.play(Step::Provider(TURN_COMPLETE));
    call.play(drained());
    assert!(is_blocked_end(&call), "{}", call.log());
}

#[test]
fn a_user_who_interrupts_the_farewell_is_blocked_all_the_same() {
    let mut call = TestCall::ready();
    blocked().into_iter().for_each(|step| call.play(step));
    call.play(Step::ModelAudio);
    call.play(Step::Client(ClientMessage::Interrupt));
    call.play(Step::Wait(Duration::from_secs(2)));
    assert!(is_blocked_end(&call), "{}", call.log());
}

#[test]
fn a_client_that_is_gone_is_not_waited_for() {
    let mut call = TestCall::ready();
    blocked().into_iter().for_each(|step| call.play(step));
    call.play(Step::DetachClient);
    call.play(Step::Provider(TURN_COMPLETE));
    assert!(is_blocked_end(&call), "{}", call.log());
}

#[test]
fn a_transcript_resembles_the_farewell_although_it_differs_in_detail() {
    let farewell = "I asked you to stay polite. Let us take a break of five minutes.";
    for said in [
        farewell,
        "I asked you to stay polite let's take a break of 5 minutes",
        "All right. I have asked you to stay polite. Let us take a break, of five minutes!",
    ] {
        assert!(resembles(said, farewell), "{said}");
    }
    for said in ["", "Okay.", "One moment, please.", "I am looking that up for you now."] {
        assert!(!resembles(said, farewell), "{said}");
    }
    assert!(resembles("休憩しましょう。さようなら", "五分間休憩しましょう。"));
    assert!(!resembles("少々お待ちください", "五分間休憩しましょう。"));
    assert!(resembles("", ""), "there is nothing to hear");
}

#[test]
fn without_a_transcript_audio_counts() {
    let end = RequestedEnd { words: Some("Goodbye.".into()), is_block: true };
    let mut farewell = Farewell::new(end, "", Duration::ZERO, Instant::now());
    assert!(!farewell.is_heard());
    farewell.on_audio();
    assert!(farewell.is_heard());
    farewell.add_transcript("One moment.");
    assert!(!farewell.is_heard());
    farewell.add_transcript(" Goodbye.");
    assert!(farewell.is_heard());
}

fn requests(call: &TestCall) -> usize {
    let is_request = |sent: &&ProviderOutput| matches!(sent, ProviderOutput::Note { text, asks: true } if text.contains(FAREWELL));
    call.sent.iter().filter(is_request).count()
}

fn is_blocked_end(call: &TestCall) -> bool {
    matches!(call.state.end(), Some(CallEnd::Ended(end)) if end.is_block())
}

fn after_the_block() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::ModelAudio),
        Just(Step::ClientAudio),
        Just(Step::Provider(said("Let us"))),
        Just(Step::Provider(said(FAREWELL))),
        Just(Step::Provider(said("Hm."))),
        Just(Step::Provider(heard("No!"))),
        Just(Step::Provider(TURN_COMPLETE)),
        Just(Step::Provider(LiveEvent::TurnComplete { more_follows: true })),
        Just(Step::Provider(LiveEvent::SpeechStarted)),
        Just(Step::Provider(INTERRUPTED)),
        Just(drained()),
        Just(text("Wait!")),
        Just(Step::Wait(Duration::from_millis(300))),
        Just(Step::Wait(Duration::from_secs(4))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    /// Whatever the model and the user do, a blocked call ends, as a block, and not before the user has heard the model
    /// or the model was asked for the farewell.
    #[test]
    fn a_blocked_call_ends_and_not_in_silence(steps in prop::collection::vec(after_the_block(), 0..30)) {
        let mut call = TestCall::ready();
        blocked().into_iter().for_each(|step| call.play(step));
        let mut has_heard = false;
        let mut has_asked = false;
        let end = (0..40).flat_map(|_| [Step::Client(ClientMessage::KeepAlive), Step::Wait(Duration::from_secs(3))]);
        for step in steps.into_iter().chain(end) {
            let is_audio = matches!(step, Step::ModelAudio);
            call.play(step);
            has_heard |= is_audio && call.log().contains("audio: played");
            has_asked |= requests(&call) > 0;
            prop_assert!(requests(&call) <= 1, "{}", call.log());
            prop_assert!(!call.state.is_ended() || has_heard || has_asked, "{}", call.log());
        }
        prop_assert!(is_blocked_end(&call), "{}", call.log());
    }
}
