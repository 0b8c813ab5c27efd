//! What is kept of a call for operators: the words of both, and how many of them were heard.

use std::time::Duration;

use quarterdeck_agents::transcripts::{AnswerOutcome, TranscriptTurn, find_conversation};
use serde_json::json;

use super::harness::{
    ClientAction, VoiceHarness, audio, model_said, run_until_idle, tool_calls, turn_complete, user_said,
};

async fn kept(harness: &VoiceHarness) -> Option<Vec<TranscriptTurn>> {
    run_until_idle().await;
    let session = harness.session().await.session_id.unwrap();
    find_conversation(&*harness.store, &session, 0).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_call_is_kept_with_what_was_said_and_what_was_heard_of_it() {
    let harness = VoiceHarness::keeping();
    let client = harness.connect_client().await;
    harness.model.send_all([user_said("Who built her?"), model_said("Colin Archer.")]).await;
    harness.model.send_all([audio(48_000), turn_complete()]).await;
    client.send(ClientAction::Interrupt).await;
    let look = tool_calls(&[("call-0000001", "look", json!({ "what": "x" }))]);
    harness.model.send_all([user_said("And when?"), look]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let long = "In the year 1892 in Larvik on the coast of Norway.";
    harness.model.send_all([model_said(long), audio(480_000)]).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    client.send(ClientAction::Interrupt).await;
    let turns = kept(&harness).await.expect("the call is kept");
    let words: Vec<_> = turns.iter().map(|turn| (turn.user.clone(), turn.answer())).collect();
    let expected = [("Who built her?", "Colin Archer."), ("And when?", long)];
    assert_eq!(words, expected.map(|(user, answer)| (user.to_owned(), answer.to_owned())));
    assert_eq!(turns[1].outcome, AnswerOutcome::Answered);
    assert_eq!(turns[1].parts.len(), 2, "the call stands before the answer: {:?}", turns[1].parts);
    let heard = turns[1].heard.expect("a receipt");
    assert!(heard.is_interrupted && heard.of_words == 11, "{heard:?}");
    assert!(0 < heard.words && heard.words < 11, "{heard:?}");
    assert!(turns[0].heard.is_some_and(|heard| heard.of_words == 2), "{:?}", turns[0].heard);
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_call_is_kept_unless_it_is_switched_on() {
    let harness = VoiceHarness::new();
    let _client = harness.connect_client().await;
    let said = [user_said("Who built her?"), model_said("Colin Archer."), audio(960), turn_complete()];
    harness.model.send_all(said).await;
    assert_eq!(kept(&harness).await, None);
}
