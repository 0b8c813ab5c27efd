//! Image models: the two wire formats, as the providers document them, and servers that refuse, break off and answer with
//! something else. Whatever happens, a request is sent once.

use std::time::Duration;

use quarterdeck_contracts::{
    Aspect, ImageError, ImageErrorKind, ImageInfo, ImageProvider, ImageRequest, ImageType,
};
use quarterdeck_transports::{
    ConfigError, GeminiImages, GeminiImagesConfig, Limits, OpenAiImages, OpenAiImagesConfig, Secret,
};
use serde_json::{Value, json};

use crate::client::KEY;
use crate::server::{Act, Server, answer};

const JSON: &str = "content-type: application/json\r\n";

#[derive(Debug, Clone, Copy)]
enum Provider {
    OpenAi,
    Gemini,
}

impl Provider {
    const BOTH: [Self; 2] = [Self::OpenAi, Self::Gemini];

    fn at(self, base_url: &str, limits: Limits) -> Box<dyn ImageProvider> {
        match self {
            Self::OpenAi => Box::new(
                OpenAiImages::new(OpenAiImagesConfig {
                    base_url: format!("{base_url}/v1"),
                    quality: Some("low".into()),
                    limits,
                    ..OpenAiImagesConfig::new(Some(Secret::new(KEY)))
                })
                .unwrap(),
            ),
            Self::Gemini => Box::new(
                GeminiImages::new(&GeminiImagesConfig {
                    base_url: base_url.to_owned(),
                    limits,
                    ..GeminiImagesConfig::new(KEY)
                })
                .unwrap(),
            ),
        }
    }

    fn fine(self) -> Act {
        let body = match self {
            Self::OpenAi => include_str!("../golden/images/openai-image.json"),
            Self::Gemini => include_str!("../golden/images/gemini-image.json"),
        };
        Act::Send(answer("200 OK", JSON, body))
    }
}

fn limits() -> Limits {
    Limits { total: Duration::from_secs(20), response: 1 << 20, ..Limits::default() }
}

fn request(aspect: Aspect) -> ImageRequest {
    ImageRequest { prompt: "A lighthouse in fog".into(), aspect }
}

async fn generate(provider: Provider, script: Vec<Act>) -> (Result<Vec<u8>, ImageError>, Server) {
    generate_within(provider, script, limits()).await
}

async fn generate_within(
    provider: Provider,
    script: Vec<Act>,
    limits: Limits,
) -> (Result<Vec<u8>, ImageError>, Server) {
    let server = Server::start(script).await;
    let image = provider.at(&server.url(), limits).generate(request(Aspect::Landscape)).await;
    (image, server)
}

fn body_of(request: &str) -> Value {
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[tokio::test]
async fn openai_is_asked_for_one_image_and_its_base64_is_decoded() {
    let (image, server) = generate(Provider::OpenAi, vec![Provider::OpenAi.fine()]).await;
    let info = ImageInfo::read(&image.unwrap()).unwrap();
    assert_eq!(info, ImageInfo { kind: ImageType::Png, width: 12, height: 8 });
    let sent = &server.requests()[0];
    assert!(sent.starts_with("POST /v1/images/generations HTTP/1.1\r\n"), "{sent}");
    assert!(sent.contains(&format!("authorization: Bearer {KEY}\r\n")), "{sent}");
    assert_eq!(
        body_of(sent),
        json!({
            "model": "gpt-image-2", "prompt": "A lighthouse in fog", "n": 1, "size": "1536x1024",
            "output_format": "webp", "quality": "low",
        })
    );
}

#[tokio::test]
async fn gemini_is_asked_for_an_image_and_its_thoughts_are_not_the_answer() {
    let (image, server) = generate(Provider::Gemini, vec![Provider::Gemini.fine()]).await;
    let info = ImageInfo::read(&image.unwrap()).unwrap();
    assert_eq!((info.width, info.height), (12, 8), "the sketch of its thoughts has four pixels a side");
    let sent = &server.requests()[0];
    let path = "POST /v1beta/models/gemini-nano-banana-2.1:generateContent HTTP/1.1\r\n";
    assert!(sent.starts_with(path) && sent.contains(&format!("x-goog-api-key: {KEY}\r\n")), "{sent}");
    assert_eq!(
        body_of(sent),
        json!({
            "contents": [{ "role": "user", "parts": [{ "text": "A lighthouse in fog" }] }],
            "generationConfig": { "responseModalities": ["IMAGE"], "imageConfig": { "aspectRatio": "3:2" } },
        })
    );
}

#[tokio::test]
async fn every_aspect_has_a_size_at_both_providers() {
    for (provider, place, sizes) in [
        (Provider::OpenAi, "/size", ["1024x1024", "1536x1024", "1024x1536"]),
        (Provider::Gemini, "/generationConfig/imageConfig/aspectRatio", ["1:1", "3:2", "2:3"]),
    ] {
        for (aspect, size) in [Aspect::Square, Aspect::Landscape, Aspect::Portrait].into_iter().zip(sizes) {
            let server = Server::start(vec![provider.fine()]).await;
            provider.at(&server.url(), limits()).generate(request(aspect)).await.unwrap();
            assert_eq!(body_of(&server.requests()[0]).pointer(place), Some(&json!(size)), "{aspect:?}");
        }
    }
}

#[tokio::test]
async fn content_policy_is_a_refusal_however_it_is_told() {
    let blocked = include_str!("../golden/images/openai-moderation-blocked.json");
    let prompt = include_str!("../golden/images/gemini-prompt-blocked.json");
    let withheld = include_str!("../golden/images/gemini-image-withheld.json");
    for (provider, status, body) in [
        (Provider::OpenAi, "400 Bad Request", blocked),
        (Provider::OpenAi, "200 OK", r#"{"created":1,"data":[]}"#),
        (Provider::OpenAi, "200 OK", blocked),
        (Provider::Gemini, "200 OK", prompt),
        (Provider::Gemini, "200 OK", withheld),
    ] {
        let (image, server) = generate(provider, vec![Act::Send(answer(status, JSON, body))]).await;
        assert_eq!(image.unwrap_err().kind, ImageErrorKind::Refused, "{provider:?} {body}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn failures_say_what_can_be_done_and_whether_an_image_may_have_been_charged() {
    use ImageErrorKind::{RateLimited, Rejected, Unauthorised, Unavailable, Unknown};
    let quota = r#"{"error":{"message":"Pay","code":"insufficient_quota"}}"#;
    let model =
        r#"{"error":{"message":"no such model","type":"invalid_request_error","code":"model_not_found"}}"#;
    for (status, body, kind) in [
        ("401 Unauthorized", r#"{"error":{"message":"Incorrect API key"}}"#, Unauthorised),
        ("403 Forbidden", "{}", Unauthorised),
        ("429 Too Many Requests", "{}", RateLimited),
        ("429 Too Many Requests", quota, Rejected),
        ("404 Not Found", model, Rejected),
        ("307 Temporary Redirect", "", Rejected),
        ("503 Service Unavailable", "busy", Unavailable),
        ("500 Internal Server Error", "oops", Unknown),
        ("502 Bad Gateway", "<html>", Unknown),
        ("504 Gateway Timeout", "", Unknown),
    ] {
        for provider in Provider::BOTH {
            let script = vec![Act::Send(answer(status, JSON, body)), provider.fine()];
            let (image, server) = generate(provider, script).await;
            assert_eq!(image.unwrap_err().kind, kind, "{provider:?} {status} {body}");
            assert_eq!(server.requests().len(), 1, "{status} was tried again");
        }
    }
}

#[tokio::test]
async fn a_delay_that_a_provider_asks_for_is_passed_on() {
    let quota = include_str!("../golden/images/gemini-quota.json");
    let script = vec![Act::Send(answer("429 Too Many Requests", JSON, quota))];
    let (image, _) = generate(Provider::Gemini, script).await;
    assert_eq!(image.unwrap_err().retry_after, Some(Duration::from_secs(17)));
    let script = vec![Act::Send(answer("429 Too Many Requests", "retry-after-ms: 1500\r\n", "{}"))];
    let (image, _) = generate(Provider::OpenAi, script).await;
    assert_eq!(image.unwrap_err().retry_after, Some(Duration::from_millis(1_500)));
}

#[tokio::test]
async fn a_request_that_was_sent_is_never_sent_again() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n{\"data\":[{".to_vec();
    for provider in Provider::BOTH {
        for act in
            [Act::Send(Vec::new()), Act::Reset(Vec::new()), Act::Send(half.clone()), Act::Reset(half.clone())]
        {
            let (image, server) = generate(provider, vec![act.clone(), provider.fine()]).await;
            assert_eq!(image.unwrap_err().kind, ImageErrorKind::Unknown, "{provider:?} {act:?}");
            assert_eq!(server.requests().len(), 1, "{provider:?} {act:?}");
        }
    }
}

#[tokio::test]
async fn a_silent_provider_is_given_up_and_its_connection_closed() {
    let limits = Limits { total: Duration::from_millis(300), ..limits() };
    for provider in Provider::BOTH {
        let (image, server) =
            generate_within(provider, vec![Act::SendAndHang(Vec::new())], limits.clone()).await;
        assert_eq!(image.unwrap_err().kind, ImageErrorKind::Unknown);
        assert!(server.is_disconnected().await);
    }
}

#[tokio::test]
async fn a_provider_that_is_not_there_has_made_nothing() {
    for provider in Provider::BOTH {
        // Port 1 of this machine: nothing listens there.
        let image = provider.at("http://127.0.0.1:1", limits()).generate(request(Aspect::Square)).await;
        assert_eq!(image.unwrap_err().kind, ImageErrorKind::Unavailable);
    }
}

#[tokio::test]
async fn an_answer_without_an_end_stops_at_the_limit() {
    let head = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    for provider in Provider::BOTH {
        let act = Act::Endlessly(head.clone(), vec![b' '; 64 << 10], Duration::ZERO);
        let (image, server) = generate(provider, vec![act]).await;
        let error = image.unwrap_err();
        assert_eq!(
            (error.kind, &*error.detail),
            (ImageErrorKind::Unknown, "the answer is larger than 1048576 bytes")
        );
        assert!(server.is_disconnected().await);
    }
}

#[tokio::test]
async fn an_answer_that_is_something_else_is_no_image() {
    let address = r#"{"data":[{"url":"https://images.example/1.png"}]}"#;
    let no_image = include_str!("../golden/images/gemini-no-image.json");
    for (provider, body, kind) in [
        (Provider::OpenAi, "", ImageErrorKind::Unknown),
        (Provider::OpenAi, "[]", ImageErrorKind::Unknown),
        (Provider::OpenAi, address, ImageErrorKind::Unknown),
        (Provider::OpenAi, r#"{"data":[{"b64_json":"not base64!"}]}"#, ImageErrorKind::Unknown),
        (Provider::Gemini, "<html>", ImageErrorKind::Unknown),
        (Provider::Gemini, "{}", ImageErrorKind::Unknown),
        (
            Provider::Gemini,
            r#"{"candidates":[{"content":{"parts":[{"inlineData":{"data":7}}]}}]}"#,
            ImageErrorKind::Unknown,
        ),
        (Provider::Gemini, no_image, ImageErrorKind::Rejected),
    ] {
        let (image, _) = generate(provider, vec![Act::Send(answer("200 OK", JSON, body))]).await;
        assert_eq!(image.unwrap_err().kind, kind, "{provider:?} {body}");
    }
}

#[tokio::test]
async fn a_key_that_a_provider_repeats_is_in_no_error() {
    let body = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}"}}}}"#);
    for provider in Provider::BOTH {
        let (image, _) = generate(provider, vec![Act::Send(answer("401 Unauthorized", JSON, &body))]).await;
        let error = image.unwrap_err();
        assert!(!format!("{error} {error:?}").contains(KEY), "{error:?}");
    }
}

#[test]
fn settings_that_cannot_work_are_refused_before_the_first_request() {
    let no_key = GeminiImages::new(&GeminiImagesConfig::new(""));
    assert!(matches!(no_key.unwrap_err(), ConfigError::NoKey { .. }));
    for model in ["", "../x", "a b", "a?b"] {
        let config = GeminiImagesConfig { model: model.into(), ..GeminiImagesConfig::new(KEY) };
        assert!(matches!(GeminiImages::new(&config).unwrap_err(), ConfigError::Model { .. }), "{model}");
    }
    let config = OpenAiImagesConfig { base_url: "ftp://x".into(), ..OpenAiImagesConfig::new(None) };
    assert!(matches!(OpenAiImages::new(config).unwrap_err(), ConfigError::BaseUrl { .. }));
}
