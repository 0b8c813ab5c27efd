//! Calls that the model waits for, and calls that it does not wait for.

use quarterdeck_simulator::live::LiveSimulator;
use serde_json::{Value, json};

use super::client::{Client, playing, setup, story};

async fn answered(client: &mut Client, id: &str, scheduling: &str) {
    let answer = json!({ "id": id, "name": "slow", "response": { "output": 1 }, "scheduling": scheduling });
    client.send(&json!({ "toolResponse": { "functionResponses": [answer] } })).await;
}

fn awaiting() -> LiveSimulator {
    playing(&json!([{ "begins": "start", "steps": [
        { "call": { "name": "slow", "id": "a" } }, { "say": "I am looking, and it may take a while." },
        { "await": "answers" }, { "say": "Found." },
    ] }]))
}

#[tokio::test(start_paused = true)]
async fn the_model_speaks_while_a_call_runs_that_does_not_block() {
    let simulator = awaiting();
    let mut client = Client::open(&simulator, &setup()).await;
    client.until("/serverContent/modelTurn").await;
    answered(&mut client, "a", "WHEN_IDLE").await;
    let told = story(&client.turn().await);
    assert!(told[1].ends_with("take a while.Found."), "{told:?}");
    assert!(!told.contains(&"interrupted".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn scheduling_of_an_answer_may_be_interrupt_or_silent() {
    for (scheduling, interrupts, is_told) in [("INTERRUPT", true, true), ("SILENT", false, false)] {
        let simulator = awaiting();
        let mut client = Client::open(&simulator, &setup()).await;
        // Everything has been sent, and not everything has been heard.
        client.until("/serverContent/modelTurn").await;
        tokio::time::sleep(std::time::Duration::from_millis(1_000)).await;
        answered(&mut client, "a", scheduling).await;
        let told = story(&client.turn().await);
        assert_eq!(told.contains(&"interrupted".to_owned()), interrupts, "{told:?}");
        assert_eq!(told.iter().any(|it| it.contains("Found.")), is_told, "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_the_turn_begins_the_next_and_no_handle_is_given_before_it() {
    let scenario = json!([
        { "begins": "start", "steps": [{ "call": { "name": "slow", "id": "a" } }, { "say": "I will tell you." }] },
        { "begins": "answers", "steps": [{ "say": "Here it is." }] },
    ]);
    for (scheduling, wanted) in [("WHEN_IDLE", "said Here it is."), ("SILENT", "handle")] {
        let simulator = playing(&scenario);
        let mut client = Client::open(&simulator, &setup()).await;
        let first = story(&client.until("/serverContent/turnComplete").await);
        assert!(!first.contains(&"handle".to_owned()));
        client.receives_nothing().await;
        answered(&mut client, "a", scheduling).await;
        let told = story(&client.until("/sessionResumptionUpdate/newHandle").await);
        assert!(told.contains(&wanted.to_owned()), "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_early_answer_waits_for_the_end_of_the_turn_or_does_not() {
    let scenario = json!([
        { "begins": "start", "steps": [{ "call": { "name": "slow", "id": "a" } }, { "say": "A long introduction to it all." }] },
        { "begins": "answers", "steps": [{ "say": "Here it is." }] },
    ]);
    for (scheduling, interrupts) in [("WHEN_IDLE", false), ("INTERRUPT", true)] {
        let simulator = playing(&scenario);
        let mut client = Client::open(&simulator, &setup()).await;
        client.until("/serverContent/modelTurn").await;
        answered(&mut client, "a", scheduling).await;
        let first = story(&client.until("/serverContent/turnComplete").await);
        assert_eq!(first.contains(&"interrupted".to_owned()), interrupts, "{first:?}");
        let second = story(&client.until("/serverContent/turnComplete").await);
        assert!(second.contains(&"said Here it is.".to_owned()), "{second:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_will_continue_leaves_the_call_open() {
    let simulator = awaiting();
    let mut client = Client::open(&simulator, &setup()).await;
    client.until("/toolCall").await;
    let part = |response: Value, more: bool| {
        json!({ "toolResponse": { "functionResponses": [
            { "id": "a", "name": "slow", "response": response, "willContinue": more, "scheduling": "SILENT" } ] } })
    };
    client.send(&part(json!({ "progress": 0.5 }), true)).await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(simulator.report().turns, 0);
    client.send(&part(json!({}), false)).await;
    client.turn().await;
    client.close().await;
    let report = simulator.report();
    assert_eq!((report.calls[0].answers.len(), report.faults), (2, vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_blocks_holds_the_turn_whatever_was_declared() {
    let simulator = playing(&json!([{ "begins": "start", "steps": [
        { "call": { "name": "slow", "id": "a" }, "behavior": "blocking" }, { "say": "Found." } ] }]));
    let mut client = Client::open(&simulator, &setup()).await;
    client.until("/toolCall").await;
    client.receives_nothing().await;
    answered(&mut client, "a", "SILENT").await;
    let told = story(&client.turn().await);
    assert!(told.contains(&"said Found.".to_owned()), "scheduling counts for others only: {told:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_takes_too_long_is_a_fault() {
    let simulator = playing(&json!([{ "begins": "start", "steps": [
        { "call": { "name": "slow", "id": "a" } }, { "await": "answers", "withinMs": 2_000 }, { "say": "Never mind." } ] }]));
    let mut client = Client::open(&simulator, &setup()).await;
    client.until("/serverContent/turnComplete").await;
    assert_eq!(simulator.report().faults, ["connection 1: calls were not answered in time"]);
}

#[tokio::test(start_paused = true)]
async fn a_silent_answer_mutes_until_the_next_call() {
    let simulator = playing(&json!([{ "begins": "start", "steps": [
        { "call": { "name": "slow", "id": "a" } }, { "await": "answers" }, { "say": "Never said." },
        { "call": { "name": "slow", "id": "b" }, "behavior": "blocking" }, { "say": "Said." } ] }]));
    let mut client = Client::open(&simulator, &setup()).await;
    client.until("/toolCall").await;
    answered(&mut client, "a", "SILENT").await;
    client.until("/toolCall").await;
    answered(&mut client, "b", "WHEN_IDLE").await;
    let told = story(&client.turn().await);
    assert_eq!(told, ["audio", "said Said.", "generationComplete", "turnComplete", "handle"]);
}
