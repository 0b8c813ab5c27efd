//! Errors as providers word them.

use serde_json::json;

use super::*;

fn from_status(status: u16, body: Value) -> Fault {
    Fault::from_status(status, "", body.to_string().as_bytes(), true)
}

#[test]
fn a_status_and_the_providers_words_give_the_kind() {
    use ChatErrorKind::{Overloaded, RateLimited, Refused, Rejected, TooLong, Unauthorised};
    let error = |error: Value| json!({ "error": error });
    for (status, body, kind, is_retryable) in [
        (401, error(json!({"message": "Incorrect API key", "code": "invalid_api_key"})), Unauthorised, false),
        (
            400,
            error(json!({"status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]})),
            Unauthorised,
            false,
        ),
        (429, error(json!({"code": "rate_limit_exceeded"})), RateLimited, true),
        (429, error(json!({"code": "insufficient_quota"})), RateLimited, false),
        (400, error(json!({"type": "billing_error"})), RateLimited, false),
        (500, json!("not an object"), Overloaded, true),
        (529, error(json!({"type": "overloaded_error", "message": "Overloaded"})), Overloaded, true),
        (409, json!({}), Overloaded, true),
        (400, error(json!({"code": "context_length_exceeded"})), TooLong, false),
        (
            400,
            error(
                json!({"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000"}),
            ),
            TooLong,
            false,
        ),
        (
            400,
            error(
                json!({"status": "INVALID_ARGUMENT", "message": "The input token count (2) exceeds the maximum"}),
            ),
            TooLong,
            false,
        ),
        (413, json!({}), TooLong, false),
        (400, error(json!({"code": "content_filter"})), Refused, false),
        (404, error(json!("model not found")), Rejected, false),
        (422, json!({"detail": "no"}), Rejected, false),
    ] {
        let fault = from_status(status, body.clone());
        assert_eq!((fault.kind, fault.is_retryable), (kind, is_retryable), "{status} {body}");
    }
}

#[test]
fn an_error_in_the_stream_is_judged_by_its_words() {
    let fault = Fault::mid_stream(
        &json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    );
    assert_eq!(fault, Fault::retryable(ChatErrorKind::Overloaded, "the provider broke off: Overloaded"));
    let fault = Fault::mid_stream(&json!({"error": {"code": 400, "status": "INVALID_ARGUMENT"}}));
    assert_eq!((fault.kind, fault.is_retryable), (ChatErrorKind::Rejected, false));
    assert_eq!(Fault::mid_stream(&json!({"error": "?"})).kind, ChatErrorKind::Overloaded);
}

#[test]
fn a_message_is_one_line_of_bounded_length() {
    let fault = from_status(400, json!({"error": {"message": "é\n".repeat(5_000)}}));
    assert_eq!(fault.detail.chars().count(), "HTTP 400: ".len() + MAX_DETAIL_CHARS + 1);
    assert!(!fault.detail.contains('\n'));
    let endless_word = from_status(400, json!({"error": "x".repeat(100_000)}));
    assert!(endless_word.detail.len() < 600);
}

#[test]
fn a_page_instead_of_an_error_is_left_out() {
    let fault = Fault::from_status(502, "Bad Gateway", b"<html>nginx</html>", false);
    assert_eq!(fault.detail, "HTTP 502 Bad Gateway");
    let fault = Fault::from_status(503, "", b"try later", true);
    assert_eq!(fault.detail, "HTTP 503: try later");
}

#[test]
fn gemini_says_in_the_body_when_to_come_back() {
    let details = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}]);
    let fault = from_status(
        429,
        json!([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": details}}]),
    );
    assert_eq!(fault.retry_after, Some(Duration::from_secs(17)));
}
