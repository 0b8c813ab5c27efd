//! Whole conversations with OpenAI Realtime, over a pipe.

use std::time::Duration;

use quarterdeck_contracts::{
    Audio, CallArguments, HandlerAnswer, LiveConnection, LiveErrorKind, LiveEvent, LiveInput, LiveModel,
    LiveResult, LiveSetup, LiveTurn, ModelCall, Speaker,
};
use quarterdeck_transports::{OpenAiRealtime, OpenAiRealtimeConfig};
use serde_json::{Value, json};

use crate::live_provider::{Pipe, Provider, envelope, event, flush, opening};

/// Both ends of a conversation, and the provider's first message from us.
pub(crate) async fn conversation(
    config: OpenAiRealtimeConfig,
    opening: LiveSetup,
) -> (Box<dyn LiveConnection>, Provider, Value) {
    let (pipe, mut ends) = Pipe::new(1 << 20);
    let model = OpenAiRealtime::new(config).unwrap().with_dialer(pipe);
    let provider = async {
        let mut provider = Provider::accept(&mut ends).await;
        provider.say(&json!({"type": "session.created", "session": {}})).await;
        let update = provider.hear().await.unwrap();
        provider.say(&json!({"type": "session.updated", "session": {}})).await;
        (provider, update)
    };
    let (connection, (provider, update)) = tokio::join!(model.connect(opening), provider);
    (connection.unwrap(), provider, update)
}

async fn plain() -> (Box<dyn LiveConnection>, Provider) {
    let (connection, provider, _) =
        conversation(OpenAiRealtimeConfig::new("sk-very-secret"), opening()).await;
    (connection, provider)
}

/// The nth request for a response.
fn respond(nth: u32) -> Value {
    json!({"type": "response.create", "event_id": format!("ask_{nth}")})
}

/// Takes events until one that is wanted.
async fn until(connection: &mut Box<dyn LiveConnection>, wanted: &LiveEvent<'_>) -> Vec<LiveEvent<'static>> {
    let mut before = Vec::new();
    loop {
        let event = event(connection).await.unwrap();
        if event == *wanted {
            return before;
        }
        before.push(event);
    }
}

fn done(id: &str, status: &str, output: Value) -> Value {
    json!({"type": "response.done", "response": {"id": id, "status": status, "output": output}})
}

fn began(id: &str) -> Value {
    json!({"type": "response.created", "response": {"id": id, "status": "in_progress"}})
}

fn call(id: &str, status: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "status": status, "call_id": id, "name": "tide", "arguments": arguments})
}

const OVER: LiveEvent<'static> = LiveEvent::TurnComplete { more_follows: false };

#[tokio::test]
async fn a_conversation_is_opened_with_the_key_in_a_header_and_goes_on_where_it_was() {
    let turn = |by, text: &str| LiveTurn { by, text: text.to_owned() };
    let history =
        vec![turn(Speaker::User, "Hi"), turn(Speaker::Model, "Hello!"), turn(Speaker::User, "Tide?")];
    let opening = LiveSetup { history, asks: true, ..opening() };
    let (_connection, mut provider, update) =
        conversation(OpenAiRealtimeConfig::new("sk-very-secret"), opening).await;
    assert_eq!(provider.request.target, "/v1/realtime?model=gpt-realtime-2.1");
    assert_eq!(provider.request.header("authorization"), Some("Bearer sk-very-secret"));
    assert_eq!(update["session"]["instructions"], "You are a terse assistant.");
    for (role, kind, text) in [
        ("user", "input_text", "Hi"),
        ("assistant", "output_text", "Hello!"),
        ("user", "input_text", "Tide?"),
    ] {
        let item = json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]});
        let created = json!({"type": "conversation.item.create", "event_id": "item", "item": item});
        assert_eq!(provider.hear().await.unwrap(), created);
    }
    assert_eq!(provider.hear().await.unwrap(), respond(1));
}

#[tokio::test]
async fn a_session_that_is_refused_says_why_and_never_shows_the_key() {
    for (error, kind) in [
        (
            json!({"type": "invalid_request_error", "code": "invalid_value", "message": "no such voice"}),
            LiveErrorKind::Refused,
        ),
        (
            json!({"type": "invalid_request_error", "code": "invalid_api_key", "message": "sk-very-secret"}),
            LiveErrorKind::Auth,
        ),
        (json!({"type": "insufficient_quota", "code": "insufficient_quota"}), LiveErrorKind::Busy),
        (json!({"type": "server_error", "message": "try again"}), LiveErrorKind::Lost),
    ] {
        let (pipe, mut ends) = Pipe::new(1 << 16);
        let config = OpenAiRealtimeConfig::new("sk-very-secret");
        let model = OpenAiRealtime::new(config).unwrap().with_dialer(pipe);
        let provider = async {
            let mut provider = Provider::accept(&mut ends).await;
            provider.say(&json!({"type": "session.created"})).await;
            provider.hear().await.unwrap();
            provider.say(&json!({"type": "error", "error": error})).await;
        };
        let (connection, ()) = tokio::join!(model.connect(opening()), provider);
        let Err(error) = connection else { panic!("it was refused") };
        assert_eq!(error.kind, kind, "{error}");
        assert!(!error.to_string().contains("very-secret"), "{error}");
    }
}

#[tokio::test]
async fn calls_come_when_their_response_is_done_and_only_whole_ones() {
    let (mut connection, mut provider) = plain().await;
    provider.say(&began("r1")).await;
    let item = call("a", "completed", r#"{"at":"Oslo"}"#);
    provider.say(&json!({"type": "response.output_item.done", "item": item})).await;
    let output =
        json!([item, call("b", "completed", "{\"at"), call("c", "incomplete", "{}"), {"type": "message"}]);
    provider.say(&done("r1", "completed", output)).await;
    let calls =
        |id: &str, arguments| ModelCall { id: Some(id.to_owned()), name: "tide".to_owned(), arguments };
    assert_eq!(
        event(&mut connection).await.unwrap(),
        LiveEvent::Calls(vec![
            calls("a", CallArguments::Json(json!({"at": "Oslo"}))),
            calls("b", CallArguments::Broken("{\"at".to_owned())),
        ])
    );
    assert_eq!(event(&mut connection).await.unwrap(), LiveEvent::TurnComplete { more_follows: true });
    // One whose response was cut off does not begin, and is answered all the same.
    provider.say(&began("r2")).await;
    provider.say(&json!({"type": "response.output_item.done", "item": call("d", "completed", "")})).await;
    provider.say(&done("r2", "cancelled", json!([call("e", "incomplete", "{\"at")]))).await;
    assert_eq!(event(&mut connection).await.unwrap(), LiveEvent::TurnComplete { more_follows: false });
    flush(&mut connection).await;
    let answer = provider.hear().await.unwrap();
    assert_eq!(
        (&answer["item"]["type"], &answer["item"]["call_id"]),
        (&json!("function_call_output"), &json!("d"))
    );
    assert!(answer["item"]["output"].as_str().unwrap().contains("CANCELLED"), "{answer}");
}

#[tokio::test]
async fn the_transcript_of_an_interrupted_response_is_not_emitted() {
    let (mut connection, mut provider) = plain().await;
    provider.say(&began("r1")).await;
    let words =
        |kind: &str, text: &str| json!({"type": kind, "item_id": "i1", "delta": text, "transcript": text});
    provider.say(&words("response.output_audio_transcript.delta", "It ")).await;
    assert!(matches!(event(&mut connection).await.unwrap(), LiveEvent::OutputTranscript(_)));
    provider.say(&json!({"type": "input_audio_buffer.speech_started"})).await;
    provider.say(&words("response.output_audio_transcript.delta", "is ")).await;
    provider.say(&words("response.output_audio_transcript.done", "It is ")).await;
    provider.say(&done("r1", "cancelled", json!([]))).await;
    let cut = LiveEvent::Interrupted { end_follows: true };
    assert_eq!(until(&mut connection, &OVER).await, [cut, LiveEvent::SpeechStarted]);
}

#[tokio::test]
async fn a_response_that_does_not_start_is_reported_and_other_errors_are_not_taken_for_it() {
    let (mut connection, mut provider) = plain().await;
    let error = |event: &str| {
        let error =
            json!({"type": "server_error", "code": "server_error", "message": "no", "event_id": event});
        json!({"type": "error", "error": error})
    };
    let trouble = LiveEvent::Warning("server_error: no".to_owned());
    connection.send(LiveInput::Text("Tide?"));
    flush(&mut connection).await;
    provider.hear().await.unwrap();
    assert_eq!(provider.hear().await.unwrap(), respond(1));
    provider.say(&error("truncate")).await;
    assert_eq!(event(&mut connection).await.unwrap(), trouble);
    provider.say(&error("ask_1")).await;
    assert_eq!(until(&mut connection, &OVER).await, [trouble, LiveEvent::ResponseFailed]);
    connection.send(LiveInput::Text("Tide?"));
    flush(&mut connection).await;
    provider.hear().await.unwrap();
    assert_eq!(provider.hear().await.unwrap(), respond(2), "and the next one is asked for");
    provider.say(&began("r1")).await;
    provider.say(&done("r1", "failed", json!([]))).await;
    let events = until(&mut connection, &OVER).await;
    assert_eq!(events.last(), Some(&LiveEvent::ResponseFailed), "{events:?}");
}

#[tokio::test]
async fn a_response_is_requested_once_after_all_results_and_never_while_another_is_active() {
    let (mut connection, mut provider) = plain().await;
    let response = envelope(HandlerAnswer::success(json!({"metres": 2})));
    let result = |id, is_last, is_silent| {
        LiveInput::Result(LiveResult { id: Some(id), name: "tide", response: &response, is_silent, is_last })
    };
    let output = |id: &str| {
        let item = json!({"type": "function_call_output", "call_id": id, "output": "{\"metres\":2}"});
        json!({"type": "conversation.item.create", "event_id": "item", "item": item})
    };
    provider.say(&began("r1")).await;
    provider
        .say(&done("r1", "completed", json!([call("a", "completed", ""), call("b", "completed", "")])))
        .await;
    until(&mut connection, &LiveEvent::TurnComplete { more_follows: true }).await;
    connection.send(result("a", false, false));
    connection.send(result("b", true, true));
    flush(&mut connection).await;
    for expected in [output("a"), output("b"), respond(1)] {
        assert_eq!(provider.hear().await.unwrap(), expected);
    }
    // Another batch, while the response to the first runs.
    provider.say(&began("r2")).await;
    provider.say(&json!({"type": "response.output_audio.delta", "item_id": "i", "delta": "AQI="})).await;
    assert!(matches!(event(&mut connection).await.unwrap(), LiveEvent::Audio(_)));
    connection.send(result("c", true, false));
    flush(&mut connection).await;
    assert_eq!(provider.hear().await.unwrap(), output("c"));
    provider.say(&done("r2", "completed", json!([]))).await;
    until(&mut connection, &LiveEvent::TurnComplete { more_follows: true }).await;
    flush(&mut connection).await;
    assert_eq!(provider.hear().await.unwrap(), respond(2));
    // The provider had begun one by itself: ours waits for its end.
    provider.say(&began("r3")).await;
    let error = json!({"type": "invalid_request_error", "code": "conversation_already_has_active_response"});
    provider.say(&json!({"type": "error", "error": error})).await;
    provider.say(&done("r3", "completed", json!([]))).await;
    let before = until(&mut connection, &LiveEvent::TurnComplete { more_follows: true }).await;
    assert!(matches!(&before[..], [LiveEvent::Warning(_)]), "another answer follows: {before:?}");
    flush(&mut connection).await;
    assert_eq!(provider.hear().await.unwrap(), respond(3));
    // Silent results request no response.
    provider.say(&began("r4")).await;
    provider.say(&done("r4", "completed", json!([]))).await;
    until(&mut connection, &OVER).await;
    connection.send(result("d", true, true));
    connection.send(LiveInput::Note { text: "by the way", asks: true });
    flush(&mut connection).await;
    assert_eq!(provider.hear().await.unwrap(), output("d"));
    assert_eq!(provider.hear().await.unwrap()["item"]["role"], "system");
    assert_eq!(provider.hear().await.unwrap(), respond(4));
}

#[tokio::test(start_paused = true)]
async fn an_interruption_truncates_what_was_not_played() {
    let (mut connection, mut provider) = plain().await;
    let second = base64_simd::STANDARD.encode_to_string(vec![0; 48_000]);
    let audio =
        json!({"type": "response.output_audio.delta", "item_id": "i1", "content_index": 0, "delta": second});
    let speaks = json!({"type": "input_audio_buffer.speech_started", "item_id": "p"});
    provider.say(&began("r1")).await;
    for _ in 0..3 {
        provider.say(&audio).await;
        assert!(matches!(event(&mut connection).await.unwrap(), LiveEvent::Audio(Audio::Base64(_))));
    }
    tokio::time::advance(Duration::from_millis(1_200)).await;
    provider.say(&speaks).await;
    // What was on its way is not heard either.
    provider.say(&audio).await;
    provider.say(&done("r1", "cancelled", json!([]))).await;
    let cut = LiveEvent::Interrupted { end_follows: true };
    assert_eq!(until(&mut connection, &OVER).await, [cut, LiveEvent::SpeechStarted]);
    flush(&mut connection).await;
    let truncated = provider.hear().await.unwrap();
    assert_eq!(truncated["type"], "conversation.item.truncate");
    assert_eq!((&truncated["item_id"], &truncated["content_index"]), (&json!("i1"), &json!(0)));
    assert_eq!(truncated["audio_end_ms"], 1_200);
    // Speech while nothing is played interrupts nothing.
    provider.say(&speaks).await;
    provider.say(&json!({"type": "input_audio_buffer.speech_stopped"})).await;
    provider.say(&began("r2")).await;
    provider.say(&done("r2", "completed", json!([]))).await;
    assert_eq!(
        until(&mut connection, &OVER).await,
        [LiveEvent::SpeechStarted, LiveEvent::GenerationComplete]
    );
}

#[tokio::test]
async fn an_interrupt_cancels_the_active_response() {
    let (mut connection, mut provider) = plain().await;
    let second = base64_simd::STANDARD.encode_to_string(vec![0; 48_000]);
    provider.say(&began("r1")).await;
    provider.say(&json!({"type": "response.output_audio.delta", "item_id": "i1", "delta": second})).await;
    event(&mut connection).await.unwrap();
    connection.send(LiveInput::Interrupt { heard: Some(Duration::from_millis(300)) });
    connection.send(LiveInput::Interrupt { heard: Some(Duration::from_millis(300)) });
    connection.send(LiveInput::Text("stop"));
    flush(&mut connection).await;
    let cancel = json!({"type": "response.cancel", "event_id": "cancel", "response_id": "r1"});
    assert_eq!(provider.hear().await.unwrap(), cancel);
    assert_eq!(provider.hear().await.unwrap()["audio_end_ms"], 300);
    assert_eq!(provider.hear().await.unwrap()["item"]["role"], "user");
    provider.say(&done("r1", "cancelled", json!([]))).await;
    until(&mut connection, &LiveEvent::TurnComplete { more_follows: true }).await;
    flush(&mut connection).await;
    assert_eq!(provider.hear().await.unwrap(), respond(1));
}

#[tokio::test]
async fn what_is_spoken_goes_up_at_the_rate_that_the_provider_takes() {
    let (mut connection, mut provider) = plain().await;
    let samples: Vec<u8> = (0..320_i16).flat_map(|n| (n * 30).to_le_bytes()).collect();
    connection.send(LiveInput::Audio(Audio::Pcm(samples[..320].into())));
    connection.send(LiveInput::Audio(Audio::Base64(
        base64_simd::STANDARD.encode_to_string(&samples[320..]).into(),
    )));
    flush(&mut connection).await;
    let mut up = Vec::new();
    for _ in 0..2 {
        let message = provider.hear().await.unwrap();
        assert_eq!(message["type"], "input_audio_buffer.append");
        up.extend(base64_simd::STANDARD.decode_to_vec(message["audio"].as_str().unwrap()).unwrap());
    }
    let up: Vec<_> = up.as_chunks().0.iter().map(|sample| i16::from_le_bytes(*sample)).collect();
    assert_eq!(up.len(), 480);
    assert!(up[2..].is_sorted() && up[470] == 30 * 312 + 10, "{up:?}");
}

#[tokio::test]
async fn audio_ended_in_the_middle_of_speech_commits_it() {
    let (mut connection, mut provider) = plain().await;
    connection.send(LiveInput::AudioEnded);
    provider.say(&json!({"type": "input_audio_buffer.speech_started"})).await;
    assert_eq!(event(&mut connection).await.unwrap(), LiveEvent::SpeechStarted);
    connection.send(LiveInput::AudioEnded);
    flush(&mut connection).await;
    let commit = json!({"type": "input_audio_buffer.commit", "event_id": "commit"});
    assert_eq!(provider.hear().await.unwrap(), commit);
    assert_eq!(provider.hear().await.unwrap(), respond(1));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_hour_is_announced() {
    let (mut connection, mut provider) = plain().await;
    let begun = tokio::time::Instant::now();
    let provider = async {
        loop {
            while provider.socket.next().is_some() {}
            provider.socket.flush().await.unwrap();
            provider.socket.fill().await.unwrap();
        }
    };
    let away = tokio::select! {
        event = event(&mut connection) => event.unwrap(),
        () = provider => unreachable!("it goes on for ever"),
    };
    assert_eq!(away, LiveEvent::GoingAway { left: Some(Duration::from_secs(300)) });
    assert_eq!(begun.elapsed().as_secs(), 55 * 60);
}

#[tokio::test(start_paused = true)]
async fn an_error_that_names_no_event_is_waited_out() {
    let error = json!({"type": "server_error", "code": null, "message": "oops", "event_id": null});
    let error = json!({"type": "error", "error": error});
    for comes in [true, false] {
        let (mut connection, mut provider) = plain().await;
        connection.send(LiveInput::Text("Tide?"));
        flush(&mut connection).await;
        provider.say(&error).await;
        if comes {
            provider.say(&began("r1")).await;
            provider.say(&done("r1", "completed", json!([]))).await;
        }
        let events = until(&mut connection, &OVER).await;
        assert_eq!(events.contains(&LiveEvent::ResponseFailed), !comes, "{events:?}");
    }
}

#[tokio::test]
async fn a_refused_response_request_lets_the_next_one_through() {
    let (mut connection, mut provider) = plain().await;
    connection.send(LiveInput::Text("One?"));
    connection.send(LiveInput::Text("Two?"));
    let error = json!({"code": "invalid_value", "message": "no", "event_id": "ask_1"});
    provider.say(&json!({"type": "error", "error": error})).await;
    assert!(matches!(event(&mut connection).await.unwrap(), LiveEvent::Warning(_)));
    flush(&mut connection).await;
    let mut heard = Vec::new();
    for _ in 0..4 {
        heard.push(provider.hear().await.unwrap());
    }
    assert_eq!(heard[3], respond(2), "{heard:?}");
}

#[tokio::test]
async fn an_interrupt_suppresses_a_response_that_has_not_started() {
    let (mut connection, mut provider) = plain().await;
    connection.send(LiveInput::Text("Tide?"));
    connection.send(LiveInput::Interrupt { heard: None });
    provider.say(&began("r1")).await;
    provider.say(&json!({"type": "response.output_audio.delta", "item_id": "i", "delta": "AQIDBA=="})).await;
    provider.say(&done("r1", "cancelled", json!([]))).await;
    assert_eq!(until(&mut connection, &OVER).await, []);
    flush(&mut connection).await;
    for _ in 0..2 {
        provider.hear().await.unwrap();
    }
    assert_eq!(provider.hear().await.unwrap()["type"], "response.cancel");
}
