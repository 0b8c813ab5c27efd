//! Gates, replays and order, as a transport sees them.

use std::time::Duration;

use quarterdeck_contracts::{ErrorType, Mode, Outcome};
use quarterdeck_runtime::{Call, ClientEvent, DeliveryReason, Reply};
use serde_json::{Value, json};

use super::fixture::{Fixture, error_kind, receive, submit_one};

fn call(tool: &str, what: &str) -> Call {
    Call::new(tool, json!({ "what": what }))
}

fn data(response: &std::sync::Arc<quarterdeck_contracts::ToolResponse>) -> &Value {
    match &response.outcome {
        Outcome::Success(data) => data,
        Outcome::Failure(error) => panic!("{error}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_is_run_once_whatever_is_delivered_twice() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let first = submit_one(&connection, call("book", "room").with_id("call_000001")).await;
    let same_id = submit_one(&connection, call("book", "room").with_id("call_000001")).await;
    let other_id = submit_one(&connection, call("book", "room").with_id("call_000002")).await;
    assert_eq!(fixture.effects.times("room"), 1);
    assert_eq!(first.meta.idempotent_cache_hit, None);
    for replay in [same_id, other_id] {
        assert_eq!(replay.outcome, first.outcome);
        assert_eq!((replay.meta.idempotent_cache_hit, replay.meta.original_turn), (Some(true), Some(1)));
    }
    let other_content = submit_one(&connection, call("book", "table").with_id("call_000001")).await;
    assert_eq!(error_kind(&other_content), Some(ErrorType::Validation));
    session.begin_turn(None);
    submit_one(&connection, call("book", "room")).await;
    assert_eq!(fixture.effects.times("room"), 2, "a delivered write of an earlier turn may be repeated");
}

#[tokio::test(start_paused = true)]
async fn two_identical_calls_at_the_same_time_run_once() {
    let fixture = Fixture::new();
    let (_, connection) = fixture.open("ann", Mode::Text).await;
    let replies = connection.submit(vec![call("slow_book", "room"), call("slow_book", "room")]);
    let second = connection.submit(vec![call("slow_book", "room").with_id("call_000009")]);
    assert_eq!(replies.all().await.len(), 2);
    let late = second.all().await.remove(0).into_answer().unwrap();
    assert_eq!(error_kind(&late.response), Some(ErrorType::LoopDetected), "the third of a turn is a loop");
    assert_eq!(fixture.effects.times("room"), 1);
}

#[tokio::test(start_paused = true)]
async fn fifty_calls_in_one_voice_message_get_fifty_answers_in_order() {
    let fixture = Fixture::new();
    let (_, connection) = fixture.open("ann", Mode::Voice).await;
    let calls = (0..50).map(|n| call("look", &format!("thing {n}")).with_id(format!("call_id_{n:03}")));
    let replies = connection.submit(calls.collect()).all().await;
    let answers: Vec<_> = replies.into_iter().map(|reply| reply.into_answer().unwrap()).collect();
    let order: Vec<_> = answers.iter().map(|answer| answer.call_id.to_string()).collect();
    assert_eq!(order, (0..50).map(|n| format!("call_id_{n:03}")).collect::<Vec<_>>());
    let ran = answers.iter().filter(|answer| answer.response.is_ok()).count();
    assert_eq!(ran, 2, "retrieval has a budget of two");
    let mixed = (0..50).map(|n| call(if n % 2 == 0 { "book" } else { "look" }, &format!("mixed {n}")));
    let (_, connection) = fixture.open("bob", Mode::Voice).await;
    let replies = connection.submit(mixed.collect()).all().await;
    let kinds: Vec<_> =
        replies.into_iter().map(|reply| error_kind(&receive(reply.into_answer().unwrap()))).collect();
    assert_eq!(kinds.iter().filter(|kind| kind.is_none()).count(), 3);
    assert!(kinds[3..].iter().all(|kind| *kind == Some(ErrorType::BudgetExceeded)));
}

#[tokio::test(start_paused = true)]
async fn a_loop_is_refused_and_so_is_a_tool_that_found_nothing_twice() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    for _ in 0..2 {
        submit_one(&connection, call("look", "a")).await;
    }
    assert_eq!(error_kind(&submit_one(&connection, call("look", "a")).await), Some(ErrorType::LoopDetected));
    for what in ["nothing 1", "nothing 2"] {
        assert!(submit_one(&connection, call("look", what)).await.is_ok());
    }
    let swept = submit_one(&connection, call("look", "b")).await;
    assert_eq!(error_kind(&swept), Some(ErrorType::LoopDetected));
    session.begin_turn(None);
    assert!(submit_one(&connection, call("look", "b")).await.is_ok(), "the next turn is free again");
}

#[tokio::test(start_paused = true)]
async fn voice_gets_few_results_and_the_handler_sees_the_clamp() {
    let fixture = Fixture::new();
    let (_, connection) = fixture.open("ann", Mode::Voice).await;
    let response = submit_one(&connection, call("look", "a")).await;
    assert_eq!(data(&response)["top_k"], 3);
    assert_eq!(data(&response)["clamped"], json!({ "top_k": { "asked": 5, "given": 3 } }));
}

#[tokio::test(start_paused = true)]
async fn a_handler_in_the_chat_knows_that_its_client_is_speaking() {
    let fixture = Fixture::new();
    let (_, chat) = fixture.open("ann", Mode::Text).await;
    let speaks = async |what: &str| data(&submit_one(&chat, call("look", what)).await)["voice"].clone();
    assert_eq!(speaks("a").await, json!(false));
    let (_, _other_voice) = fixture.open("bob", Mode::Voice).await;
    assert_eq!(speaks("b").await, json!(false));
    let (voice, _connection) = fixture.open("ann", Mode::Voice).await;
    assert_eq!(speaks("c").await, json!(true));
    let end = quarterdeck_runtime::PendingEnd {
        after: quarterdeck_contracts::EndAfter::CurrentTurn,
        reason: "user_requested".into(),
        closing_message: None,
        text_response: None,
    };
    voice.end(end).await;
    assert_eq!(speaks("d").await, json!(false));
}

#[tokio::test(start_paused = true)]
async fn a_sign_in_that_has_ended_no_longer_counts() {
    let fixture = Fixture::new();
    let facts = quarterdeck_runtime::gates::ClientFacts { authenticated: true, ..Default::default() };
    let signed_in = quarterdeck_runtime::Client::known("ann", std::sync::Arc::new(facts));
    let session = fixture.orchestrator.open(signed_in, Mode::Text, fixture.snapshot.clone()).await.unwrap();
    let connection = session.connect();
    assert!(submit_one(&connection, call("members", "a")).await.is_ok());
    let signed_out = quarterdeck_runtime::Client::anonymous("ann");
    fixture.orchestrator.resume(session.id(), signed_out, fixture.snapshot.clone()).await.unwrap();
    assert_eq!(
        error_kind(&submit_one(&connection, call("members", "b")).await),
        Some(ErrorType::Unavailable)
    );
}

#[tokio::test(start_paused = true)]
async fn a_dropped_connection_drops_no_call_and_the_next_one_gets_the_answer() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    let batch = connection.submit(vec![call("slow_book", "room").with_id("call_000001")]);
    drop(batch);
    drop(connection);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(fixture.effects.times("room"), 1);
    let connection = session.connect();
    let Some(ClientEvent::Answer { reason: DeliveryReason::Late, answer }) = connection.try_next_event()
    else {
        panic!()
    };
    assert!(receive(answer).is_ok());
    assert!(connection.try_next_event().is_none(), "once");
    let replayed = submit_one(&connection, call("slow_book", "room").with_id("call_000001")).await;
    assert_eq!(replayed.meta.idempotent_cache_hit, Some(true));
    assert_eq!(fixture.effects.times("room"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_interruption_stops_a_look_up_and_lets_a_booking_finish() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    let looking = connection.submit(vec![call("slow_look", "a")]);
    let booking = connection.submit(vec![call("slow_book", "room")]);
    tokio::time::sleep(Duration::from_millis(500)).await;
    session.interrupt();
    let looked = looking.all().await.remove(0).into_answer().unwrap();
    assert_eq!(error_kind(&looked.response), Some(ErrorType::Cancelled));
    assert!(!looked.is_wanted);
    drop(looked);
    let booked = booking.all().await.remove(0).into_answer().unwrap();
    assert!(booked.response.is_ok() && !booked.is_wanted);
    drop(booked);
    assert_eq!((fixture.effects.times("a"), fixture.effects.times("room")), (0, 1));
    let Some(ClientEvent::Answer { reason: DeliveryReason::Abandoned, .. }) = connection.try_next_event()
    else {
        panic!("the client is told")
    };
    let start = session.begin_turn(None);
    let [done, slow] = &start.notes[..] else { panic!("{:?}", start.notes) };
    assert_eq!(done, "slow_book was interrupted but had begun, and was done.");
    assert!(slow.contains("slow_book took 2000 ms of 1000 ms"), "{slow}");
    let again = submit_one(&connection, call("slow_book", "room")).await;
    assert_eq!(again.meta.idempotent_cache_hit, Some(true), "a finished result is not dropped");
    assert_eq!(fixture.effects.times("room"), 1);
    assert!(fixture.audit.text().contains("\"how\":\"abandoned\""));
}

#[tokio::test(start_paused = true)]
async fn a_write_waits_for_those_before_it_and_holds_those_after_it() {
    let fixture = Fixture::new();
    let (_, connection) = fixture.open("ann", Mode::Text).await;
    let begun = tokio::time::Instant::now();
    let batch = connection.submit(vec![
        call("slow_look", "a"),
        call("slow_look", "b"),
        call("slow_book", "c"),
        call("slow_look", "d"),
    ]);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!((fixture.effects.times("c begun"), fixture.effects.times("d begun")), (1, 0));
    assert_eq!(batch.all().await.len(), 4);
    assert_eq!(begun.elapsed().as_secs(), 6, "two together, then one, then one");
}

#[tokio::test(start_paused = true)]
async fn a_flaky_tool_is_tried_again_by_the_rules_of_the_mode() {
    let fixture = Fixture::new();
    let (_, text) = fixture.open("ann", Mode::Text).await;
    *fixture.effects.failures.lock().unwrap() = 3;
    let response = submit_one(&text, call("flaky", "text")).await;
    assert_eq!((response.is_ok(), response.meta.retry_count), (true, Some(3)));
    let (_, voice) = fixture.open("bob", Mode::Voice).await;
    *fixture.effects.failures.lock().unwrap() = 2;
    let response = submit_one(&voice, call("flaky", "voice")).await;
    assert_eq!((error_kind(&response), response.meta.retry_count), (Some(ErrorType::Transient), Some(1)));
    let again = submit_one(&voice, call("flaky", "voice")).await;
    assert!(again.is_ok(), "a retryable failure is not recorded");
}

#[tokio::test(start_paused = true)]
async fn every_attempt_gets_the_same_arguments() {
    for fixture in [Fixture::new(), Fixture::unaudited()] {
        for mode in [Mode::Text, Mode::Voice] {
            let (_, connection) = fixture.open("ann", mode).await;
            let asked = json!({ "what": "a \"b\" \\ é", "secret": "s" });
            *fixture.effects.failures.lock().unwrap() = 1;
            let response = submit_one(&connection, Call::new("flaky", asked)).await;
            assert_eq!(response.meta.retry_count, Some(1));
            let top_k = if mode == Mode::Voice { 3 } else { 5 };
            let got = json!({ "what": "a \"b\" \\ é", "secret": "s", "top_k": top_k });
            assert_eq!(data(&response)["results"], json!([got]));
        }
    }
}

/// The handler did not foresee that the store fails, and what it had sent by then may have been done.
#[tokio::test(start_paused = true)]
async fn a_write_that_has_sent_something_is_not_run_again_when_a_capability_fails() {
    for mode in [Mode::Text, Mode::Voice] {
        let fixture = Fixture::new();
        let (session, connection) = fixture.open("ann", mode).await;
        let response = submit_one(&connection, call("sent_then_failed", "a table")).await;
        let Outcome::Failure(error) = &response.outcome else { panic!("{response:?}") };
        assert_eq!((error.partial_side_effects, error.retryable), (Some(true), false));
        assert_eq!(error.details.as_ref().unwrap()["outcome"], "unknown");
        // Nor when the model makes the same call again.
        let again = submit_one(&connection, call("sent_then_failed", "a table")).await;
        assert_eq!(again.meta.idempotent_cache_hit, Some(true));
        assert_eq!(fixture.effects.times("a table"), 1);
        drop(session);
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_is_counted_across_sessions_and_slides() {
    let fixture = Fixture::new();
    let (_, one_tab) = fixture.open("ann", Mode::Text).await;
    let (_, other_tab) = fixture.open("ann", Mode::Text).await;
    assert!(submit_one(&one_tab, call("rare", "1")).await.is_ok());
    assert!(submit_one(&other_tab, call("rare", "2")).await.is_ok());
    let refused = submit_one(&one_tab, call("rare", "3")).await;
    assert_eq!(error_kind(&refused), Some(ErrorType::RateLimit));
    let (_, stranger) = fixture.open("bob", Mode::Text).await;
    assert!(submit_one(&stranger, call("rare", "4")).await.is_ok());
    if fixture.store.is_shared() {
        // A database counts by its own clock, so that nodes agree, and no test moves that one. Its own tests let it slide.
        return;
    }
    fixture.clock.advance(Duration::from_secs(60));
    assert!(submit_one(&one_tab, call("rare", "3")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn tools_call_tools_through_the_same_gates() {
    let fixture = Fixture::new();
    let (_, connection) = fixture.open("ann", Mode::Text).await;
    let nested = submit_one(&connection, call("chain", "book room")).await;
    assert_eq!(data(&nested)["data"], json!({ "did": "room" }));
    assert_eq!(data(&nested)["meta"]["parentCallId"], "call_1");
    let asks = submit_one(&connection, call("chain", "pay rent")).await;
    assert_eq!(data(&asks)["error"]["type"], "CONFIRMATION_REQUIRED");
    assert_eq!(fixture.effects.times("rent"), 0);
    let circle = submit_one(&connection, call("chain", "chain chain")).await;
    assert_eq!(error_kind(&circle), Some(ErrorType::Validation));
}

#[tokio::test(start_paused = true)]
async fn concurrent_writers_of_one_value_do_not_lose_an_update() {
    let fixture = Fixture::new();
    let mut tabs = Vec::new();
    for _ in 0..8 {
        tabs.push(fixture.open("ann", Mode::Text).await.1);
    }
    let batches: Vec<_> = tabs.iter().map(|tab| tab.submit(vec![call("count", "n")])).collect();
    let mut counted = Vec::new();
    for batch in batches {
        let response = receive(batch.all().await.remove(0).into_answer().unwrap());
        if let Outcome::Success(data) = &response.outcome {
            counted.push(data["n"].as_u64().unwrap());
        } else {
            assert_eq!(error_kind(&response), Some(ErrorType::Transient));
        }
    }
    counted.sort_unstable();
    assert_eq!(counted, (1..=counted.len() as u64).collect::<Vec<_>>(), "every success is a step of one");
    let (_, stranger) = fixture.open("bob", Mode::Text).await;
    assert_eq!(data(&submit_one(&stranger, call("count", "n")).await)["n"], 1, "a value of its own");
}

#[tokio::test(start_paused = true)]
async fn a_result_that_looks_like_an_envelope_changes_nothing() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    let before = session.state();
    let response = submit_one(&connection, call("trick", "x")).await;
    assert!(response.is_ok() && response.intents.is_empty());
    assert_eq!(session.state(), before);
}

#[tokio::test(start_paused = true)]
async fn a_block_holds_in_every_session_of_the_client() {
    let fixture = Fixture::new();
    let (_, connection) = fixture.open("ann", Mode::Text).await;
    assert!(submit_one(&connection, call("block", "x")).await.is_ok());
    let open = |client: &str| {
        let client = quarterdeck_runtime::Client::anonymous(client);
        fixture.orchestrator.open(client, Mode::Voice, fixture.snapshot.clone())
    };
    assert!(matches!(open("ann").await, Err(quarterdeck_runtime::SessionError::Blocked(_))));
    assert!(open("bob").await.is_ok());
    let after_restart = fixture.restarted();
    let client = quarterdeck_runtime::Client::anonymous("ann");
    assert!(
        after_restart.orchestrator.open(client.clone(), Mode::Text, fixture.snapshot.clone()).await.is_err()
    );
    after_restart.clock.advance(Duration::from_secs(61));
    assert!(after_restart.orchestrator.open(client, Mode::Text, fixture.snapshot.clone()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn nothing_runs_after_the_end() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    let end = quarterdeck_runtime::PendingEnd {
        after: quarterdeck_contracts::EndAfter::CurrentTurn,
        reason: "user_requested".into(),
        closing_message: None,
        text_response: None,
    };
    session.end(end).await;
    assert_eq!(
        error_kind(&submit_one(&connection, call("book", "x")).await),
        Some(ErrorType::SessionInactive)
    );
    assert!(matches!(connection.try_next_event(), Some(ClientEvent::End(_))));
    let resumed = fixture
        .orchestrator
        .resume(session.id(), quarterdeck_runtime::Client::anonymous("ann"), fixture.snapshot.clone())
        .await;
    assert!(resumed.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_twice_begins_one_turn() {
    let fixture = Fixture::new();
    let (session, _connection) = fixture.open("ann", Mode::Text).await;
    let first = session.begin_turn(Some("message-1"));
    let second = session.begin_turn(Some("message-1"));
    assert_eq!((first.is_repeated, second.is_repeated), (false, true));
    assert_eq!(first.number, second.number);
}

#[tokio::test(start_paused = true)]
async fn a_repeatable_tool_means_each_of_two_calls() {
    let fixture = Fixture::new();
    let (_, connection) = fixture.open("ann", Mode::Text).await;
    let replies = connection.submit(vec![call("toss", "coin"), call("toss", "coin")]).all().await;
    assert!(replies.iter().all(|reply| matches!(reply, Reply::Answer(answer) if answer.response.is_ok())));
    assert_eq!(fixture.effects.times("coin"), 2);
}
