//! What is reported of what the user has heard.

use std::time::Duration;

use quarterdeck_contracts::LiveEvent;
use quarterdeck_runtime::HeardReceipt;

use super::harness::{Step, TestCall, heard, said};
use crate::voice::link::ClientMessage;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A call in which the user is answered with ten words, which take five seconds.
fn answered() -> TestCall {
    let mut call = TestCall::ready();
    call.play(Step::Provider(heard("Tell me about the Fram.")));
    call.play(Step::Provider(said("The Fram was built by Colin Archer in the year")));
    call.play(Step::ModelSpeaks(ms(5_000)));
    call
}

fn turn_complete() -> Step {
    Step::Provider(LiveEvent::TurnComplete { more_follows: false })
}

fn receipt(heard: u64, words: u32, is_interrupted: bool) -> HeardReceipt {
    let (heard, of) = (ms(heard), ms(5_000));
    HeardReceipt { turn: 1, heard, of, words, of_words: 10, is_interrupted }
}

#[test]
fn an_answer_is_reported_when_the_client_has_played_it() {
    let mut call = answered();
    call.play(turn_complete());
    call.play(Step::Client(ClientMessage::Played(ms(4_900))));
    assert_eq!(call.reports.heard, []);
    call.play(Step::Client(ClientMessage::Played(ms(5_000))));
    call.play(Step::Client(ClientMessage::Drained));
    call.play(Step::Wait(ms(10_000)));
    assert_eq!(call.reports.heard, [receipt(5_000, 10, false)], "once");
}

#[test]
fn of_a_client_that_reports_nothing_the_clock_tells() {
    let mut call = answered();
    call.play(turn_complete());
    call.play(Step::Wait(ms(4_000)));
    assert_eq!(call.reports.heard, []);
    call.play(Step::Wait(ms(3_000)));
    assert_eq!(call.reports.heard, [receipt(5_000, 10, false)]);
}

#[test]
fn an_interrupted_answer_is_reported_up_to_the_word_that_was_heard() {
    for is_over in [false, true] {
        let mut call = answered();
        if is_over {
            call.play(turn_complete());
        }
        call.play(Step::Client(ClientMessage::Played(ms(2_500))));
        call.play(Step::Client(ClientMessage::Interrupt));
        // Half of the text ends in the middle of its sixth word.
        assert_eq!(call.reports.heard, [receipt(2_500, 5, true)], "over: {is_over}");
        call.play(Step::Provider(LiveEvent::Interrupted { end_follows: false }));
        call.play(Step::Wait(ms(10_000)));
        assert_eq!(call.reports.heard.len(), 1, "once");
    }
}

#[test]
fn what_a_client_that_is_gone_has_not_played_was_not_heard() {
    let mut call = answered();
    call.play(turn_complete());
    call.play(Step::Client(ClientMessage::Played(ms(1_000))));
    call.play(Step::DetachClient);
    call.play(Step::Wait(ms(10_000)));
    assert_eq!(call.reports.heard, []);
    call.play(Step::AttachClient);
    assert_eq!(call.reports.heard, [receipt(1_000, 2, true)]);
}

#[test]
fn a_user_who_hangs_up_has_heard_what_was_played() {
    let mut call = answered();
    call.play(Step::Client(ClientMessage::Played(ms(2_500))));
    call.play(Step::Client(ClientMessage::Stop));
    assert_eq!(call.state.take_receipts(), [receipt(2_500, 5, true)]);
}

#[test]
fn an_answer_without_a_transcript_is_reported_by_its_time() {
    let mut call = TestCall::ready();
    call.play(Step::Provider(heard("Sing.")));
    call.play(Step::ModelSpeaks(ms(5_000)));
    call.play(turn_complete());
    call.play(Step::Client(ClientMessage::Drained));
    let expected = HeardReceipt { words: 0, of_words: 0, ..receipt(5_000, 0, false) };
    assert_eq!(call.reports.heard, [expected]);
}
