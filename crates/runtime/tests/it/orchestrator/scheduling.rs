//! How voice calls are waited for, as the latency scheduler decides.

use std::time::Duration;

use quarterdeck_contracts::{ErrorType, Mode, Outcome};
use quarterdeck_runtime::{Call, Connection, Orchestrator, Policy, RuntimeParts, Session};
use serde_json::{Value, json};

use super::fixture::{Fixture, error_kind, submit_one};

fn call(tool: &str, what: &str) -> Call {
    Call::new(tool, json!({ "what": what }))
}

/// A fixture whose users wait for so long at the most.
fn with_max_wait(max_wait_ms: u64) -> Fixture {
    let fixture = Fixture::new();
    let mut policy = Policy::default();
    policy.voice.max_wait_ms = Some(max_wait_ms);
    let orchestrator = Orchestrator::new(RuntimeParts {
        policy,
        clock: fixture.clock.clone(),
        audit: fixture.audit.clone(),
        ..RuntimeParts::new(fixture.store.clone())
    });
    Fixture { orchestrator, ..fixture }
}

/// Calls a tool in five turns, so that it is known how long it takes.
async fn measure(session: &Session, connection: &Connection, tool: &str, what: &str) {
    for _ in 0..5 {
        session.begin_turn(None);
        assert!(submit_one(connection, call(tool, what)).await.is_ok());
    }
    session.begin_turn(None);
}

/// The scheduler's steps in the audit log, with their outcomes.
fn audited_schedules(fixture: &Fixture) -> Vec<(Value, Value)> {
    let lines = fixture.audit.0.lock().unwrap();
    let steps = lines.iter().filter_map(|line| line.fields.get("gates")).flat_map(|gates| {
        gates.as_array().cloned().unwrap_or_default().into_iter().filter(|step| step["gate"] == "latency")
    });
    steps.map(|step| (step["decision"].clone(), step["detail"].clone())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_is_refused_before_it_starts_and_its_trace_says_why() {
    let fixture = with_max_wait(1_500);
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    measure(&session, &connection, "slow_look", "x").await;
    let response = submit_one(&connection, call("slow_look", "y")).await;
    let Outcome::Failure(error) = &response.outcome else { panic!("{response:?}") };
    assert_eq!((error.kind, error.partial_side_effects), (ErrorType::ModeRestricted, Some(false)));
    assert_eq!(
        error.message,
        "slow_look takes about 2 seconds at present, too long for a call. Nothing was done."
    );
    assert!(error.suggestion.as_ref().unwrap().contains("in the chat"), "{error:?}");
    assert_eq!(fixture.effects.times("y begun"), 0);

    let (outcome, detail) = audited_schedules(&fixture).pop().unwrap();
    assert_eq!(outcome, "refused");
    assert_eq!(
        detail,
        json!({
            "schedule": "refuse", "reason": "over_wait", "p50Ms": 2_000, "p95Ms": 2_000, "estimate": "measured",
            "softLimitMs": 1_000, "leftMs": 1_500,
        })
    );
    let tool = &fixture.orchestrator.metrics().json()["tools"]["slow_look"];
    assert_eq!((&tool["refused"], &tool["calls"]), (&json!({ "latency": 1 }), &json!(5)));
    assert_eq!(tool["scheduled"], json!({ "filler": 5, "refuse": 1 }));
    let text = fixture.orchestrator.metrics().prometheus();
    let line = "quarterdeck_tool_schedules_total{tool=\"slow_look\",decision=\"refuse\"} 1";
    assert!(text.contains(line), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_uses_the_budget_and_the_same_id_gets_the_same_answer() {
    let fixture = with_max_wait(1_500);
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    measure(&session, &connection, "slow_look", "x").await;
    for number in 0..3 {
        let call = call("slow_look", &format!("y{number}")).with_id("function-call-1");
        let response =
            submit_one(&connection, Call { id: Some(format!("function-call-{number}")), ..call }).await;
        assert_eq!(error_kind(&response), Some(ErrorType::ModeRestricted));
    }
    let again = submit_one(&connection, call("slow_look", "y0").with_id("function-call-0")).await;
    assert_eq!(error_kind(&again), Some(ErrorType::ModeRestricted));
    assert_eq!(again.meta.idempotent_cache_hit, Some(true));
    let response = submit_one(&connection, call("book", "z")).await;
    assert_eq!(error_kind(&response), Some(ErrorType::BudgetExceeded));
}

#[tokio::test(start_paused = true)]
async fn text_calls_and_those_of_other_tools_are_not_scheduled() {
    let fixture = with_max_wait(1_500);
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    measure(&session, &connection, "slow_look", "x").await;
    assert!(submit_one(&connection, call("slow_look", "y")).await.is_ok());
    assert_eq!(audited_schedules(&fixture), []);

    let (_, connection) = fixture.open("bob", Mode::Voice).await;
    let response = submit_one(&connection, call("chain", "slow_look z")).await;
    assert!(response.is_ok() && fixture.effects.times("z") == 1, "{response:?}");
    let schedules = audited_schedules(&fixture);
    assert_eq!(schedules.len(), 1, "that of the outer call: {schedules:?}");
}

#[tokio::test(start_paused = true)]
async fn figures_that_are_old_refuse_nothing() {
    let fixture = with_max_wait(1_500);
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    measure(&session, &connection, "slow_look", "x").await;
    assert!(!submit_one(&connection, call("slow_look", "y")).await.is_ok());
    fixture.clock.advance(Duration::from_secs(10 * 60 + 1));
    session.begin_turn(None);
    assert!(submit_one(&connection, call("slow_look", "y")).await.is_ok());
    let (_, detail) = audited_schedules(&fixture).pop().unwrap();
    assert_eq!((&detail["schedule"], &detail["estimate"]), (&json!("filler"), &json!("outdated")));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_interrupted_says_nothing_of_how_long_it_takes() {
    let fixture = with_max_wait(1_500);
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    for number in 0..5 {
        session.begin_turn(None);
        let batch = connection.submit(vec![call("slow_look", &format!("x{number}"))]);
        tokio::time::sleep(Duration::from_millis(10)).await;
        session.interrupt();
        batch.all().await;
    }
    session.begin_turn(None);
    assert!(submit_one(&connection, call("slow_look", "y")).await.is_ok());
    let (_, detail) = audited_schedules(&fixture).pop().unwrap();
    assert_eq!(detail["estimate"], "declared");
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_known_slow_tool_becomes_a_task_at_once_and_is_stored_as_one() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    measure(&session, &connection, "survey_look", "seconds 3").await;
    let (_, connection) = fixture.open("bob", Mode::Voice).await;
    let started = tokio::time::Instant::now();
    let response = submit_one(&connection, call("survey_look", "seconds 4")).await;
    let id = response.meta.background_task_id.clone().expect("it goes on in the background");
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert_eq!(fixture.orchestrator.client_tasks("bob").await.unwrap().len(), 1);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let task = fixture.orchestrator.client_task("bob", &id).await.unwrap().unwrap();
    assert_eq!(json!(task.status), "done");
    assert_eq!(fixture.effects.times("seconds 4"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_batch_says_whether_the_user_will_wait() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    measure(&session, &connection, "slow_look", "x").await;
    let mut batch = connection.submit(vec![call("slow_look", "y")]);
    assert!(batch.expects_wait().await);
    batch.all().await;
    let (session, connection) = fixture.open("bob", Mode::Text).await;
    measure(&session, &connection, "slow_look", "x").await;
    assert!(!connection.submit(vec![call("slow_look", "y")]).expects_wait().await);
}
