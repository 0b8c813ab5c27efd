//! Connections that end too early, and conversations that go on.

use quarterdeck_simulator::live::{Disconnect, DisconnectAfter, LiveSimulator, Scenario};
use serde_json::{Value, json};

use super::client::{Client, End, PATH, handle, playing, setup, setup_with, story};

fn scenario() -> Value {
    json!([
        { "begins": "start", "steps": [{ "say": "Hello." }] },
        { "begins": "text", "steps": [
            { "call": [{ "name": "book", "id": "a" }, { "name": "look_up", "id": "b" }] }, { "say": "Booked." } ] },
        { "begins": "text", "steps": [{ "say": "Bye." }] },
    ])
}

fn content(text: &str) -> Value {
    let turns = json!([{ "role": "user", "parts": [{ "text": text }] }]);
    json!({ "clientContent": { "turns": turns, "turnComplete": true } })
}

/// Goes through the scenario whatever happens to the connections. How many it took.
async fn hold_out(simulator: &LiveSimulator) -> usize {
    let (mut connections, mut latest, mut done) = (0, None::<String>, 0);
    'again: loop {
        connections += 1;
        assert!(connections < 5);
        let mut client = Client::connect(simulator, PATH).await;
        client.send(&latest.as_deref().map_or_else(setup, setup_with)).await;
        let mut is_begun = false;
        loop {
            let Ok(frame) = client.receive().await else { continue 'again };
            if let Some(new) = frame.pointer("/sessionResumptionUpdate/newHandle") {
                latest = Some(new.as_str().unwrap().to_owned());
                done += 1;
                is_begun = false;
            }
            if done == 3 {
                client.disconnect().await;
                return connections;
            }
            if done > 0
                && !is_begun
                && (frame.get("setupComplete").is_some()
                    || frame.pointer("/sessionResumptionUpdate/newHandle").is_some())
            {
                is_begun = true;
                client.send(&content("book it")).await;
            }
            for call in
                frame.pointer("/toolCall/functionCalls").and_then(Value::as_array).into_iter().flatten()
            {
                let (id, name) = (call["id"].as_str().unwrap(), call["name"].as_str().unwrap());
                client.answer(id, name, json!({ "output": "done" })).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_conversation_survives_a_disconnect_after_every_frame() {
    let whole = playing(&scenario());
    assert_eq!(hold_out(&whole).await, 1);
    for after in [DisconnectAfter::Sent as fn(usize) -> DisconnectAfter, DisconnectAfter::Received] {
        let mut cut_short = 0;
        for frames in 0..40 {
            let parsed = Scenario::parse(&scenario().to_string()).unwrap();
            let simulator = LiveSimulator::from_scenario(
                parsed.with_disconnect(Disconnect { connection: 1, after: after(frames) }),
            );
            let connections = hold_out(&simulator).await;
            let report = simulator.report();
            assert_eq!(report.faults, Vec::<String>::new(), "{:?}", after(frames));
            assert!(report.calls.iter().all(|call| call.connection < connections || call.answers.len() == 1));
            cut_short += usize::from(connections == 2);
        }
        assert!(cut_short >= 5, "{cut_short}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_a_call_that_was_forgotten_is_a_fault() {
    let simulator = playing(&json!([
        { "begins": "start", "steps": [{ "say": "Hello." }] },
        { "begins": "text", "steps": [{ "call": { "name": "book" } }, { "drop": true, "on": 1 }, { "say": "Booked." }] },
    ]));
    let mut client = Client::open(&simulator, &setup()).await;
    let hello = handle(&client.turn().await);
    client.text("book it").await;
    let frames = client.until("/toolCall").await;
    let id = frames.last().unwrap()["toolCall"]["functionCalls"][0]["id"].as_str().unwrap().to_owned();
    client.answer(&id, "book", json!({ "output": 1 })).await;
    assert_eq!(client.end().await, End::Disconnect);

    let mut client = Client::open(&simulator, &setup_with(&hello)).await;
    client.receives_nothing().await;
    client.answer(&id, "book", json!({ "output": 1 })).await;
    assert!(matches!(client.end().await, End::Closed(1007, _)));
    let fault =
        format!("connection 2: there is an answer to “{id}”, which this connection has not asked for");
    assert_eq!(simulator.report().faults, [fault]);

    let mut client = Client::open(&simulator, &setup_with(&hello)).await;
    client.send(&content("book it")).await;
    let frames = client.until("/toolCall").await;
    let again = frames.last().unwrap()["toolCall"]["functionCalls"][0]["id"].as_str().unwrap().to_owned();
    client.answer(&again, "book", json!({ "output": 1 })).await;
    assert!(story(&client.turn().await).contains(&"said Booked.".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_older_handle_resumes_an_older_state() {
    let simulator = playing(&json!([
        { "begins": "text", "steps": [{ "say": "One." }] },
        { "begins": "text", "steps": [{ "say": "Two." }] },
        { "begins": "text", "steps": [{ "say": "Three." }] },
    ]));
    let mut client = Client::open(&simulator, &setup()).await;
    client.text("go").await;
    let first = handle(&client.turn().await);
    client.text("go").await;
    let second = handle(&client.turn().await);
    client.close().await;
    for (handle, said) in [(&first, "said Two."), (&second, "said Three."), (&first, "said Two.")] {
        let mut client = Client::open(&simulator, &setup_with(handle)).await;
        client.text("go").await;
        assert!(story(&client.turn().await).contains(&said.to_owned()));
        client.close().await;
    }
    assert_eq!(simulator.report().resumptions, 3);
}

#[tokio::test(start_paused = true)]
async fn a_handle_expires() {
    let simulator = playing(&json!([{ "begins": "start", "steps": [{ "say": "Hello." }] }]));
    let mut client = Client::open(&simulator, &setup()).await;
    let old = handle(&client.turn().await);
    client.close().await;
    tokio::time::sleep(std::time::Duration::from_secs(2 * 60 * 60)).await;
    let mut client = Client::connect(&simulator, PATH).await;
    client.send(&setup_with(&old)).await;
    assert!(matches!(client.end().await, End::Closed(1007, _)));
}

#[tokio::test(start_paused = true)]
async fn a_fresh_session_after_a_lost_one_can_begin_in_the_middle() {
    let simulator = playing(&json!({
        "connections": [
            { "nth": 2, "refuse": { "code": 1007, "reason": "the handle has expired" } },
            { "nth": 3, "beginsAt": 2 },
        ],
        "turns": [
            { "begins": "text", "steps": [{ "say": "One." }] },
            { "begins": "text", "steps": [{ "say": "Two." }, { "drop": true, "on": 1 }] },
        ],
    }));
    let mut client = Client::open(&simulator, &setup()).await;
    client.text("go").await;
    let first = handle(&client.turn().await);
    client.text("go").await;
    assert_eq!(client.end().await, End::Disconnect);
    let mut client = Client::connect(&simulator, PATH).await;
    client.send(&setup_with(&first)).await;
    assert_eq!(client.end().await, End::Closed(1007, "the handle has expired".to_owned()));
    let mut client = Client::open(&simulator, &setup()).await;
    client.send(&content("go")).await;
    assert!(story(&client.turn().await).contains(&"said Two.".to_owned()));
    client.close().await;
    assert!(simulator.is_done());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_ask_for_handles_gets_none() {
    let simulator = playing(&json!([{ "begins": "start", "steps": [{ "say": "Hello." }] }]));
    let mut client = Client::open(&simulator, &json!({ "setup": { "model": "models/m" } })).await;
    let frames = client.until("/serverContent/turnComplete").await;
    assert_eq!(story(&frames), ["audio", "generationComplete", "turnComplete"], "nor a transcript");
    client.receives_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn every_conversation_begins_anew_and_a_scenario_can_repeat() {
    let simulator = playing(&json!({ "atEnd": "again", "turns": [
        { "begins": "text", "steps": [{ "say": "Tick." }] }, { "begins": "text", "steps": [{ "say": "Tock." }] } ] }));
    for _ in 0..2 {
        let mut client = Client::open(&simulator, &setup()).await;
        for said in ["said Tick.", "said Tock.", "said Tick."] {
            client.text("go").await;
            assert!(story(&client.turn().await).contains(&said.to_owned()));
        }
        client.close().await;
    }
    assert_eq!((simulator.report().turns, simulator.report().faults), (6, vec![]));
}
