//! Every transition, from plain calls.

use quarterdeck_contracts::{EndAfter, Intent, Mode, RequestedIntent};
use serde_json::{Value, json};

use super::*;

const FAREWELL: Intent = Intent::EndVoiceSession { after: EndAfter::FarewellSpoken };
const END: Intent = Intent::EndVoiceSession { after: EndAfter::CurrentTurn };

fn voice() -> StateController {
    StateController::new(SessionState::new(Mode::Voice))
}

fn apply(controller: &mut StateController, intent: Intent, data: Option<&Value>) -> Option<&'static str> {
    controller.apply(&[intent.into()], Cause { call_id: "c", data, block_message: None })[0].reason
}

fn reason(state: &SessionState) -> Option<&str> {
    state.pending_end_voice_session.as_ref().map(|pending| pending.reason.as_str())
}

#[test]
fn an_end_waits_for_the_turn_and_for_the_ear() {
    let mut controller = voice();
    let data = json!({ "reason": "task_complete", "finalMessage": "Bye.", "textResponse": "Notes" });
    assert_eq!(apply(&mut controller, END, Some(&data)), None);
    assert_eq!(controller.mark_heard(), None, "the turn is not complete");
    controller.complete_turn();
    let end = controller.mark_heard().unwrap();
    assert_eq!(end.reason, "task_complete");
    assert_eq!((end.closing_message.as_deref(), end.text_response.as_deref()), (Some("Bye."), Some("Notes")));
    assert!(controller.state().is_active, "the caller ends the session");
    assert!(controller.end("task_complete").applied);
    assert_eq!(controller.end("again").reason, Some("the session has ended"));
}

#[test]
fn an_end_whose_generation_was_cut_is_void() {
    let mut controller = voice();
    apply(&mut controller, END, Some(&json!({})));
    assert_eq!(reason(controller.state()), Some("user_requested"));
    assert!(controller.interrupt().is_some());
    controller.complete_turn();
    assert_eq!(controller.mark_heard(), None);
}

#[test]
fn barging_in_does_not_undo_a_block() {
    let mut controller = voice();
    let data = json!({});
    let cause = Cause { call_id: "c", data: Some(&data), block_message: Some("Goodbye.") };
    let intents = [FAREWELL.into(), Intent::SuppressAudio { value: true }.into()];
    assert!(controller.apply(&intents, cause).iter().all(|transition| transition.applied));
    assert!(!controller.state().should_suppress_audio, "the farewell must be heard");
    assert!(controller.interrupt().is_none());
    controller.complete_turn();
    let end = controller.mark_heard().unwrap();
    assert_eq!((end.reason.as_str(), end.closing_message.as_deref()), ("blocked", Some("Goodbye.")));
    assert!(controller.state().should_suppress_audio);
}

#[test]
fn suppression_waits_for_a_farewell_whatever_the_order() {
    let mut controller = voice();
    let data = json!({});
    let cause = Cause { call_id: "c", data: Some(&data), block_message: None };
    controller.apply(&[Intent::SuppressAudio { value: true }.into(), FAREWELL.into()], cause);
    assert!(!controller.state().should_suppress_audio);
}

#[test]
fn a_second_end_is_refused_but_a_block_takes_over() {
    let mut controller = voice();
    let data = json!({});
    assert_eq!(apply(&mut controller, END, Some(&data)), None);
    assert_eq!(apply(&mut controller, END, Some(&data)), Some("the session is ending already"));
    controller.apply(
        &[FAREWELL.into()],
        Cause { call_id: "c", data: Some(&data), block_message: Some("Goodbye.") },
    );
    assert_eq!(reason(controller.state()), Some("blocked"));
}

#[test]
fn of_a_failed_call_only_suppressions_apply() {
    let mut controller = voice();
    assert_eq!(apply(&mut controller, END, None), Some("the call failed"));
    assert_eq!(
        apply(&mut controller, Intent::SetPendingMessage { message: None }, None),
        Some("the call failed")
    );
    assert_eq!(apply(&mut controller, Intent::SuppressAudio { value: true }, None), None);
    assert_eq!(apply(&mut controller, Intent::SuppressTranscript { value: true }, None), None);
    assert!(controller.state().should_suppress_audio && controller.state().should_suppress_transcript);
}

#[test]
fn voice_intents_have_no_effect_in_text_and_a_message_does() {
    let mut controller = StateController::new(SessionState::new(Mode::Text));
    let data = json!({});
    assert_eq!(apply(&mut controller, END, Some(&data)), Some("it has no effect in text"));
    let message = Intent::SetPendingMessage { message: Some("later".into()) };
    assert_eq!(apply(&mut controller, message, Some(&data)), None);
    assert_eq!(controller.take_pending_message().as_deref(), Some("later"));
    assert_eq!(controller.take_pending_message(), None);
}

#[test]
fn unknown_intents_are_refused_and_nothing_changes_after_the_end() {
    let mut controller = voice();
    let data = json!({});
    let cause = Cause { call_id: "c", data: Some(&data), block_message: None };
    let unknown = RequestedIntent::Unknown(json!({ "type": "APPROVE_ALL" }));
    assert_eq!(controller.apply(&[unknown], cause)[0].reason, Some("there is no such intent"));
    controller.end("x");
    assert_eq!(
        apply(&mut controller, Intent::SuppressAudio { value: true }, Some(&data)),
        Some("the session has ended")
    );
}

#[test]
fn audio_that_a_failed_call_wants_dropped_waits_for_no_farewell() {
    let mut controller = voice();
    let intents = [FAREWELL.into(), Intent::SuppressAudio { value: true }.into()];
    let transitions = controller.apply(&intents, Cause { call_id: "c", data: None, block_message: None });
    assert_eq!(transitions.iter().map(|it| it.applied).collect::<Vec<_>>(), [false, true]);
    assert!(controller.state().should_suppress_audio);
}
