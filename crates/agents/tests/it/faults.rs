//! When the model fails, or the user leaves.

use std::time::Duration;

use quarterdeck_agents::text::Settings;
use quarterdeck_contracts::{ChatErrorKind, ChatMessage};
use serde_json::json;

use crate::world::{ModelStep, World, call, event_lines, lines};

#[tokio::test]
async fn every_failure_is_told_plainly_and_the_session_goes_on() {
    for (kind, words) in [
        (ChatErrorKind::Unreachable, "TRANSIENT \"The model cannot be reached."),
        (ChatErrorKind::Unauthorised, "AUTH \"The model refuses our key."),
        (ChatErrorKind::RateLimited, "RATE_LIMIT \"The model is rate-limited"),
        (ChatErrorKind::Overloaded, "TRANSIENT \"The model has trouble"),
        (ChatErrorKind::Rejected, "PERMANENT \"The model does not accept our request."),
        (ChatErrorKind::TooLong, "PERMANENT \"This is too long for the model."),
        (ChatErrorKind::Refused, "PERMANENT \"The model will not answer this."),
        (ChatErrorKind::Cut, "TRANSIENT \"The answer was cut off"),
        (ChatErrorKind::Garbled, "TRANSIENT \"The model sent something that cannot be read."),
        (ChatErrorKind::Silent, "TRANSIENT \"The model did not answer in time."),
    ] {
        let world = World::new();
        world.model.then(ModelStep::Fail("Well, ", kind)).reply("Better now.");
        let failed = world.send_and_collect("Hello").await;
        let expected = format!("started\nround\ntext \"Well, \"\nfailed {words}");
        assert!(failed.starts_with(&expected), "{failed}");
        assert!(failed.ends_with("finished Some(Failed)\n"), "{failed}");
        assert!(!failed.contains("told to"), "what the provider said is for the log: {failed}");
        assert!(world.send_and_collect("And now?").await.contains("Better now."));
        let said = world.model.last_request().messages;
        assert!(
            matches!(&said[1], ChatMessage::Model(message) if message.text() == "Well, "),
            "what was said stays: {said:?}"
        );
    }
}

#[tokio::test]
async fn a_context_that_is_too_small_gets_summaries_instead_of_guides() {
    let world = World::new();
    world.model.then(ModelStep::Overflow(2_048, 5_312)).reply("It fits.").reply("Still.");
    let lines = world.send_and_collect("Hello").await;
    assert_eq!(lines, "started\nround\ntext \"It fits.\"\nfinished Some(Answered)\n");
    assert_eq!(summarised(&world), [false, true]);
    // The next turn does not fail first.
    assert!(world.send_and_collect("Again").await.contains("Still."));
    assert_eq!(summarised(&world), [false, true, true]);
}

#[tokio::test]
async fn a_context_that_is_too_small_even_for_summaries_is_told_with_its_numbers() {
    let world = World::new();
    world.model.then(ModelStep::Overflow(512, 5_312)).then(ModelStep::Overflow(512, 901));
    let lines = world.send_and_collect("Hello").await;
    assert!(lines.contains("which takes 512 tokens and was sent 901."), "{lines}");
    assert_eq!(summarised(&world), [false, true], "it is not asked a third time");
    world.model.then(ModelStep::Overflow(512, 905));
    assert!(world.send_and_collect("Again").await.contains("was sent 905."));
    assert_eq!(summarised(&world), [false, true, true], "what cannot be shortened is not sent again");
}

/// Whether each request had summaries.
fn summarised(world: &World) -> Vec<bool> {
    let requests = world.model.requests.lock().unwrap();
    requests.iter().map(|request| request.system.contains("read its guide with `describe_tool`")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_model_of_this_machine_that_is_being_loaded_is_told_of() {
    let (soon, late) = (Duration::from_secs(2), Duration::from_secs(200));
    for (is_local, pause, is_told) in [(true, late, true), (true, soon, false), (false, late, false)] {
        let world = World::new();
        *world.model.is_local.lock().unwrap() = is_local;
        world.model.then(ModelStep::Late(pause, "Here I am."));
        let lines = world.send_and_collect("Hello").await;
        assert!(lines.contains("Here I am."), "{lines}");
        assert_eq!(lines.matches("data model-loading").count(), usize::from(is_told), "{lines}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_never_ends_is_given_up() {
    let world = World::with(Settings { round_deadline: Duration::from_secs(30), ..Settings::default() });
    world.model.then(ModelStep::Hang("Hm"));
    let lines = world.send_and_collect("Hello").await;
    assert!(lines.contains("failed TRANSIENT \"The model did not answer in time."), "{lines}");
}

#[tokio::test]
async fn when_the_user_leaves_the_model_request_is_aborted_and_the_next_message_works() {
    let world = World::new();
    world.model.then(ModelStep::Hang("Once upon a ")).reply("Hello again.");
    let mut reader = world.send("Tell me a story").await.unwrap();
    let mut seen = String::new();
    while !seen.contains("Once") {
        seen += &lines(&reader.next().await.unwrap());
    }
    drop(reader);
    assert!(world.send_and_collect("Hi").await.contains("Hello again."));
    assert!(*world.model.dropped.lock().unwrap() >= 1, "the request was aborted");
    let said = world.model.last_request().messages;
    assert!(matches!(&said[1], ChatMessage::Model(message) if message.text() == "Once upon a "), "{said:?}");
}

#[tokio::test]
async fn a_write_that_has_begun_when_the_user_leaves_finishes_and_is_reported_later() {
    let world = World::new();
    world.model.call_tools(vec![call("1", "slow_book", json!({ "what": "a table" }))]).reply("It is booked.");
    let mut reader = world.send("Book a table").await.unwrap();
    let mut seen = String::new();
    while !seen.contains("call slow_book") {
        seen += &lines(&reader.next().await.unwrap());
    }
    while world.runs("slow_book") == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(reader);
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    let lines = event_lines(world.send("Did it work?").await.unwrap()).await;
    assert!(lines.contains("late slow_book {\"did\":\"a table\"}"), "the user is told: {lines}");
    let asked = serde_json::to_string(&world.model.last_request().messages).unwrap();
    assert!(
        asked.contains("slow_book was interrupted but had begun, and was done."),
        "the model is told: {asked}"
    );
    assert_eq!(world.runs("slow_book"), 1);
}

#[tokio::test]
async fn after_a_crash_the_model_knows_of_a_write_before_it_decides_again() {
    let world = World::new();
    world.model.call_tools(vec![call("1", "slow_book", json!({ "what": "a table" }))]);
    let reader = world.send("Book a table").await.unwrap();
    while world.runs("slow_book") == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let after = world.restarted();
    after.model.reply("I do not know whether it was booked.");
    after.send_and_collect("Book a table").await;
    let first = after.model.requests.lock().unwrap()[0].clone();
    let asked = serde_json::to_string(&first.messages).unwrap();
    assert!(asked.contains("slow_book") && asked.contains("not known"), "the model is told: {asked}");
    drop(reader);
}

#[tokio::test]
async fn forty_calls_at_once_are_answered_and_bounded() {
    let world = World::new();
    let calls =
        (0..40).map(|n| call(&n.to_string(), "look", json!({ "what": format!("thing {n}") }))).collect();
    world.model.call_tools(calls).reply("That is a lot.");
    let lines = world.send_and_collect("Look at everything").await;
    assert_eq!(lines.matches("answer ").count(), 40, "{lines}");
    assert_eq!(world.runs("look"), 5, "the budget of a turn");
    assert!(lines.ends_with("text \"That is a lot.\"\nfinished Some(Answered)\n"));
}
