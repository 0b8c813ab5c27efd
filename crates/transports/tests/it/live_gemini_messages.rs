//! What is made of single messages of Gemini Live.

use quarterdeck_contracts::{Audio, CallArguments, LiveEvent, MAX_CALLS_PER_MESSAGE};
use quarterdeck_transports::gemini::live::ServerMessages;
use serde_json::{Value, json};

/// What is made of one message.
fn events(message: Value) -> Vec<LiveEvent<'static>> {
    let mut messages = ServerMessages::default();
    messages.take(message.to_string().as_bytes());
    std::iter::from_fn(|| messages.next_event()).collect()
}

#[test]
fn a_turn_says_how_it_ended_and_whether_more_follows() {
    let content = |content: Value| events(json!({"serverContent": content}));
    let over = |more_follows| LiveEvent::TurnComplete { more_follows };
    assert_eq!(content(json!({"turnComplete": true, "interactionStatus": "IDLE"})), [over(false)]);
    assert_eq!(content(json!({"turnComplete": true, "interactionStatus": "WORKING"})), [over(true)]);
    assert_eq!(content(json!({"turnComplete": false})), []);
    assert_eq!(
        content(json!({"turnComplete": true, "turnCompleteReason": "MALFORMED_FUNCTION_CALL"})),
        [
            LiveEvent::Warning("the turn ended with MALFORMED_FUNCTION_CALL".to_owned()),
            LiveEvent::ResponseFailed,
            over(false)
        ]
    );
    // What was said before it was an answer.
    let said =
        json!({"outputTranscription": {"text": "It is"}, "turnComplete": true, "turnCompleteReason": "MAX"});
    assert!(!content(said).contains(&LiveEvent::ResponseFailed));
    assert_eq!(
        content(json!({"interrupted": true, "turnComplete": true, "generationComplete": true})),
        [LiveEvent::Interrupted { end_follows: true }, LiveEvent::GenerationComplete, over(false)]
    );
}

#[test]
fn a_call_with_a_duplicate_key_is_emitted_as_broken_so_that_it_is_answered() {
    let message = r#"{"toolCall":{"functionCalls":[{"id":"c1","name":"tide","args":{"a":1,"a":2}}]}}"#;
    let mut messages = ServerMessages::default();
    messages.take(message.as_bytes());
    let Some(LiveEvent::Calls(calls)) = messages.next_event() else { panic!("a call") };
    assert_eq!(calls[0].id.as_deref(), Some("c1"));
    assert_eq!(calls[0].arguments, CallArguments::Broken(message.to_owned()));
}

#[test]
fn audio_at_another_rate_or_in_another_dialect_is_made_ours() {
    let audio = |mime: &str, data: &str| {
        events(
            json!({"serverContent": {"modelTurn": {"parts": [{"inlineData": {"mimeType": mime, "data": data}}]}}}),
        )
    };
    let pcm = |bytes: &[u8]| vec![LiveEvent::Audio(Audio::Pcm(bytes.to_vec().into()))];
    assert_eq!(audio("audio/pcm; rate=48000", "AQABAAEAAQA="), pcm(&[1, 0, 1, 0]));
    assert_eq!(audio("audio/pcm;rate=24000", "__8"), pcm(&[255, 255]));
    // Half a sample.
    assert_eq!(audio("audio/pcm;rate=24000", "AQID"), pcm(&[1, 2]));
    let unreadable = vec![LiveEvent::Warning("audio that cannot be read".to_owned())];
    assert_eq!(audio("audio/opus", "AQI="), unreadable);
    assert_eq!(audio("audio/pcm;rate=1", "AQI="), unreadable);
    assert_eq!(audio("audio/pcm;rate=24000", "AQ!="), unreadable);
    assert_eq!(audio("audio/pcm;rate=24000", ""), []);
    assert_eq!(audio("audio/pcm;rate=24000", "AQ=="), []);
}

#[test]
fn members_of_the_wrong_type_are_as_good_as_absent() {
    for message in [
        json!({"setupComplete": null, "toolCall": 1, "toolCallCancellation": "x", "goAway": []}),
        json!({"toolCall": {"functionCalls": {}}, "toolCallCancellation": {"ids": 7}}),
        json!({"toolCall": {"functionCalls": []}, "usageMetadata": 3}),
        json!({"serverContent": "x", "sessionResumptionUpdate": true, "voiceActivity": 1}),
        json!({"serverContent": {"modelTurn": "x", "inputTranscription": 1, "turnComplete": "yes"}}),
        json!({"serverContent": {"modelTurn": {"parts": [1, {"text": 2}, {"inlineData": 3}, {"inlineData": {"data": 4}}]}}}),
    ] {
        assert_eq!(events(message.clone()), [], "{message}");
    }
    let away = |left: Value| events(json!({"goAway": {"timeLeft": left}}));
    for left in [json!("-1s"), json!("soon"), json!("NaNs"), json!("1e400s"), json!(5)] {
        assert_eq!(away(left), [LiveEvent::GoingAway { left: None }]);
    }
}

#[test]
fn a_malformed_call_is_emitted_to_be_refused() {
    let events = events(json!({"toolCall": {"functionCalls": [1, {}, {"id": "f1", "name": 3}]}}));
    let [LiveEvent::Calls(calls)] = events.as_slice() else { panic!("{events:?}") };
    let known: Vec<_> = calls.iter().map(|call| (call.id.as_deref(), call.name.as_str())).collect();
    assert_eq!(known, [(None, ""), (None, ""), (Some("f1"), "")]);
}

#[test]
fn a_message_makes_1024_calls_and_no_more() {
    let calls: Vec<_> =
        (0..MAX_CALLS_PER_MESSAGE + 50).map(|n| json!({"id": n.to_string(), "name": "tide"})).collect();
    let events = events(json!({"toolCall": {"functionCalls": calls}}));
    let [LiveEvent::Calls(calls), LiveEvent::Warning(_)] = &events[..] else {
        panic!("{} events", events.len())
    };
    assert_eq!(calls.len(), MAX_CALLS_PER_MESSAGE);
}
