//! Tool calls: their ids, their results, fillers, and what waits for them.

use std::collections::HashSet;
use std::time::Duration;

use expect_test::expect;
use quarterdeck_contracts::LiveInput;
use serde_json::json;

use super::harness::{Reply, Talk, says, script};

const SECOND: Duration = Duration::from_secs(1);

fn calls(text: &str, names: &[&'static str]) -> Reply {
    Reply::Calls(text.to_owned(), names.to_vec())
}

#[tokio::test(start_paused = true)]
async fn the_model_calls_a_tool_and_speaks_about_its_result() {
    let mut talk = Talk::open(script([calls("Let me look.", &["kb_search"]), says("Colin Archer.")])).await;
    talk.send(LiveInput::Text("Who built her?"));
    talk.run_until("calls").await;
    talk.run_for(3 * SECOND).await;
    talk.answer(0, json!({"hits": ["Archer"]}), false);
    talk.run_until("turn complete, more follows: false").await;
    expect![[r#"
        usage
        calls kb_search
        model Segment Let me look.
        audio
        turn complete, more follows: true
        usage
        model Segment  Colin Archer.
        audio
        model Final 
        GenerationComplete
        turn complete, more follows: false
    "#]]
    .assert_eq(&talk.take_lines());
    expect![[r#"
        user: Who built her?
        model: Let me look. +kb_search
        tools: {"hits":["Archer"]}
    "#]]
    .assert_eq(&talk.last_request());
}

#[tokio::test(start_paused = true)]
async fn the_model_is_asked_again_after_the_last_of_several_results() {
    let mut talk = Talk::open(script([calls("", &["a", "b"]), calls("", &["a"]), says("Done.")])).await;
    talk.send(LiveInput::Text("Go"));
    talk.run_until("calls").await;
    let first: Vec<_> = talk.calls.clone();
    talk.answer(1, json!(2), false);
    talk.run_for(SECOND).await;
    assert_eq!(talk.requests(), 1);
    talk.answer(0, json!(1), false);
    talk.run_for(SECOND).await;
    assert_eq!(talk.last_request(), "user: Go\nmodel:  +a +b\ntools: 1 2\n");
    // The model's own ids are the same in every reply. Ours never are.
    let ids: HashSet<_> = first.iter().chain(&talk.calls).map(|(id, _)| id.clone()).collect();
    assert_eq!(ids.len(), 3);
    talk.answer(0, json!(3), false);
    talk.run_until("turn complete, more follows: false").await;
    assert_eq!(talk.requests(), 3);
}

#[tokio::test(start_paused = true)]
async fn results_that_are_silent_end_the_turn_without_a_word() {
    let mut talk = Talk::open(script([calls("", &["suppress"])])).await;
    talk.send(LiveInput::Text("Hush"));
    talk.run_until("calls").await;
    talk.answer(0, json!({}), true);
    talk.run_until("turn complete, more follows: false").await;
    assert_eq!(talk.requests(), 1);
    talk.send(LiveInput::Text("Go on"));
    talk.run_for(SECOND).await;
    assert_eq!(talk.last_request(), "user: Hush\nmodel:  +suppress\ntools: {}\nuser: Go on\n");
}

#[tokio::test(start_paused = true)]
async fn a_filler_is_spoken_while_a_call_runs_and_the_model_is_not_asked() {
    let mut talk = Talk::open(script([calls("", &["slow"]), says("It is free.")])).await;
    talk.send(LiveInput::Text("Is it free?"));
    talk.run_until("calls").await;
    talk.send(LiveInput::Filler {
        words: "One moment, please.",
        request: "[Note: Say: One moment, please.]",
    });
    talk.run_until("audio").await;
    assert_eq!(talk.requests(), 1);
    assert_eq!(*talk.script.sentences.lock().unwrap(), ["One moment, please."]);
    talk.run_for(2 * SECOND).await;
    talk.answer(0, json!({"free": true}), false);
    talk.run_until("turn complete, more follows: false").await;
    assert!(!talk.last_request().contains("moment"), "{}", talk.last_request());
}

#[tokio::test(start_paused = true)]
async fn any_other_note_waits_for_the_results() {
    let mut talk = Talk::open(script([calls("", &["slow"]), says("Goodbye.")])).await;
    talk.send(LiveInput::Text("Bye"));
    talk.run_until("calls").await;
    talk.send(LiveInput::Note { text: "[Note: Say goodbye.]", asks: true });
    talk.run_for(5 * SECOND).await;
    assert_eq!(talk.requests(), 1);
    talk.answer(0, json!({}), false);
    talk.run_until("turn complete, more follows: false").await;
    assert_eq!(talk.last_request(), "user: Bye\nmodel:  +slow\ntools: {}\nuser: [Note: Say goodbye.]\n");
}

#[tokio::test(start_paused = true)]
async fn what_the_user_says_meanwhile_waits_a_moment_for_the_result() {
    let mut talk = Talk::open(script([calls("", &["slow"]), says("Both."), says("Now it is.")])).await;
    talk.send(LiveInput::Text("Is it free?"));
    talk.run_until("calls").await;
    talk.run_for(SECOND).await;
    talk.speak(SECOND);
    talk.run_for(SECOND).await;
    assert_eq!(talk.requests(), 1, "the result may be about to come");
    talk.run_for(4 * SECOND).await;
    let request = talk.last_request();
    assert_eq!(request, "user: Is it free?\nmodel:  +slow\ntools: CANCELLED\nuser: Hello there\n");
    talk.run_until("turn complete, more follows: false").await;
    // The result is news now.
    talk.take_lines();
    talk.answer(0, json!({"free": true}), false);
    talk.run_until("turn complete, more follows: false").await;
    let request = talk.last_request();
    assert!(
        request.contains("tools: {\"free\":true}\n") && request.ends_with("has its result now.]\n"),
        "{request}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_result_that_answers_no_call_is_reported() {
    let mut talk = Talk::open(script([])).await;
    talk.answer_as("unknown", "kb_search", json!({}), false, true);
    talk.run_for(SECOND).await;
    assert_eq!(talk.take_lines(), "warning a result of kb_search that answers no call\n");
    assert_eq!(talk.requests(), 0);
}
