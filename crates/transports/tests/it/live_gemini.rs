//! Whole conversations with Gemini Live, over a pipe.

use std::time::Duration;

use quarterdeck_contracts::{
    Audio, CallArguments, ErrorType, HandlerAnswer, LiveConnection, LiveErrorKind, LiveEvent, LiveInput,
    LiveModel, LiveResult, LiveTurn, ModelCall, Speaker, ToolError,
};
use quarterdeck_transports::{GeminiLive, GeminiLiveConfig};
use quarterdeck_websocket::{CloseCode, knock};
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::live_pipe::{Pipe, Provider, envelope, event, flush, opening};

type Ends = UnboundedReceiver<DuplexStream>;

fn model(name: &str) -> (GeminiLive, Ends) {
    let (pipe, ends) = Pipe::new(1 << 16);
    let config = GeminiLiveConfig { model: name.to_owned(), ..GeminiLiveConfig::new("AIza-very-secret") };
    (GeminiLive::new(config).unwrap().with_dialer(pipe), ends)
}

/// Both ends of a conversation, and the setup.
async fn conversation(name: &str) -> (Box<dyn LiveConnection>, Provider, Value) {
    let (model, mut ends) = model(name);
    let connecting = model.connect(opening());
    let provider = async {
        let mut provider = Provider::let_in(&mut ends).await;
        let setup = provider.hear().await.unwrap();
        provider.say(&json!({"setupComplete": {}})).await;
        (provider, setup)
    };
    let (connection, (provider, setup)) = tokio::join!(connecting, provider);
    (connection.unwrap(), provider, setup)
}

#[tokio::test]
async fn a_conversation_is_opened_with_the_key_in_a_header_and_the_setup_first() {
    let (_connection, provider, setup) = conversation("gemini-3.8-live").await;
    assert_eq!(
        provider.request.target,
        "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
    );
    assert_eq!(provider.request.header("x-goog-api-key"), Some("AIza-very-secret"));
    assert_eq!(setup["setup"]["model"], "models/gemini-3.8-live");
}

#[tokio::test]
async fn a_call_comes_before_the_audio_of_its_message_and_is_answered_by_its_id() {
    let (mut connection, mut provider, _) = conversation("gemini-3.8-live").await;
    let audio = json!({"modelTurn": {"parts": [{"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": "AQI="}}]}});
    let calls =
        json!({"functionCalls": [{"id": "f1", "name": "tide", "args": {"at": "Oslo"}}, {"name": "clock"}]});
    provider.say(&json!({"serverContent": audio, "toolCall": calls})).await;
    let call = |id: Option<&str>, name: &str, args: Value| ModelCall {
        id: id.map(str::to_owned),
        name: name.to_owned(),
        arguments: CallArguments::Json(args),
    };
    let expected = vec![call(Some("f1"), "tide", json!({"at": "Oslo"})), call(None, "clock", json!({}))];
    assert_eq!(event(&mut connection).await.unwrap(), LiveEvent::Calls(expected));
    assert_eq!(event(&mut connection).await.unwrap(), LiveEvent::Audio(Audio::Base64("AQI=".into())));

    let success = envelope(HandlerAnswer::success(json!({"metres": 2})));
    let failure = envelope(HandlerAnswer::failure(ToolError::new(ErrorType::NotFound, "no such clock")));
    let first =
        LiveResult { id: Some("f1"), name: "tide", response: &success, is_silent: false, is_last: false };
    let second = LiveResult { id: None, name: "clock", response: &failure, is_silent: true, is_last: true };
    connection.send(LiveInput::Result(first));
    connection.send(LiveInput::Result(second));
    flush(&mut connection).await;
    assert_eq!(
        provider.hear().await.unwrap(),
        json!({"toolResponse": {"functionResponses": [
            {"id": "f1", "name": "tide", "response": {"output": {"metres": 2}}, "scheduling": "WHEN_IDLE"},
        ]}})
    );
    assert_eq!(
        provider.hear().await.unwrap(),
        json!({"toolResponse": {"functionResponses": [{
            "id": "clock", "name": "clock", "scheduling": "SILENT",
            "response": {"error": {"type": "NOT_FOUND", "message": "no such clock", "retryable": false}},
        }]}})
    );
}

#[tokio::test]
async fn history_goes_right_after_the_setup_and_turns_of_one_speaker_stay_apart() {
    let turn = |by, text: &str| LiveTurn { by, text: text.to_owned() };
    let history = vec![
        turn(Speaker::Person, "Hi"),
        turn(Speaker::Model, "Hello!"),
        turn(Speaker::Person, "Weather?"),
        turn(Speaker::Person, "In Oslo."),
    ];
    let content = |role: &str, text: &str| json!({"parts": [{"text": text}], "role": role});
    let all = [
        content("user", "Hi"),
        content("model", "Hello!"),
        content("user", "Weather?"),
        content("user", "In Oslo."),
    ];
    for (name, announced, expected) in [
        (
            "gemini-3.8-live",
            Value::Null,
            vec![json!({"clientContent": {"turns": all, "turnComplete": true}})],
        ),
        (
            "gemini-3.1-flash-live-preview",
            json!({"initialHistoryInClientContent": true}),
            vec![
                json!({"clientContent": {"turns": all[..3], "turnComplete": true}}),
                json!({"realtimeInput": {"text": "In Oslo."}}),
            ],
        ),
    ] {
        let (model, mut ends) = model(name);
        let connecting = model.connect(quarterdeck_contracts::LiveOpening {
            history: history.clone(),
            asks: true,
            ..opening()
        });
        let provider = async {
            let mut provider = Provider::let_in(&mut ends).await;
            let setup = provider.hear().await.unwrap();
            assert_eq!(setup["setup"]["historyConfig"], announced, "{name}");
            provider.say(&json!({"setupComplete": {}})).await;
            for expected in expected {
                assert_eq!(provider.hear().await.unwrap(), expected, "{name}");
            }
            provider
        };
        let (connection, _provider) = tokio::join!(connecting, provider);
        connection.unwrap();
    }
}

#[tokio::test]
async fn a_conversation_that_is_refused_says_why_and_never_shows_the_key() {
    for (code, reason, kind) in [
        (1007, "Request contains an invalid argument.", LiveErrorKind::Refused),
        (1008, "models/x is not found", LiveErrorKind::Refused),
        (1007, "API key not valid: AIza-very-secret", LiveErrorKind::Auth),
        (1011, "Internal error", LiveErrorKind::Lost),
        (1011, "You exceeded your current quota", LiveErrorKind::Busy),
        (1001, "", LiveErrorKind::Lost),
    ] {
        let (model, mut ends) = model("gemini-3.8-live");
        let connecting = model.connect(opening());
        let provider = async {
            let mut provider = Provider::let_in(&mut ends).await;
            provider.hear().await.unwrap();
            provider.socket.finish(CloseCode(code), reason).await.unwrap();
        };
        let (connection, ()) = tokio::join!(connecting, provider);
        let Err(error) = connection else { panic!("it was refused") };
        assert_eq!((error.kind, error.code), (kind, Some(code)), "{reason}");
        assert!(!error.to_string().contains("secret"), "{error}");
        assert!(error.model == "gemini/gemini-3.8-live");
    }
}

#[tokio::test]
async fn an_http_answer_in_place_of_a_socket_is_understood() {
    for (status, body, kind) in [
        ("401 Unauthorized", "", LiveErrorKind::Auth),
        ("403 Forbidden", "", LiveErrorKind::Auth),
        ("400 Bad Request", "API key not valid. Please pass a valid API key.", LiveErrorKind::Auth),
        ("404 Not Found", "", LiveErrorKind::Refused),
        ("429 Too Many Requests", "", LiveErrorKind::Busy),
        ("503 Service Unavailable", "", LiveErrorKind::Busy),
        ("500 Internal Server Error", "", LiveErrorKind::Lost),
        ("302 Found", "", LiveErrorKind::Refused),
    ] {
        let (model, mut ends) = model("gemini-3.8-live");
        let connecting = model.connect(opening());
        let provider = async {
            let waiting = knock(ends.recv().await.unwrap()).await.unwrap();
            waiting.refuse(status, body).await.unwrap();
        };
        let (connection, ()) = tokio::join!(connecting, provider);
        let Err(error) = connection else { panic!("it was refused") };
        assert_eq!(error.kind, kind, "{status}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_never_gets_ready_is_given_up() {
    let (model, mut ends) = model("gemini-3.8-live");
    let connecting = model.connect(opening());
    let provider = async {
        let mut provider = Provider::let_in(&mut ends).await;
        provider.hear().await.unwrap();
        assert_eq!(provider.hear().await, None);
    };
    let begun = tokio::time::Instant::now();
    let (connection, ()) = tokio::join!(connecting, provider);
    let Err(error) = connection else { panic!("it was never ready") };
    assert_eq!(error.kind, LiveErrorKind::Silent);
    assert_eq!(begun.elapsed(), Duration::from_secs(10));
}
