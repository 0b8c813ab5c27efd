//! A key that stands twice is refused wherever JSON comes from outside: readers disagree on which one counts.

use crate::provider::provider;
use crate::serve::{Server, command};

#[test]
fn body_with_a_key_twice_is_refused_by_every_endpoint() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    for (path, body) in [
        ("/api/chat", r#"{ "message": "hello", "message": "book a meeting" }"#),
        ("/api/chat", r#"{ "id": "a", "messages": [{ "role": "user", "role": "user", "parts": [] }] }"#),
        ("/api/confirmations", r#"{ "token": "qdc_0", "approve": false, "approve": true }"#),
        ("/api/confirmations", "{ \"token\": \"qdc_0\", \"approve\": false, \"\\u0061pprove\": true }"),
        ("/v1/chat/completions", r#"{ "messages": [{ "role": "user", "content": "a", "content": "b" }] }"#),
        ("/v1/chat/completions", r#"{ "stream": false, "stream": true, "messages": [] }"#),
        (
            "/api/deck/playground",
            r#"{ "name": "validate_email", "args": { "email": "a@b.no", "email": "c@d.no" } }"#,
        ),
    ] {
        let (status, _, answer) = server.ask("POST", path, "content-type: application/json\r\n", body);
        assert!(status == 400 && answer.contains("stands twice"), "{path} {body}: {status} {answer}");
    }
}

#[test]
fn arguments_of_a_model_with_a_key_twice_run_nothing_and_are_answered_with_the_reason() {
    let requests = provider(&[r#"{"email":"a@fram.no","email":"b@fram.no"}"#.into()]);
    let data = tempfile::tempdir().unwrap();
    let mut command = command(data.path(), "127.0.0.1:0");
    command
        .env("OPENAI_BASE_URL", format!("http://{}/v1", requests.address))
        .env("QUARTERDECK_TEXT__MODEL", "model");
    let server = Server::begin(&mut command);
    let body = r#"{ "message": "Is this address right?" }"#;
    let (status, _, stream) = server.ask("POST", "/api/chat", "content-type: application/json\r\n", body);
    assert!(status == 200 && stream.contains("tool-input-error"), "{status} {stream}");

    requests.bodies.recv().unwrap();
    let printed = requests.bodies.recv().unwrap();
    assert!(printed.contains("VALIDATION") && printed.contains(r#"email\\\" stands twice"#), "{printed}");
    drop(server);
    let trail = std::fs::read_to_string(data.path().join("audit.jsonl")).unwrap();
    assert!(!trail.contains("\"ok\":true"), "{trail}");
}
