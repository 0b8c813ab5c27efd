//! What a turn's budget is spent on.

use quarterdeck_contracts::{ErrorType, Mode};
use quarterdeck_runtime::{Call, Connection};
use serde_json::{Value, json};

use super::fixture::{Fixture, error_kind, submit_one};

async fn error_of(connection: &Connection, tool: &str, args: Value, id: &str) -> Option<ErrorType> {
    error_kind(&submit_one(connection, Call::new(tool, args).with_id(id)).await)
}

#[tokio::test(start_paused = true)]
async fn what_is_answered_before_the_budget_does_not_use_it() {
    let fixture = Fixture::new();
    let (_session, connection) = fixture.open("ann", Mode::Voice).await;
    let (what, none) = (|what: &str| json!({ "what": what }), None);
    assert_eq!(error_of(&connection, "book", what("1"), "call_000001").await, none);
    let before = [
        ("", what("x"), "call_000002", Some(ErrorType::Validation)),
        ("book", json!([]), "call_000003", Some(ErrorType::Validation)),
        ("boook", what("x"), "call_000004", Some(ErrorType::NotFound)),
        ("typed_only", what("x"), "call_000005", Some(ErrorType::ModeRestricted)),
        ("book", what("1"), "call_000001", none),
        ("book", what("other"), "call_000001", Some(ErrorType::Validation)),
        ("book", what("1"), "call_000006", none),
        ("book", what("1"), "call_000007", Some(ErrorType::LoopDetected)),
    ];
    for (tool, args, id, expected) in before {
        assert_eq!(error_of(&connection, tool, args, id).await, expected, "{tool} {id}");
    }
    assert_eq!(error_of(&connection, "book", what("2"), "call_000008").await, none);
    assert_eq!(error_of(&connection, "book", what("3"), "call_000009").await, none);
    assert_eq!(
        error_of(&connection, "book", what("4"), "call_000010").await,
        Some(ErrorType::BudgetExceeded)
    );
    assert_eq!(
        error_of(&connection, "hang_up", what("now"), "call_000011").await,
        none,
        "control always works"
    );
    assert_eq!(fixture.effects.times("1"), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_after_the_budget_has_used_it() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    let what = |what: &str| json!({ "what": what });
    assert_eq!(error_of(&connection, "book", json!({}), "call_000001").await, Some(ErrorType::Validation));
    assert_eq!(
        error_of(&connection, "members", what("x"), "call_000002").await,
        Some(ErrorType::Unavailable)
    );
    assert_eq!(
        error_of(&connection, "pay", what("x"), "call_000003").await,
        Some(ErrorType::ConfirmationRequired)
    );
    assert_eq!(
        error_of(&connection, "book", what("1"), "call_000004").await,
        Some(ErrorType::BudgetExceeded)
    );
    session.begin_turn(None);
    assert_eq!(error_of(&connection, "book", what("1"), "call_000005").await, None, "each turn has its own");
    assert_eq!(
        error_of(&connection, "book", what("1"), "call_000004").await,
        Some(ErrorType::BudgetExceeded),
        "and an id keeps the answer it had"
    );
}
