//! The turn by itself: no runtime, no model, no store.

use std::sync::Arc;

use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use quarterdeck_agents::turn::{Ending, Step, Turn};
use quarterdeck_contracts::{
    CallArguments, ChatMessage, ErrorType, Finish, HandlerAnswer, Meta, ModelCall, ModelMessage, ModelPart,
    ModelReply, PartContent, ToolError, ToolResponse, ToolUse, Usage,
};
use serde_json::json;

fn response() -> Arc<ToolResponse> {
    let meta = Meta {
        tool_id: "t".into(),
        tool_version: "1.0.0".into(),
        registry_version: "1".into(),
        response_schema_version: "1.1.0".into(),
        duration: 0,
        timestamp: "2026-01-13T09:00:00.000Z".into(),
        retry_count: None,
        parent_call_id: None,
        background_task_id: None,
        idempotent_cache_hit: None,
        original_turn: None,
    };
    Arc::new(HandlerAnswer::failure(ToolError::new(ErrorType::NotFound, "no")).stamp(meta))
}

fn reply(text: &str, ids: &[Option<&str>]) -> ModelReply {
    let mut parts = Vec::new();
    if !text.is_empty() {
        parts.push(ModelPart::new(PartContent::Text(text.into())));
    }
    for id in ids {
        let call = ModelCall {
            id: id.map(str::to_owned),
            name: "look".into(),
            arguments: CallArguments::Json(json!({})),
        };
        parts.push(ModelPart::new(PartContent::Call(call)));
    }
    ModelReply {
        message: ModelMessage { by: "m".into(), parts },
        finish: Finish::Stop,
        usage: Usage::new(1, 1),
    }
}

fn begin(rounds: u32) -> Turn {
    Turn::begin("hello".into(), "call_p".into(), rounds)
}

fn ids(step: &Step) -> Vec<String> {
    match step {
        Step::RunCalls(calls) => calls.iter().map(|call| call.id.clone()).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_turn_asks_runs_and_asks_again_until_there_is_text() {
    let mut turn = begin(8);
    assert_eq!(turn.next(), Step::AskModel(ToolUse::Allowed));
    turn.apply_reply(reply("Let me look.", &[Some("a"), Some("b")]));
    assert_eq!(ids(&turn.next()), ["a", "b"]);
    turn.record_answer(1, response());
    assert_eq!(ids(&turn.next()), ["a", "b"], "one is still open");
    turn.record_answer(0, response());
    assert_eq!(turn.next(), Step::AskModel(ToolUse::Allowed));
    turn.apply_reply(reply("There.", &[]));
    assert_eq!(turn.next(), Step::Finish(Ending::Answered));
    assert_eq!(turn.messages().len(), 4);
    assert_eq!(turn.usage(), Usage::new(2, 2));
}

#[test]
fn the_last_round_must_end_in_text() {
    let mut turn = begin(2);
    turn.apply_reply(reply("", &[Some("a")]));
    turn.record_answer(0, response());
    assert_eq!(turn.next(), Step::AskModel(ToolUse::Off));
    turn.apply_reply(reply("Enough.", &[Some("b")]));
    assert_eq!(turn.next(), Step::Finish(Ending::Answered));
    let Some(ChatMessage::Model(last)) = turn.messages().last() else { panic!() };
    assert_eq!(last.calls().count(), 0, "a call without an answer is not kept");
}

#[test]
fn a_turn_waits_for_every_confirmation() {
    let mut turn = begin(8);
    turn.apply_reply(reply("", &[Some("a"), Some("b"), Some("c")]));
    turn.await_confirmation(0);
    turn.record_answer(1, response());
    turn.await_confirmation(2);
    assert!(turn.is_suspended());
    assert_eq!(turn.unresolved().collect::<Vec<_>>(), ["a", "c"]);
    let stored = serde_json::to_string(&turn).unwrap();
    let mut turn: Turn = serde_json::from_str(&stored).unwrap();
    assert!(!turn.resolve("b", response()), "it needs no confirmation");
    assert!(turn.resolve("a", response()));
    assert!(!turn.resolve("a", response()), "decided once");
    assert!(turn.is_suspended());
    assert!(turn.resolve("c", response()));
    assert_eq!(turn.next(), Step::AskModel(ToolUse::Allowed));
}

#[test]
fn ids_that_are_missing_or_taken_are_replaced() {
    let mut turn = begin(8);
    turn.apply_reply(reply("", &[None, Some("x"), Some("x"), Some("")]));
    assert_eq!(ids(&turn.next()), ["call_p_1_0", "x", "call_p_1_2", "call_p_1_3"]);
    (0..4).for_each(|place| turn.record_answer(place, response()));
    turn.apply_reply(reply("", &[Some("x"), None]));
    assert_eq!(ids(&turn.next()), ["call_p_2_0", "call_p_2_1"], "an id of an earlier round is taken");
    let told: Vec<_> = turn.last_answers().into_iter().map(|(id, _)| id).collect();
    assert!(told.is_empty(), "the new calls have no answers yet");
}

#[test]
fn empty_cut_and_filtered_answers_end_differently() {
    let ending = |text: &str, finish: Finish| {
        let mut turn = begin(8);
        turn.apply_reply(ModelReply { finish, ..reply(text, &[]) });
        turn.ending().cloned()
    };
    assert_eq!(ending("", Finish::Stop), Some(Ending::Empty));
    assert_eq!(ending(" \n", Finish::Stop), Some(Ending::Empty));
    assert_eq!(ending("So", Finish::Length), Some(Ending::Cut));
    assert_eq!(ending("", Finish::Filtered), Some(Ending::Filtered));
    assert_eq!(ending("So", Finish::Other("odd".into())), Some(Ending::Answered));
}

/// Something that may happen to a turn, in any order.
#[derive(Debug, Clone)]
enum Happens {
    Reply(String, Vec<Option<u8>>),
    Answer(usize),
    Ask(usize),
    Decide(usize),
    Note,
    Stop,
}

fn happens() -> impl Strategy<Value = Happens> {
    let id = prop::option::of(0..4_u8);
    prop_oneof![
        4 => ("[ab ]{0,3}", prop::collection::vec(id, 0..4)).prop_map(|(text, ids)| Happens::Reply(text, ids)),
        4 => (0..5_usize).prop_map(Happens::Answer),
        2 => (0..5_usize).prop_map(Happens::Ask),
        2 => (0..5_usize).prop_map(Happens::Decide),
        1 => any::<bool>().prop_map(|_| Happens::Note),
        1 => any::<bool>().prop_map(|_| Happens::Stop),
    ]
}

#[test]
fn a_note_stands_before_what_the_user_wrote_and_after_what_tools_gave() {
    let user = |text: &str| ChatMessage::User { text: text.into() };
    let mut turn = begin(3);
    turn.add_note("[Note: first]".into());
    turn.add_note("[Note: second]".into());
    assert_eq!(turn.messages(), [user("[Note: second]\n\n[Note: first]\n\nhello")]);

    turn.apply_reply(reply("", &[None]));
    turn.record_answer(0, response());
    turn.add_note("[Note: third]".into());
    assert_eq!(turn.messages().last(), Some(&user("[Note: third]")));
}

proptest! {
    /// Whatever happens, what is kept is a conversation that every provider takes: each message with calls is followed
    /// at once by as many results, and no id is shown twice.
    #[test]
    fn the_conversation_stays_sound(happens in prop::collection::vec(happens(), 0..40), rounds in 1..6_u32) {
        let mut turn = begin(rounds);
        let mut asked = 0;
        for happening in happens {
            match (happening, turn.next()) {
                (Happens::Reply(text, given), Step::AskModel(_)) => {
                    asked += 1;
                    let given: Vec<String> = given.iter().map(|id| id.map_or(String::new(), |id| id.to_string())).collect();
                    let given: Vec<Option<&str>> = given.iter().map(|id| (!id.is_empty()).then_some(id.as_str())).collect();
                    turn.apply_reply(reply(&text, &given));
                }
                (Happens::Answer(place), Step::RunCalls(_)) => turn.record_answer(place, response()),
                (Happens::Ask(place), Step::RunCalls(_)) => turn.await_confirmation(place),
                (Happens::Decide(nth), _) => {
                    let id = turn.unresolved().nth(nth).map(str::to_owned);
                    if let Some(id) = id {
                        prop_assert!(turn.resolve(&id, response()));
                    }
                }
                (Happens::Note, _) => turn.add_note("[Note: so]".into()),
                (Happens::Stop, _) if turn.ending().is_none() => turn.stop(None, Ending::Aborted, |_| response()),
                _ => {}
            }
            let stored = serde_json::to_value(&turn).unwrap();
            prop_assert_eq!(&serde_json::from_value::<Turn>(stored).unwrap(), &turn, "a turn can be stored at any moment");
        }
        prop_assert!(asked <= rounds);
        if turn.ending().is_none() {
            turn.stop(None, Ending::Failed, |_| response());
        }
        let messages = turn.messages();
        for (place, message) in messages.iter().enumerate() {
            let ChatMessage::Model(message) = message else { continue };
            let calls = message.calls().count();
            match messages.get(place + 1) {
                Some(ChatMessage::Tools { results }) => prop_assert_eq!(results.len(), calls),
                _ => prop_assert_eq!(calls, 0),
            }
        }
        let mut shown: Vec<_> = turn.events().filter_map(|event| match event {
            quarterdeck_agents::turn::TurnEvent::Call(call) => Some(call.id),
            _ => None,
        }).collect();
        let all = shown.len();
        shown.sort();
        shown.dedup();
        prop_assert_eq!(shown.len(), all);
    }
}
