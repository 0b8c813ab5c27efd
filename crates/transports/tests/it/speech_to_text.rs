//! Transcription over HTTP: what is sent, what is understood, and servers that misbehave.

use std::time::Duration;

use quarterdeck_contracts::{SpeechError, SpeechErrorKind, SpeechToText, Transcript, Utterance};
use quarterdeck_transports::{ConfigError, Limits, OpenAiSpeechToText, OpenAiSpeechToTextConfig, Secret};

use crate::client::KEY;
use crate::server::{Act, Server, answer};

const JSON: &str = "content-type: application/json\r\n";

fn config(server: &Server) -> OpenAiSpeechToTextConfig {
    let config = OpenAiSpeechToTextConfig::new(Some(Secret::new(KEY)));
    let limits = Limits { backoff: Duration::from_millis(5), ..config.limits.clone() };
    OpenAiSpeechToTextConfig { base_url: format!("{}/v1", server.url()), limits, ..config }
}

fn utterance() -> Utterance {
    // Samples whose bytes are letters, so that they can be found in a request.
    Utterance { samples: vec![i16::from_le_bytes(*b"Oi"); 3].into(), language: Some("de-AT".into()) }
}

async fn transcribe(
    config: impl Fn(OpenAiSpeechToTextConfig) -> OpenAiSpeechToTextConfig,
    script: Vec<Act>,
) -> (Result<Transcript, SpeechError>, Server) {
    let server = Server::start(script).await;
    let engine = OpenAiSpeechToText::new(config(self::config(&server))).unwrap();
    let transcript = engine.transcribe(utterance()).await;
    let told =
        format!("{transcript:?} {}", transcript.as_ref().err().map(ToString::to_string).unwrap_or_default());
    assert!(!told.contains(KEY), "the key is in {told}");
    (transcript, server)
}

fn same(config: OpenAiSpeechToTextConfig) -> OpenAiSpeechToTextConfig {
    config
}

fn json(status: &str, body: &str) -> Act {
    Act::Send(answer(status, JSON, body))
}

#[tokio::test]
async fn an_utterance_is_sent_as_a_wav_file_in_a_form() {
    let body = r#"{"text":" Wer baute die Fram? ","logprobs":[{"token":"Wer","logprob":0.0}]}"#;
    let (transcript, server) = transcribe(same, vec![json("200 OK", body)]).await;
    assert_eq!(transcript.unwrap(), Transcript { text: "Wer baute die Fram?".into(), confidence: Some(1.0) });
    let sent = &server.requests()[0];
    assert!(sent.starts_with("POST /v1/audio/transcriptions HTTP/1.1\r\n"), "{sent}");
    assert!(sent.contains(&format!("authorization: Bearer {KEY}\r\n")), "{sent}");
    let (_, boundary) = sent.split_once("content-type: multipart/form-data; boundary=").unwrap();
    let boundary = boundary.split_once("\r\n").unwrap().0;
    let (_, form) = sent.split_once("\r\n\r\n").unwrap();
    let parts: Vec<_> = form.split(&format!("--{boundary}")).map(|part| part.trim_matches('\0')).collect();
    let field = |name: &str, value: &str| {
        format!("\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    assert_eq!(
        &parts[..5],
        [
            String::new(),
            field("model", "gpt-4o-mini-transcribe"),
            field("response_format", "json"),
            field("language", "de"),
            field("include[]", "logprobs"),
        ]
    );
    assert!(
        parts[5].contains("filename=\"speech.wav\"\r\ncontent-type: audio/wav\r\n\r\nRIFF"),
        "{}",
        parts[5]
    );
    assert!(parts[5].ends_with("data\u{6}\0\0\0OiOiOi\r\n"), "{:?}", parts[5]);
    assert_eq!(parts[6], "--\r\n");
}

#[tokio::test]
async fn a_server_that_knows_no_probabilities_is_not_asked_for_them() {
    let plain = |config| OpenAiSpeechToTextConfig { logprobs: false, api_key: None, ..config };
    let (transcript, server) = transcribe(plain, vec![json("200 OK", r#"{"text":"Aye"}"#)]).await;
    assert_eq!(transcript.unwrap().confidence, None);
    let sent = &server.requests()[0];
    assert!(!sent.contains("logprobs") && !sent.contains("authorization"), "{sent}");
}

#[tokio::test]
async fn a_transcript_that_comes_in_events_is_read_to_its_end_and_no_further() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n".to_vec();
    let event = |event: &str| format!("data: {event}\n\n").into_bytes();
    let delta = |words: &str| event(&format!(r#"{{"type":"transcript.text.delta","delta":"{words}"}}"#));
    let done = event(
        r#"{"type":"transcript.text.done","text":"Aye, captain.","logprobs":[{"token":"Aye","logprob":0}]}"#,
    );
    let streams = |config| OpenAiSpeechToTextConfig { streams: true, ..config };
    let (transcript, server) = transcribe(
        streams,
        // It does not close the connection.
        vec![Act::SendAndHang([head.clone(), delta("Aye,"), delta(" captain."), done].concat())],
    )
    .await;
    assert_eq!(transcript.unwrap(), Transcript { text: "Aye, captain.".into(), confidence: Some(1.0) });
    let sent = &server.requests()[0];
    assert!(sent.contains("name=\"stream\"\r\n\r\ntrue\r\n"), "{sent}");
    // A model that knows no events answers as ever.
    let (transcript, _) = transcribe(streams, vec![json("200 OK", r#"{"text":"Aye"}"#)]).await;
    assert_eq!(transcript.unwrap().text, "Aye");
    for (stream, kind) in [
        (delta("Aye"), SpeechErrorKind::Unavailable),
        (event(r#"{"error":{"message":"no","code":"invalid_api_key"}}"#), SpeechErrorKind::Auth),
        (event("no JSON"), SpeechErrorKind::Malformed),
    ] {
        let (transcript, _) = transcribe(same, vec![Act::Send([head.clone(), stream].concat())]).await;
        assert_eq!(transcript.unwrap_err().kind, kind);
    }
}

#[tokio::test]
async fn failures_have_the_kind_that_says_what_helps() {
    use SpeechErrorKind::{Auth, Busy, Malformed, Refused, Unavailable};
    let wrong_key = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}"}}}}"#);
    let quota = r#"{"error":{"message":"Pay","code":"insufficient_quota"}}"#;
    for (status, body, kind, requests) in [
        ("401 Unauthorized", &*wrong_key, Auth, 1),
        ("429 Too Many Requests", "{}", Busy, 2),
        ("429 Too Many Requests", quota, Refused, 1),
        ("400 Bad Request", r#"{"error":{"message":"no such model"}}"#, Refused, 1),
        ("413 Payload Too Large", "", Refused, 1),
        ("503 Service Unavailable", "", Unavailable, 2),
        ("307 Temporary Redirect", "", Refused, 1),
        ("200 OK", r#"{"error":{"message":"no such key","code":"invalid_api_key"}}"#, Auth, 1),
        ("200 OK", "{}", Malformed, 1),
        ("200 OK", r#"{"text":7}"#, Malformed, 1),
        ("200 OK", "", Malformed, 1),
        ("200 OK", "\u{1}\u{2}", Malformed, 1),
    ] {
        let (transcript, server) = transcribe(same, vec![json(status, body)]).await;
        assert_eq!(transcript.unwrap_err().kind, kind, "{status} {body}");
        assert_eq!(server.requests().len(), requests, "{status} {body}");
    }
    let page = Act::Send(answer("200 OK", "content-type: text/html\r\n", "<html>"));
    let error = transcribe(same, vec![page]).await.0.unwrap_err();
    assert_eq!(
        error.to_string(),
        "openai/gpt-4o-mini-transcribe: the answer is not JSON (its content type is text/html: is the base URL right?)"
    );
}

#[tokio::test]
async fn an_engine_that_recovers_is_asked_once_more() {
    let script = vec![json("503 Service Unavailable", ""), json("200 OK", r#"{"text":"Aye"}"#)];
    assert_eq!(transcribe(same, script).await.0.unwrap().text, "Aye");
    let unreachable =
        |config| OpenAiSpeechToTextConfig { base_url: "http://127.0.0.1:1/v1".into(), ..config };
    let (transcript, _) = transcribe(unreachable, vec![json("200 OK", "{}")]).await;
    assert_eq!(transcript.unwrap_err().kind, SpeechErrorKind::Unavailable);
}

#[tokio::test]
async fn silent_cut_and_endless_answers_end() {
    let soon = Duration::from_millis(300);
    let impatient = |mut config: OpenAiSpeechToTextConfig| {
        config.limits = Limits { first_byte: soon, idle: soon, retries: 0, ..config.limits };
        config
    };
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"text\":".to_vec();
    for (act, kind) in [
        (Act::SendAndHang(Vec::new()), SpeechErrorKind::TimedOut),
        (Act::SendAndHang(half.clone()), SpeechErrorKind::TimedOut),
        (Act::Send(half.clone()), SpeechErrorKind::Unavailable),
        (Act::Reset(half), SpeechErrorKind::Unavailable),
        (
            Act::Endlessly(b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), vec![b' '; 64 << 10], Duration::ZERO),
            SpeechErrorKind::Malformed,
        ),
    ] {
        let (transcript, _) = transcribe(impatient, vec![act.clone()]).await;
        assert_eq!(transcript.unwrap_err().kind, kind, "{act:?}");
    }
}

#[tokio::test]
async fn one_request_too_many_is_busy_and_a_dropped_one_makes_room() {
    let server = Server::start(vec![Act::SendAndHang(Vec::new())]).await;
    let engine =
        OpenAiSpeechToText::new(OpenAiSpeechToTextConfig { max_requests: 1, ..config(&server) }).unwrap();
    let mut first = engine.transcribe(utterance());
    assert!(tokio::time::timeout(Duration::from_millis(100), &mut first).await.is_err(), "it waits");
    let error = engine.transcribe(utterance()).await.unwrap_err();
    assert_eq!(
        (error.kind, &*error.detail),
        (SpeechErrorKind::Busy, "1 requests are under way, which is the limit")
    );
    drop(first);
    assert!(server.is_disconnected().await);
    let mut next = engine.transcribe(utterance());
    assert!(tokio::time::timeout(Duration::from_millis(100), &mut next).await.is_err(), "it has a slot");
}

#[tokio::test]
async fn settings_and_utterances_that_cannot_work_are_refused_before_anything_is_sent() {
    let with = |base_url: &str, model: &str| {
        let config = OpenAiSpeechToTextConfig::new(None);
        OpenAiSpeechToText::new(OpenAiSpeechToTextConfig {
            base_url: base_url.into(),
            model: model.into(),
            ..config
        })
    };
    assert!(matches!(with("ftp://x", "m").unwrap_err(), ConfigError::BaseUrl { .. }));
    assert!(matches!(with("http://x", "a\r\nb").unwrap_err(), ConfigError::Model { .. }));
    let engine = with("http://127.0.0.1:1", "m").unwrap();
    let samples = vec![0; 11 * 60 * 16_000].into();
    let error = engine.transcribe(Utterance { samples, language: None }).await.unwrap_err();
    assert_eq!(error.kind, SpeechErrorKind::Refused);
}
