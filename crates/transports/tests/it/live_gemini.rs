//! Whole conversations with Gemini Live, over a pipe.

use std::time::Duration;

use quarterdeck_contracts::{
    Audio, CallArguments, ErrorType, HandlerAnswer, LiveConnection, LiveErrorKind, LiveEvent, LiveInput,
    LiveModel, LiveResult, LiveTurn, ModelCall, Speaker, ToolError,
};
use quarterdeck_transports::{GeminiLive, GeminiLiveConfig};
use quarterdeck_websocket::{CloseCode, receive_upgrade};
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::live_provider::{Pipe, Provider, envelope, event, flush, opening};

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
        let mut provider = Provider::accept(&mut ends).await;
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
            "name": "clock", "scheduling": "SILENT",
            "response": {"error": {"type": "NOT_FOUND", "message": "no such clock", "retryable": false}},
        }]}})
    );
}

#[tokio::test]
async fn history_goes_right_after_the_setup_and_turns_of_one_speaker_stay_apart() {
    let turn = |by, text: &str| LiveTurn { by, text: text.to_owned() };
    let history = vec![
        turn(Speaker::User, "Hi"),
        turn(Speaker::Model, "Hello!"),
        turn(Speaker::User, "Weather?"),
        turn(Speaker::User, "In Oslo."),
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
        let connecting = model.connect(quarterdeck_contracts::LiveSetup {
            history: history.clone(),
            asks: true,
            ..opening()
        });
        let provider = async {
            let mut provider = Provider::accept(&mut ends).await;
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
            let mut provider = Provider::accept(&mut ends).await;
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
            let waiting = receive_upgrade(ends.recv().await.unwrap()).await.unwrap();
            waiting.refuse(status, body).await.unwrap();
        };
        let (connection, ()) = tokio::join!(connecting, provider);
        let Err(error) = connection else { panic!("it was refused") };
        assert_eq!(error.kind, kind, "{status}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_never_gets_ready_times_out() {
    let (model, mut ends) = model("gemini-3.8-live");
    let connecting = model.connect(opening());
    let provider = async {
        let mut provider = Provider::accept(&mut ends).await;
        provider.hear().await.unwrap();
        assert_eq!(provider.hear().await, None);
    };
    let begun = tokio::time::Instant::now();
    let (connection, ()) = tokio::join!(connecting, provider);
    let Err(error) = connection else { panic!("it was never ready") };
    assert_eq!(error.kind, LiveErrorKind::TimedOut);
    assert_eq!(begun.elapsed(), Duration::from_secs(10));
}

#[tokio::test]
async fn a_family_that_blocks_gets_no_schedule_and_what_is_written_waits_for_the_results() {
    let (mut connection, mut provider, _) = conversation("gemini-3.1-flash-live-preview").await;
    let calls = json!([{"id": "f1", "name": "tide"}, {"id": "f2", "name": "tide"}]);
    provider.say(&json!({"toolCall": {"functionCalls": calls}})).await;
    assert!(matches!(event(&mut connection).await.unwrap(), LiveEvent::Calls(_)));
    connection.send(LiveInput::Text("never mind"));
    let response = envelope(HandlerAnswer::success(json!(2)));
    let result =
        LiveResult { id: Some("f1"), name: "tide", response: &response, is_silent: true, is_last: false };
    connection.send(LiveInput::Result(result));
    flush(&mut connection).await;
    assert_eq!(
        provider.hear().await.unwrap(),
        json!({"toolResponse": {"functionResponses": [{"id": "f1", "name": "tide", "response": {"output": 2}}]}})
    );
    // The other one is taken back, so nothing is waited for any more.
    provider.say(&json!({"toolCallCancellation": {"ids": ["f2"]}})).await;
    assert_eq!(event(&mut connection).await.unwrap(), LiveEvent::CallsCancelled(vec!["f2".to_owned()]));
    flush(&mut connection).await;
    assert_eq!(provider.hear().await.unwrap(), json!({"realtimeInput": {"text": "never mind"}}));
}

#[tokio::test]
async fn an_interrupt_suppresses_the_rest_of_this_answer_and_nothing_of_the_next() {
    let (mut connection, mut provider, _) = conversation("gemini-3.8-live").await;
    let audio = json!({"serverContent": {"modelTurn": {"parts": [
        {"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": "AQI="}},
    ]}}});
    let heard = LiveEvent::Audio(Audio::Base64("AQI=".into()));
    // There is nothing to be silent about yet.
    connection.send(LiveInput::Interrupt { heard: None });
    provider.say(&audio).await;
    assert_eq!(event(&mut connection).await.unwrap(), heard);
    connection.send(LiveInput::Interrupt { heard: None });
    flush(&mut connection).await;
    assert_eq!(provider.hear().await.unwrap(), json!({"clientContent": {"turnComplete": false}}));
    provider.say(&audio).await;
    provider.say(&json!({"serverContent": {"interrupted": true}})).await;
    provider.say(&audio).await;
    assert_eq!(event(&mut connection).await.unwrap(), LiveEvent::Interrupted { end_follows: true });
    assert_eq!(event(&mut connection).await.unwrap(), heard);
}

#[tokio::test]
async fn a_provider_on_the_network_is_reached_over_tcp_and_never_in_the_clear_when_it_should_not() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let at = |base_url: String| {
        GeminiLive::new(GeminiLiveConfig { base_url, ..GeminiLiveConfig::new("k") }).unwrap()
    };
    let provider = async {
        let waiting = receive_upgrade(listener.accept().await.unwrap().0).await.unwrap();
        assert_eq!(waiting.request.header("host"), Some(format!("localhost:{port}").as_str()));
        waiting.refuse("503 Service Unavailable", "").await.unwrap();
        let mut first = [0];
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::io::AsyncReadExt::read_exact(&mut stream, &mut first).await.unwrap();
        first[0]
    };
    let connecting = async {
        let plain = at(format!("ws://localhost:{port}")).connect(opening()).await.err().unwrap();
        let encrypted = at(format!("wss://localhost:{port}")).connect(opening()).await.err().unwrap();
        (plain.kind, encrypted.kind)
    };
    let (kinds, first) = tokio::join!(connecting, provider);
    assert_eq!(kinds, (LiveErrorKind::Busy, LiveErrorKind::Lost));
    assert_eq!(first, 0x16, "a TLS handshake");
}
