use quarterdeck_contracts::{
    ConfirmBy, ConfirmationCode, ConfirmationRequest, ConfirmationToken, EndAfter, ErrorType, HandlerAnswer,
    Intent, Meta, Outcome, RequestedIntent, ToolError, ToolResponse,
};
use serde_json::{Value, json};

fn meta() -> Meta {
    Meta {
        tool_id: "kb_search".into(),
        tool_version: "1.0.0".into(),
        registry_version: "1.0.3fa9c2e1".into(),
        response_schema_version: "1.1.0".into(),
        duration: 12,
        timestamp: "2026-01-13T09:00:00Z".into(),
        retry_count: None,
        parent_call_id: None,
        background_task_id: None,
        idempotent_cache_hit: None,
        original_turn: None,
    }
}

fn meta_json() -> Value {
    json!({
        "toolId": "kb_search", "toolVersion": "1.0.0", "registryVersion": "1.0.3fa9c2e1",
        "responseSchemaVersion": "1.1.0", "duration": 12, "timestamp": "2026-01-13T09:00:00Z",
    })
}

/// The value is written as this JSON, and read from it as itself.
#[track_caller]
fn same(response: ToolResponse, wire: Value) {
    assert_eq!(serde_json::to_value(&response).unwrap(), wire);
    assert_eq!(serde_json::from_value::<ToolResponse>(wire).unwrap(), response);
}

#[test]
fn a_success_has_data_and_no_error() {
    same(
        HandlerAnswer::success(json!({ "results": [] })).stamp(meta()),
        json!({ "ok": true, "data": { "results": [] }, "meta": meta_json() }),
    );
}

#[test]
fn a_pure_side_effect_has_null_data() {
    same(
        HandlerAnswer::success(Value::Null).stamp(meta()),
        json!({ "ok": true, "data": null, "meta": meta_json() }),
    );
}

#[test]
fn a_failure_says_everything_it_knows() {
    let error = ToolError {
        kind: ErrorType::RateLimit,
        message: "The calendar asks us to slow down.".into(),
        retryable: true,
        details: Some(json!({ "calendar": "team" })),
        suggestion: Some("Try again in a minute.".into()),
        partial_side_effects: Some(false),
        idempotency_required: Some(true),
        retry_after_ms: Some(60_000),
        max_retries: Some(2),
        confirmation_request: None,
    };
    let intents = vec![RequestedIntent::Known(Intent::SuppressAudio { value: true })];
    same(
        HandlerAnswer { outcome: Outcome::Failure(error), intents }.stamp(meta()),
        json!({
            "ok": false,
            "error": {
                "type": "RATE_LIMIT", "message": "The calendar asks us to slow down.", "retryable": true,
                "details": { "calendar": "team" }, "suggestion": "Try again in a minute.",
                "partialSideEffects": false, "idempotencyRequired": true, "retryAfterMs": 60_000, "maxRetries": 2,
            },
            "intents": [{ "type": "SUPPRESS_AUDIO", "value": true }],
            "meta": meta_json(),
        }),
    );
}

#[test]
fn a_replayed_answer_says_so() {
    let meta = Meta {
        retry_count: Some(1),
        parent_call_id: Some("call_1".into()),
        background_task_id: Some("task_1".into()),
        idempotent_cache_hit: Some(true),
        original_turn: Some(3),
        ..meta()
    };
    let mut wire = meta_json();
    wire["retryCount"] = json!(1);
    wire["parentCallId"] = json!("call_1");
    wire["backgroundTaskId"] = json!("task_1");
    wire["_idempotent_cache_hit"] = json!(true);
    wire["_original_turn"] = json!(3);
    same(HandlerAnswer::success(json!(1)).stamp(meta), json!({ "ok": true, "data": 1, "meta": wire }));
}

#[test]
fn every_intent_is_written_as_the_specification_says() {
    for (intent, wire) in [
        (
            Intent::EndVoiceSession { after: EndAfter::CurrentTurn },
            json!({ "type": "END_VOICE_SESSION", "after": "current_turn" }),
        ),
        (
            Intent::EndVoiceSession { after: EndAfter::FarewellSpoken },
            json!({ "type": "END_VOICE_SESSION", "after": "farewell_spoken" }),
        ),
        (Intent::SuppressAudio { value: false }, json!({ "type": "SUPPRESS_AUDIO", "value": false })),
        (Intent::SuppressTranscript { value: true }, json!({ "type": "SUPPRESS_TRANSCRIPT", "value": true })),
        (
            Intent::SetPendingMessage { message: Some("hello".into()) },
            json!({ "type": "SET_PENDING_MESSAGE", "message": "hello" }),
        ),
        (
            Intent::SetPendingMessage { message: None },
            json!({ "type": "SET_PENDING_MESSAGE", "message": null }),
        ),
    ] {
        assert_eq!(serde_json::to_value(&intent).unwrap(), wire);
        assert_eq!(serde_json::from_value::<Intent>(wire).unwrap(), intent);
    }
}

#[test]
fn an_end_without_a_when_is_after_the_current_turn() {
    let intent: Intent = serde_json::from_value(json!({ "type": "END_VOICE_SESSION" })).unwrap();
    assert_eq!(intent, Intent::EndVoiceSession { after: EndAfter::CurrentTurn });
}

#[test]
fn an_unknown_intent_is_kept_as_it_was_written() {
    let wire = json!({ "ok": true, "data": null, "intents": [{ "type": "UNLOCK_DOOR", "door": 3 }], "meta": meta_json() });
    let response: ToolResponse = serde_json::from_value(wire.clone()).unwrap();
    assert_eq!(response.intents, [RequestedIntent::Unknown(json!({ "type": "UNLOCK_DOOR", "door": 3 }))]);
    assert_eq!(serde_json::to_value(&response).unwrap(), wire);
}

#[test]
fn a_handler_may_leave_out_meta_data_and_retryable() {
    let answer = HandlerAnswer::parse(json!({ "ok": true })).unwrap();
    assert_eq!(answer, HandlerAnswer::success(Value::Null));
    let answer =
        HandlerAnswer::parse(json!({ "ok": false, "error": { "type": "AUTH", "message": "Sign in." } }))
            .unwrap();
    assert_eq!(answer, HandlerAnswer::failure(ToolError::new(ErrorType::Auth, "Sign in.")));
}

#[test]
fn an_error_type_that_does_not_exist_becomes_permanent_and_is_remembered() {
    let parse =
        |error: Value| match HandlerAnswer::parse(json!({ "ok": false, "error": error })).unwrap().outcome {
            Outcome::Failure(error) => (error.kind, error.details),
            Outcome::Success(_) => panic!("it failed"),
        };
    assert_eq!(
        parse(json!({ "type": "ON_FIRE", "message": "m" })),
        (ErrorType::Permanent, Some(json!({ "type": "ON_FIRE" })))
    );
    assert_eq!(
        parse(json!({ "type": "ON_FIRE", "message": "m", "details": { "floor": 2 } })),
        (ErrorType::Permanent, Some(json!({ "floor": 2, "type": "ON_FIRE" })))
    );
    assert_eq!(
        parse(json!({ "type": "ON_FIRE", "message": "m", "details": [1] })),
        (ErrorType::Permanent, Some(json!({ "type": "ON_FIRE", "details": [1] })))
    );
}

#[test]
fn what_is_not_an_envelope_is_refused_with_the_reason() {
    for (value, reason) in [
        (json!(null), "the answer is not an object"),
        (json!([]), "the answer is not an object"),
        (json!({}), "`ok` is missing or not a boolean"),
        (json!({ "ok": "true" }), "`ok` is missing or not a boolean"),
        (json!({ "ok": false }), "`ok` is false and `error` is missing"),
        (json!({ "ok": true, "error": {} }), "`ok` is true and `error` is present"),
        (json!({ "ok": false, "data": 1, "error": {} }), "`ok` is false and `data` is present"),
        (json!({ "ok": true, "intents": {} }), "`intents` is not an array"),
        (json!({ "ok": false, "error": { "type": "AUTH" } }), "`error` is malformed"),
    ] {
        assert_eq!(HandlerAnswer::parse(value.clone()).unwrap_err().to_string(), reason, "{value}");
    }
}

#[test]
fn error_types_have_their_names_and_statuses() {
    let expected = [
        ("VALIDATION", 400),
        ("NOT_FOUND", 404),
        ("MODE_RESTRICTED", 403),
        ("BUDGET_EXCEEDED", 429),
        ("LOOP_DETECTED", 429),
        ("UNAVAILABLE", 403),
        ("CONFIRMATION_REQUIRED", 409),
        ("CONFIRMATION_EXPIRED", 410),
        ("CONFIRMATION_DENIED", 403),
        ("CONFIRMATION_INVALID", 400),
        ("SESSION_INACTIVE", 409),
        ("SESSION_ACTIVE", 409),
        ("BLOCKED", 403),
        ("TRANSIENT", 503),
        ("RATE_LIMIT", 429),
        ("AUTH", 401),
        ("CONFLICT", 409),
        ("PERMANENT", 422),
        ("CANCELLED", 499),
        ("INTERNAL", 500),
    ];
    let actual: Vec<_> = ErrorType::ALL.iter().map(|kind| (kind.as_str(), kind.http_status())).collect();
    assert_eq!(actual, expected);
    for kind in ErrorType::ALL {
        assert_eq!(serde_json::to_value(kind).unwrap(), json!(kind.as_str()));
        assert_eq!(ErrorType::find(kind.as_str()), Some(kind));
    }
}

#[test]
fn the_copy_for_a_model_has_neither_token_nor_code() {
    let mut error = ToolError::new(ErrorType::ConfirmationRequired, "The user must approve this.");
    error.confirmation_request = Some(Box::new(ConfirmationRequest {
        token: Some(ConfirmationToken::new("s3cret")),
        expires: 1,
        tool: "calendar_create_event".into(),
        args: json!({ "title": "Dinner" }),
        preview: "Create “Dinner”".into(),
        reason: None,
        confirm_by: ConfirmBy::Code,
        code: Some(ConfirmationCode::new(4711)),
    }));
    let response = HandlerAnswer::failure(error).stamp(meta());
    let (whole, for_model) = (json!(response).to_string(), json!(response.for_model()).to_string());
    for secret in ["s3cret", "4711"] {
        assert!(whole.contains(secret));
        assert!(!for_model.contains(secret));
        assert!(!format!("{response:?}").contains(secret));
    }
    assert!(for_model.contains(r#""confirmBy":"code""#), "the model may say how to approve it: {for_model}");
}
