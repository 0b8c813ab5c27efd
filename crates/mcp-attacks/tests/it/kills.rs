//! A server that is killed again and again while it works.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use quarterdeck_contracts::{ErrorType, Outcome, ToolResponse};
use quarterdeck_runtime::Call;
use serde_json::json;

use crate::until::until;
use crate::world::{BOOKING, World, for_model, submit};

const KILLS: usize = 50;
const CALLERS: u64 = 8;

/// What each call came to.
type Answers = Vec<(String, Arc<ToolResponse>)>;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_kills_under_load_leave_every_call_answered_and_none_sent_twice() {
    let world = Arc::new(World::stdio("honest"));
    world.connected().await;
    let (is_over, next) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            tokio::spawn(call_again_and_again(world.clone(), caller, is_over.clone(), next.clone()))
        })
        .collect();
    kill_again_and_again(&world).await;
    is_over.store(true, Ordering::SeqCst);
    let mut answers = Answers::new();
    for caller in callers {
        answers.extend(caller.await.unwrap());
    }
    assert_eq!(answers.len() as u64, next.load(Ordering::SeqCst), "every call was answered");
    check(&world, &answers);
}

async fn call_again_and_again(
    world: Arc<World>,
    caller: u64,
    is_over: Arc<AtomicBool>,
    next: Arc<AtomicU64>,
) -> Answers {
    let mut answers = Answers::new();
    let (session, connection) = world.open(&format!("client-{caller}")).await;
    while !is_over.load(Ordering::SeqCst) {
        let number = next.fetch_add(1, Ordering::SeqCst);
        let what = format!("booking {number}");
        session.begin_turn(None);
        let arguments = json!({ "what": what, "delay_ms": 1 + number % 20 });
        let response = submit(&connection, Call::new(BOOKING, arguments)).await;
        if matches!(&response.outcome, Outcome::Failure(error) if error.kind == ErrorType::Unavailable) {
            // As a user would, who is told that it is down.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        answers.push((what, response));
    }
    answers
}

/// Kills each process of the server in turn once it has work.
async fn kill_again_and_again(world: &World) {
    for round in 0..KILLS {
        let process =
            until("a further process was started", || world.notes.processes().get(round).copied()).await;
        let before = world.notes.count("tools/call");
        until("it was called", || (world.notes.count("tools/call") > before).then_some(())).await;
        let process = rustix::process::Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    }
}

fn check(world: &World, answers: &Answers) {
    let mut received: BTreeMap<String, u32> = BTreeMap::new();
    for what in world.notes.calls() {
        *received.entry(what).or_default() += 1;
    }
    let twice: Vec<_> = received.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "sent twice: {twice:?}");
    let (mut done, mut unknown, mut unavailable) = (0, 0, 0);
    for (what, response) in answers {
        let times = received.get(what).copied().unwrap_or(0);
        match &response.outcome {
            Outcome::Success(_) => {
                assert!(for_model(response).contains(&format!("book {what}")), "{what} has its own answer");
                assert_eq!(times, 1, "{what} was answered");
                done += 1;
            }
            Outcome::Failure(error) if error.kind == ErrorType::Unavailable => {
                assert_eq!(times, 0, "{what} was sent, and its outcome is unknown: {error}");
                unavailable += 1;
            }
            Outcome::Failure(error) => {
                assert_eq!(error.details.as_ref().unwrap()["outcome"], "unknown", "{what}: {error}");
                unknown += 1;
            }
        }
    }
    assert!(done > 0 && unknown > 0, "{done} done, {unknown} unknown, {unavailable} not sent");
}
