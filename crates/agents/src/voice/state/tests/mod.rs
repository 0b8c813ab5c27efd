//! The machine by itself: no runtime, no links, no session, and a clock that the tests set.

mod farewells;
mod harness;
mod hearing;
mod playback;
mod properties;
mod questions;
mod receipts;
mod response_latency;

use std::time::Duration;

use expect_test::{Expect, expect};
use quarterdeck_contracts::{LiveErrorKind, LiveEvent, TranscriptPiece, TranscriptStage};

use crate::voice::link::ClientMessage;
use harness::{Step, TestCall, calls, error, heard, said};

const TURN_COMPLETE: LiveEvent<'static> = LiveEvent::TurnComplete { more_follows: false };
const INTERRUPTED: LiveEvent<'static> = LiveEvent::Interrupted { end_follows: true };

/// Plays steps to a call that is set up, and compares everything that went in and came out.
fn check(steps: impl IntoIterator<Item = Step>, expected: Expect) {
    let mut call = TestCall::ready();
    steps.into_iter().for_each(|step| call.play(step));
    expected.assert_eq(&call.log());
}

fn text(text: &'static str) -> Step {
    Step::Client(ClientMessage::Text(text))
}

#[test]
fn a_tool_call_is_answered_once_to_the_connection_that_asked() {
    check(
        [
            Step::Provider(heard("Book it.")),
            Step::Provider(calls(&["a", "b"])),
            Step::Complete(0),
            Step::Lose(LiveErrorKind::Lost),
            Step::Wait(Duration::from_millis(250)),
            Step::Open,
            Step::Complete(0),
        ],
        expect![[r#"
            > provider user said "Book it."
            client: user "Book it."
            > provider calls a b
            client: tool call a
            client: tool call b
            > completed a
            client: tool result a
            provider: result a ok silent=false last=false
            > provider lost
            return answer
            connect ["Book it."] asks=true
            > provider opened
            accept
            > completed b
            client: tool result b
            return answer
        "#]],
    );
}

#[test]
fn text_that_is_written_while_the_provider_is_away_reaches_the_next_connection_once() {
    check(
        [
            text("One?"),
            Step::Lose(LiveErrorKind::Lost),
            Step::Wait(Duration::from_millis(250)),
            text("Two?"),
            Step::Open,
            Step::Provider(said("Both.")),
            Step::Provider(TURN_COMPLETE),
        ],
        expect![[r#"
            > client Text("One?")
            client: user "One?"
            provider: Text("One?")
            > provider lost
            connect ["One?"] asks=true
            > client Text("Two?")
            client: user "Two?"
            > provider opened
            accept
            provider: Text("Two?")
            > provider model said "Both."
            client: model "Both."
            > provider turn complete
            client: turn complete
        "#]],
    );
}

#[test]
fn notes_and_withdrawn_text_reach_the_next_connection_without_asking() {
    check(
        [
            Step::Lose(LiveErrorKind::Lost),
            Step::Wait(Duration::from_millis(250)),
            Step::SessionNote("pay was approved".into()),
            text("One?"),
            Step::Client(ClientMessage::Interrupt),
            Step::Open,
        ],
        expect![[r#"
            > provider lost
            connect [] asks=false
            > client Text("One?")
            client: user "One?"
            > client Interrupt
            client: interrupted
            > provider opened
            accept
            provider: Note { text: "[Note: pay was approved]\nOne?", asks: false }
        "#]],
    );
}

#[test]
fn no_audio_of_a_suppressed_response_reaches_the_client() {
    check(
        [
            Step::Provider(heard("Tell me.")),
            Step::ModelAudio,
            Step::Client(ClientMessage::Interrupt),
            Step::ModelAudio,
            Step::Provider(said("Once")),
            Step::Provider(TURN_COMPLETE),
            Step::Provider(heard("And now?")),
            Step::ModelAudio,
        ],
        expect![[r#"
            > provider user said "Tell me."
            client: user "Tell me."
            > provider audio: played
            > client Interrupt
            provider: Interrupt { heard: Some(0ns) }
            client: interrupted
            > provider audio: dropped
            > provider model said "Once"
            > provider turn complete
            > provider user said "And now?"
            client: user "And now?"
            > provider audio: played
        "#]],
    );
}

#[test]
fn an_interruption_that_the_provider_reports_ends_the_turn_once() {
    check(
        [
            Step::Provider(heard("Tell me.")),
            Step::ModelAudio,
            Step::Provider(INTERRUPTED),
            Step::Provider(said(" upon a time")),
            Step::Provider(TURN_COMPLETE),
            Step::Provider(heard("Stop.")),
        ],
        expect![[r#"
            > provider user said "Tell me."
            client: user "Tell me."
            > provider audio: played
            > provider interrupted
            client: interrupted
            > provider model said " upon a time"
            > provider turn complete
            > provider user said "Stop."
            client: user "Stop."
        "#]],
    );
}

#[test]
fn a_late_answer_waits_for_a_pause_and_is_noted_once() {
    check(
        [
            Step::Provider(heard("Hello?")),
            Step::LateAnswer,
            Step::Provider(said("Yes.")),
            Step::Provider(TURN_COMPLETE),
            Step::Wait(Duration::from_secs(5)),
        ],
        expect![[r#"
            > provider user said "Hello?"
            client: user "Hello?"
            > late answer
            client: tool result earlier-call
            > provider model said "Yes."
            client: model "Yes."
            > provider turn complete
            client: turn complete
            provider: Note { text: "[Note: An earlier call of book has come to this: {\"ok\":true,\"data\":{\"of\":\"earlier-call\"},\"meta\":{\"toolId\":\"book\",\"toolVersion\":\"1.0.0\",\"registryVersion\":\"1\",\"responseSchemaVersion\":\"1.1.0\",\"duration\":0,\"timestamp\":\"2026-01-13T09:00:00.000Z\"}}]", asks: true }
        "#]],
    );
}

#[test]
fn a_farewell_ends_the_call_once_it_was_played() {
    check(
        [
            Step::Provider(heard("Bye.")),
            Step::AskToEnd,
            Step::Provider(calls(&["leave"])),
            Step::Complete(0),
            Step::ModelAudio,
            Step::Provider(TURN_COMPLETE),
            Step::Client(ClientMessage::Drained),
            text("Hello?"),
            Step::Provider(heard("Hello?")),
        ],
        expect![[r#"
            > provider user said "Bye."
            client: user "Bye."
            > provider calls leave
            client: tool call leave
            > completed leave
            client: tool result leave
            provider: result leave ok silent=false last=true
            > provider audio: played
            > provider turn complete
            client: turn complete
            > client Drained
            = Ended
            > client Text("Hello?")
            > provider user said "Hello?"
        "#]],
    );
}

#[test]
fn a_client_that_comes_back_is_greeted_with_what_it_missed() {
    check(
        [
            Step::Provider(heard("Book it.")),
            Step::Provider(calls(&["a"])),
            Step::DetachClient,
            Step::Complete(0),
            Step::Provider(said("Booked.")),
            Step::ModelAudio,
            Step::Provider(TURN_COMPLETE),
            Step::AttachClient,
        ],
        expect![[r#"
            > provider user said "Book it."
            client: user "Book it."
            > provider calls a
            client: tool call a
            > client lost
            > completed a
            provider: result a ok silent=false last=true
            > provider model said "Booked."
            > provider audio: dropped
            > provider turn complete
            > client attached
            client: ready resumed=true
            client: tool result a
            client: model "Booked."
        "#]],
    );
}

#[test]
fn a_client_that_stays_away_ends_the_call() {
    let mut call = TestCall::ready();
    call.play(Step::DetachClient);
    call.play(Step::Wait(Duration::from_secs(19)));
    assert!(!call.state.is_ended());
    call.play(Step::Wait(Duration::from_secs(2)));
    assert!(matches!(call.state.end(), Some(super::CallEnd::ClientGone)));
}

#[test]
fn a_provider_that_stays_away_is_given_up_after_its_last_retry() {
    let mut call = TestCall::ready();
    call.play(Step::Lose(LiveErrorKind::Lost));
    let mut attempts = 0;
    for _ in 0..200 {
        attempts += usize::from(call.is_connecting());
        call.play(Step::FailToOpen(LiveErrorKind::Lost));
        call.play(Step::Wait(Duration::from_millis(250)));
    }
    assert!(matches!(call.state.end(), Some(super::CallEnd::ProviderUnreachable(_))));
    assert_eq!(attempts, 5, "the first attempt was the setup, which counts");
}

#[test]
fn a_wrong_key_is_not_retried() {
    let mut call = TestCall::new();
    call.play(Step::FailToOpen(LiveErrorKind::Auth));
    assert!(
        matches!(call.state.end(), Some(super::CallEnd::ProviderUnreachable(e)) if e == error(LiveErrorKind::Auth))
    );
}

#[test]
fn a_connection_with_outdated_context_is_rejected_while_the_older_one_stands() {
    check(
        [
            Step::Provider(LiveEvent::GoingAway { left: Some(Duration::from_secs(50)) }),
            Step::Wait(Duration::from_millis(300)),
            text("Two?"),
            Step::Open,
        ],
        expect![[r#"
            > provider GoingAway { left: Some(50s) }
            connect [] asks=false
            > client Text("Two?")
            client: user "Two?"
            provider: Text("Two?")
            > provider opened
            reject
        "#]],
    );
}

#[test]
fn the_words_of_a_turn_are_the_users_own_and_stand_in_the_transcript() {
    let piece = |text: &'static str, stage| {
        Step::Provider(LiveEvent::InputTranscript(TranscriptPiece { text: text.into(), stage }))
    };
    let mut call = TestCall::ready();
    call.play(piece("Draw a box", TranscriptStage::Interim));
    call.play(piece("Draw", TranscriptStage::Segment));
    call.play(piece(" a fox.", TranscriptStage::Final));
    call.play(text("In red."));
    // What the model says, writes or calls is not theirs.
    call.play(Step::Provider(said("Draw a wolf.")));
    call.play(Step::SessionNote("Draw a bear.".into()));
    call.play(Step::Provider(calls(&["a"])));
    call.play(Step::Complete(0));
    assert_eq!(call.state.session.user_words, "Draw a fox.\n\nIn red.\n");

    call.play(Step::Provider(TURN_COMPLETE));
    call.play(piece("Thanks", TranscriptStage::Segment));
    assert_eq!(call.state.session.user_words, "Thanks", "a turn has words of its own");
}

#[test]
fn what_a_tool_has_handed_over_to_a_call_is_not_the_users_word() {
    let call = TestCall::with_pending_request("Draw a fox.");
    assert_eq!(call.state.session.user_words, "");
}

#[test]
fn a_turn_that_was_answered_before_a_handover_is_not_told_again() {
    check(
        [
            Step::Provider(LiveEvent::GoingAway { left: Some(Duration::from_secs(5)) }),
            text("One?"),
            Step::Provider(said("One.")),
            Step::Provider(LiveEvent::GenerationComplete),
            Step::Wait(Duration::from_millis(2_500)),
            Step::Open,
        ],
        expect![[r#"
            > provider GoingAway { left: Some(5s) }
            > client Text("One?")
            client: user "One?"
            provider: Text("One?")
            > provider model said "One."
            client: model "One."
            > provider GenerationComplete
            connect ["One?", "One."] asks=false
            > provider opened
            client: turn complete
            accept
        "#]],
    );
}
