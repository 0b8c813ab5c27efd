//! What comes before the first word.

use std::time::Duration;

use quarterdeck_simulator::live::LiveSimulator;
use quarterdeck_websocket::UpgradeError;
use serde_json::{Value, json};

use super::client::{Client, End, PATH, playing, setup, story};

fn greeting() -> LiveSimulator {
    playing(&json!({ "turns": [{ "begins": "start", "steps": [{ "say": "Hello." }] }] }))
}

async fn refusal(simulator: &LiveSimulator, first: &Value) -> End {
    let mut client = Client::connect(simulator, PATH).await;
    client.send(first).await;
    client.end().await
}

#[tokio::test(start_paused = true)]
async fn every_path_of_the_provider_is_served_and_no_other() {
    for slashes in ["/", "//"] {
        for version in ["v1alpha", "v1beta", "v1"] {
            for (method, key) in [
                ("BidiGenerateContent", "?key=k"),
                ("BidiGenerateContentConstrained", "?access_token=auth_tokens/t"),
                ("BidiGenerateContent", ""),
            ] {
                let path = format!(
                    "{slashes}ws/google.ai.generativelanguage.{version}.GenerativeService.{method}{key}"
                );
                let mut client = Client::connect(&greeting(), &path).await;
                client.send(&setup()).await;
                assert!(client.receive().await.unwrap()["setupComplete"].is_object(), "{path}");
            }
        }
    }
    let others =
        ["/", "/ws", "/ws/google.ai.generativelanguage.v2.GenerativeService.BidiGenerateContent", "///ws/x"];
    for path in others {
        let refused = Client::try_connect(&greeting(), path).await.map(|_| ());
        assert!(matches!(refused, Err(UpgradeError::Refused { status: 404, .. })), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_setup_that_the_provider_would_not_take_is_refused_with_a_close_frame() {
    let cases = [
        (json!({ "setup": {} }), "setup.model must be “models/NAME”"),
        (json!({ "setup": { "model": "gemini" } }), "setup.model must be “models/NAME”"),
        (json!({ "realtimeInput": { "text": "hi" } }), "setup must be the first message"),
        (
            json!({ "setup": { "model": "models/m" }, "more": {} }),
            "a frame has 2 top-level keys instead of one (“setup”, “more”)",
        ),
        (json!({ "set_up": {} }), "a frame has the unknown key “set_up”"),
        (json!([]), "a frame is no object"),
        (
            json!({ "setup": { "model": "models/m", "tools": [{ "functionDeclarations": [{ "name": "a b" }] }] } }),
            "a function cannot be called “a b”",
        ),
        (
            json!({ "setup": { "model": "models/m", "tools": [{ "functionDeclarations": [{ "name": "a" }, { "name": "a" }] }] } }),
            "a is declared twice",
        ),
        (
            json!({ "setup": { "model": "models/gemini-3.8-live", "generationConfig": { "responseModalities": ["TEXT"] } } }),
            "this model answers in audio only",
        ),
        (
            json!({ "setup": { "model": "models/gemini-3.8-live", "generation_config": { "thinking_config": { "thinking_level": "LOW" } } } }),
            "this model takes no thinkingLevel",
        ),
        (
            json!({ "setup": { "model": "models/gemini-3.8-live", "proactivity": { "proactiveAudio": false } } }),
            "this model does not take proactiveAudio: false",
        ),
        (
            json!({ "setup": { "model": "models/m", "sessionResumption": { "handle": "handle-of-yesterday" } } }),
            "the session handle is unknown or has expired",
        ),
    ];
    let simulator = greeting();
    for (first, reason) in &cases {
        assert_eq!(refusal(&simulator, first).await, End::Closed(1007, (*reason).to_owned()), "{first}");
    }
    assert_eq!(simulator.report().faults.len(), cases.len());
}

#[tokio::test(start_paused = true)]
async fn a_scenario_can_refuse_a_connection_and_take_the_next() {
    let simulator = playing(&json!({
        "connections": [
            { "nth": 1, "refuse": { "status": 503, "reason": "overloaded" } },
            { "nth": 2, "refuse": { "code": 1008, "reason": "API key not valid" } },
        ],
        "turns": [{ "begins": "start", "steps": [{ "say": "Hello." }] }],
    }));
    let refused = Client::try_connect(&simulator, PATH).await.map(|_| ());
    assert!(matches!(refused, Err(UpgradeError::Refused { status: 503, .. })), "{refused:?}");
    assert_eq!(refusal(&simulator, &setup()).await, End::Closed(1008, "API key not valid".to_owned()));
    let mut client = Client::open(&simulator, &setup()).await;
    client.turn().await;
    client.close().await;
    assert_eq!((simulator.report().connections, simulator.report().faults), (3, vec![]));
}

#[tokio::test(start_paused = true)]
async fn frames_before_setup_complete_are_a_fault() {
    let simulator = playing(&json!({ "connections": [{ "setupDelayMs": 500 }], "turns": [] }));
    let mut client = Client::connect(&simulator, PATH).await;
    client.send(&setup()).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    client.text("hello?").await;
    assert!(client.receive().await.unwrap()["setupComplete"].is_object());
    assert_eq!(
        simulator.report().faults,
        ["connection 1: something was sent between setup and setupComplete"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_sends_a_setup_is_closed() {
    let mut client = Client::connect(&greeting(), PATH).await;
    assert_eq!(client.end().await, End::Closed(1008, "no setup came".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn snake_case_is_understood() {
    let simulator = playing(&json!([
        { "begins": "text", "steps": [{ "call": { "name": "look_up", "id": "c1" } }, { "say": "Done." }] },
        { "begins": "content", "containing": "thanks", "steps": [{ "say": "Welcome." }] },
    ]));
    let setup = json!({ "setup": {
        "model": "models/m", "output_audio_transcription": {}, "session_resumption": {},
        "tools": [{ "function_declarations": [{ "name": "look_up", "parameters_json_schema": {} }] }],
    } });
    let mut client = Client::open(&simulator, &setup).await;
    client.send(&json!({ "realtime_input": { "text": "look" } })).await;
    client.until("/toolCall").await;
    client
        .send(&json!({ "tool_response": { "functionResponses": [
            { "will_continue": false, "scheduling": "WHEN_IDLE", "id": "c1", "name": "look_up", "response": {} },
        ] } }))
        .await;
    assert_eq!(story(&client.turn().await)[..2], ["audio", "said Done."]);
    let turns = json!([{ "parts": [{ "text": "Thanks" }], "role": "user" }]);
    client.send(&json!({ "client_content": { "turns": turns, "turn_complete": true } })).await;
    client.turn().await;
    client.close().await;
    assert_eq!((simulator.report().turns, simulator.report().faults), (2, vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_writes_sends_text() {
    let simulator = greeting();
    let setup =
        json!({ "setup": { "model": "models/m", "generationConfig": { "responseModalities": ["TEXT"] } } });
    let mut client = Client::open(&simulator, &setup).await;
    let frames = client.until("/serverContent/turnComplete").await;
    assert_eq!(story(&frames), ["text Hello.", "generationComplete", "turnComplete"]);
}
