//! What goes with a session that one node gives to another, and what a dead node leaves.

use proptest::prelude::{Just, prop, prop_oneof};
use proptest::test_runner::{Config, TestRunner};
use quarterdeck_contracts::{ErrorType, Mode, Outcome};
use quarterdeck_runtime::{Call, ConfirmationMode, Reply, Session, SessionError};
use serde_json::json;

use super::world::{Cluster, TestNode};
use crate::orchestrator::fixture::{error_kind, submit_one};

fn call(tool: &str, what: &str) -> Call {
    Call::new(tool, json!({ "what": what }))
}

#[tokio::test]
async fn a_released_session_goes_on_at_another_node() {
    released_session_goes_on(&Cluster::new()).await;
}

pub(super) async fn released_session_goes_on(cluster: &Cluster) {
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let session = a.open(Mode::Text).await;
    submit_one(&session.connect(), call("book", "one").with_id("provider_00001")).await;
    assert!(session.release().await.unwrap());
    let taken = b.take(session.id()).await;
    // What A has in memory is not good any more.
    assert!(matches!(session.hold().await, Err(SessionError::Lost)));
    assert!(matches!(a.resume(session.id()).await, Err(SessionError::HeldElsewhere(_))));
    let again = submit_one(&taken.connect(), call("book", "one").with_id("provider_00001")).await;
    assert_eq!(again.meta.idempotent_cache_hit, Some(true));
    assert_eq!(cluster.effects.times("one"), 1);
    // And back.
    assert!(taken.release().await.unwrap());
    let back = a.take(session.id()).await;
    assert!(!back.is_same(&session) && taken.is_same(&taken));
}

#[tokio::test]
async fn a_session_that_comes_back_untouched_is_still_in_memory() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let session = a.open(Mode::Text).await;
    for _ in 0..3 {
        assert!(session.release().await.unwrap());
        // To look at a session takes nothing.
        let seen = b.resume(session.id()).await.unwrap();
        assert_eq!(seen.turn(), session.turn());
        drop(seen);
        let again = a.resume(session.id()).await.unwrap();
        assert!(again.is_same(&session));
        again.hold().await.unwrap();
    }
}

#[tokio::test]
async fn a_session_with_something_going_on_is_released_when_that_is_over() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let session = a.open(Mode::Text).await;
    let connection = session.connect();
    let batch = connection.submit(vec![call("report", "gated report")]);
    drop(batch.all().await);
    assert!(!session.release().await.unwrap(), "a task runs");
    assert!(matches!(b.resume(session.id()).await, Err(SessionError::HeldElsewhere(_))));
    cluster.effects.gate.notify_waiters();
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
        if b.resume(session.id()).await.is_ok() {
            b.take(session.id()).await;
            return;
        }
        cluster.effects.gate.notify_waiters();
    }
    panic!("it was not released");
}

#[tokio::test]
async fn a_session_that_is_dropped_is_free() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let session = a.open(Mode::Text).await;
    let id = session.id().to_owned();
    drop(session);
    b.take(&id).await;
}

#[tokio::test]
async fn after_a_death_the_turn_has_no_budget_left() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let session = a.open(Mode::Text).await;
    submit_one(&session.connect(), call("look", "one")).await;
    let taken = b.take_over(session.id()).await;
    let refused = submit_one(&taken.connect(), call("look", "two")).await;
    assert_eq!(error_kind(&refused), Some(ErrorType::BudgetExceeded));
    taken.begin_turn(None);
    assert!(submit_one(&taken.connect(), call("look", "two")).await.is_ok());
}

#[tokio::test]
async fn the_users_words_go_with_the_turn() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let session = a.open(Mode::Text).await;
    session.add_user_words("Draw a ship, please.\n");
    session.release().await.unwrap();
    let taken = b.take(session.id()).await;
    let connection = taken.connect_with(ConfirmationMode::Suspend);
    let reply = connection.submit(vec![call("draw", "ship")]).all().await.remove(0);
    let Reply::Answer(answer) = reply else { panic!("the user was asked again: {reply:?}") };
    assert!(answer.response.is_ok());
}

/// What came of a call, as far as it must not depend on the node.
fn outcome(response: &quarterdeck_contracts::ToolResponse) -> String {
    match &response.outcome {
        Outcome::Success(data) => format!("{data} {:?}", response.meta.idempotent_cache_hit),
        Outcome::Failure(error) => format!("{:?} {}", error.kind, error.message),
    }
}

/// In writing: a live model that is connected anew may have forgotten its last writes, so after a hand-over those are answered
/// from the record.
async fn play(nodes: &[&TestNode], calls: &[(&'static str, u8, bool)]) -> Vec<String> {
    let mut session: Session = nodes[0].open(Mode::Text).await;
    let mut outcomes = Vec::new();
    for (place, (tool, what, begins_turn)) in calls.iter().enumerate() {
        if *begins_turn {
            session.begin_turn(None);
        }
        let what = if *what == 0 { "nothing".to_owned() } else { what.to_string() };
        let response = submit_one(&session.connect(), call(tool, &what)).await;
        outcomes.push(outcome(&response));
        if nodes.len() > 1 {
            assert!(session.release().await.unwrap());
            session = nodes[(place + 1) % nodes.len()].take(session.id()).await;
        }
    }
    outcomes
}

#[test]
fn whatever_is_called_is_answered_as_if_it_had_been_one_node() {
    nodes_answer_as_one(300, &Cluster::new());
}

pub(super) fn nodes_answer_as_one(cases: u32, two: &Cluster) {
    let one = Cluster::new();
    let tool =
        prop_oneof![Just("look"), Just("book"), Just("toss"), Just("no_such_tool"), Just("flaky_book")];
    let calls = prop::collection::vec((tool, 0_u8..4, prop::bool::weighted(0.1)), 1..25);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.unwrap();
    let alone = runtime.block_on(one.node("alone"));
    let [a, b, c] = ["a", "b", "c"].map(|name| runtime.block_on(two.node(name)));
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let result = runner.run(&calls, |calls| {
        runtime.block_on(async {
            let expected = play(&[&alone], &calls).await;
            let seen = play(&[&a, &b, &c], &calls).await;
            proptest::prop_assert_eq!(seen, expected);
            Ok(())
        })
    });
    result.unwrap();
    // Handlers ran equally often in both worlds.
    assert_eq!(*one.effects.done.lock().unwrap(), *two.effects.done.lock().unwrap());
}
