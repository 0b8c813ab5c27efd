//! What the official client sends to OpenAI Realtime and what it was sent, beside what we send and what we make of it.
//!
//! Skipped, with a word, where the recordings are not on the machine.

use std::time::Duration;

use expect_test::expect;
use quarterdeck_contracts::{Audio, HandlerAnswer, LiveInput, LiveResult, LiveSetup};
use quarterdeck_testkit::corpus;
use quarterdeck_transports::openai::realtime::{
    OpenAiRealtimeConfig, ServerEvents, ServerVad, TurnDetection, session_update,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::live_openai::conversation;
use crate::live_provider::{envelope, event, flush, opening};

/// A number is the same with and without a point.
fn comparable(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::Array(values) => values.iter().map(comparable).collect(),
        // Names of messages are the sender's own; ours say what was refused.
        Value::Object(members) => members
            .iter()
            .filter(|(key, _)| *key != "event_id")
            .map(|(key, value)| (key.clone(), comparable(value)))
            .collect(),
        other => other.clone(),
    }
}

fn with_tools(recorded: &Value) -> Value {
    let config = OpenAiRealtimeConfig {
        speed: Some(1.0),
        noise_reduction: Some("near_field".to_owned()),
        turn_detection: TurnDetection::Semantic("auto".to_owned()),
        ..OpenAiRealtimeConfig::new("k")
    };
    let tool = &recorded["session"]["tools"][0];
    let nested = json!({"type": "function", "function": {
        "name": tool["name"], "description": tool["description"], "parameters": tool["parameters"],
    }});
    session_update(
        &config,
        &LiveSetup { system: "You are terse.".into(), tools: vec![nested].into(), ..opening() },
    )
}

/// The part of our configuration that the recorded one is.
fn with_server_vad() -> Value {
    let vad = ServerVad {
        threshold: Some(0.5),
        prefix_padding_ms: Some(300),
        silence_ms: Some(500),
        idle_timeout_ms: Some(6_000),
    };
    let config =
        OpenAiRealtimeConfig { turn_detection: TurnDetection::Server(vad), ..OpenAiRealtimeConfig::new("k") };
    let ours = session_update(&config, &opening());
    let detection = &ours["session"]["audio"]["input"]["turn_detection"];
    json!({"type": "session.update", "session": {"type": "realtime", "audio": {"input": {"turn_detection": detection}}}})
}

/// What is sent in a conversation in which the provider says some things first.
async fn sent(first: &[Value], input: LiveInput<'_>, place: usize) -> Value {
    let (mut connection, mut provider, _) = conversation(OpenAiRealtimeConfig::new("k"), opening()).await;
    for message in first {
        provider.say(message).await;
    }
    provider.say(&json!({"type": "conversation.item.input_audio_transcription.failed"})).await;
    while !matches!(event(&mut connection).await.unwrap(), quarterdeck_contracts::LiveEvent::Warning(_)) {}
    connection.send(input);
    flush(&mut connection).await;
    for _ in 0..place {
        provider.hear().await.unwrap();
    }
    provider.hear().await.unwrap()
}

/// What we send in the place of a recorded event; `None` for one that we have no use for.
async fn ours(call: &str, recorded: &Value) -> Option<Value> {
    let running = [
        json!({"type": "response.created", "response": {"id": "resp_1"}}),
        json!({
            "type": "response.output_audio.delta", "item_id": "item_2",
            "delta": base64_simd::STANDARD.encode_to_string(vec![0; 96_000]),
        }),
    ];
    let interrupt = LiveInput::Interrupt { heard: Some(Duration::from_millis(1_200)) };
    Some(match call {
        "session.update with tools (semantic VAD)" => with_tools(recorded),
        "session.update (server VAD)" => with_server_vad(),
        "input_audio_buffer.append" => {
            let mut ours = sent(&[], LiveInput::Audio(Audio::Pcm(vec![0; 64].into())), 0).await;
            // What goes up is at another rate.
            assert_eq!(ours["audio"].as_str().map(str::len), Some(128));
            ours["audio"] = recorded["audio"].clone();
            ours
        }
        "input_audio_buffer.commit" => {
            let speaks = json!({"type": "input_audio_buffer.speech_started"});
            sent(&[speaks], LiveInput::AudioEnded, 0).await
        }
        "conversation.item.create user text" => sent(&[], LiveInput::Text("Weather in Oslo?"), 0).await,
        "conversation.item.create function_call_output" => {
            let response = envelope(HandlerAnswer::success(json!({"temp_c": 7})));
            let result = LiveResult {
                id: Some("call_A"),
                name: "get_weather",
                response: &response,
                is_silent: false,
                is_last: true,
            };
            sent(&[], LiveInput::Result(result), 0).await
        }
        "response.create plain" => sent(&[], LiveInput::Text("Weather in Oslo?"), 1).await,
        "response.cancel" => sent(&running, interrupt, 0).await,
        "conversation.item.truncate" => sent(&running, interrupt, 1).await,
        // The provider finds out when the user speaks.
        "session.update (push to talk)"
        // What was said stays said.
        | "input_audio_buffer.clear"
        | "conversation.item.delete"
        // A response is what the session says it is.
        | "response.create with overrides" => return None,
        other => panic!("an unknown recorded event: {other}"),
    })
}

#[tokio::test]
async fn events_are_what_the_official_client_sends() {
    let Some(folder) = corpus("wire/openai-realtime") else { return };
    let mut compared = 0;
    for line in std::fs::read_to_string(folder.join("client-events.jsonl")).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let call = line["call"].as_str().unwrap();
        if let Some(ours) = ours(call, &line["frame"]).await {
            assert_eq!(comparable(&ours), comparable(&line["frame"]), "{call}");
            compared += 1;
        }
    }
    assert_eq!(compared, 9);
}

#[test]
fn every_recorded_event_of_the_provider_is_understood() {
    let Some(folder) = corpus("wire/openai-realtime") else { return };
    let (mut events, mut all) = (ServerEvents::default(), String::new());
    for line in std::fs::read_to_string(folder.join("server-events.jsonl")).unwrap().lines() {
        let kind: Value = serde_json::from_str(line).unwrap();
        all.push_str(kind["type"].as_str().unwrap());
        all.push('\n');
        events.take(line.as_bytes(), Instant::now());
        while let Some(event) = events.next_event() {
            all.push_str(&format!("  {event:?}\n"));
        }
    }
    let expected = expect![[r#"
        session.created
        session.updated
        input_audio_buffer.speech_started
          SpeechStarted
        input_audio_buffer.speech_stopped
        input_audio_buffer.committed
        conversation.item.added
        conversation.item.done
        conversation.item.input_audio_transcription.delta
          InputTranscript(TranscriptPiece { text: "Weather in", stage: Interim })
        conversation.item.input_audio_transcription.completed
          InputTranscript(TranscriptPiece { text: "Weather in Oslo?", stage: Final })
        response.created
        response.output_item.added
        response.function_call_arguments.delta
        response.function_call_arguments.delta
        response.function_call_arguments.done
        response.output_item.done
        response.done
          Calls([ModelCall { id: Some("call_A"), name: "get_weather", arguments: Json(Object {"city": String("Oslo")}) }])
          TurnComplete { more_follows: true }
          Usage(Usage { input_tokens: 120, output_tokens: 30, cached_tokens: 0, cache_write_tokens: 0 })
        rate_limits.updated
        response.output_audio.delta
          Audio(Base64("qwFOA98EVwatB9wI3AmpCj8Lmgu4C5kLPguoCtoJ2Qg="))
        response.output_audio_transcript.delta
          OutputTranscript(TranscriptPiece { text: "Seven degrees", stage: Segment })
        response.output_audio.done
        response.output_audio_transcript.done
          OutputTranscript(TranscriptPiece { text: ".", stage: Final })
        response.output_text.delta
          OutputTranscript(TranscriptPiece { text: "7", stage: Segment })
        response.done
          TurnComplete { more_follows: false }
          Usage(Usage { input_tokens: 120, output_tokens: 30, cached_tokens: 0, cache_write_tokens: 0 })
        response.done
          Warning("a response ended as failed (server_error)")
          ResponseFailed
          TurnComplete { more_follows: false }
        conversation.item.truncated
        error
          Warning("conversation_already_has_active_response: Conversation already has an active response")
    "#]];
    expected.assert_eq(&all);
}
