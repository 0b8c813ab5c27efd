//! Servers that go away in the middle of a write.

use quarterdeck_runtime::Call;
use serde_json::json;

use crate::notes::is_running;
use crate::until::until;
use crate::world::{BOOKING, LOOK, World, assert_honest, assert_outcome_unknown, submit};

#[tokio::test(flavor = "multi_thread")]
async fn a_write_in_which_the_server_dies_has_an_unknown_outcome_and_is_never_sent_again() {
    let world = World::stdio("dies-in-write");
    world.connected().await;
    let (session, connection) = world.open("ann").await;
    let booking = || Call::new(BOOKING, json!({ "what": "the suite" })).with_id("call_book_01");
    let response = submit(&connection, booking()).await;
    assert_outcome_unknown(&response);

    // The same delivery again, as a provider repeats it, has the recorded answer.
    let again = submit(&connection, booking()).await;
    assert_eq!(again.outcome, response.outcome);
    drop(session);
    // A new process of the server has nothing sent to it but what is asked of it.
    world.reconnected().await;
    let answer = world.call(LOOK, "afterwards").await;
    assert_honest(&answer, "lookup", "afterwards");
    assert_eq!(world.notes.calls(), ["the suite", "afterwards"]);
    assert_eq!(world.notes.processes().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_closes_its_output_in_a_write_counts_as_dead_and_is_replaced() {
    let world = World::stdio("closes-stdout");
    world.connected().await;
    assert_outcome_unknown(&world.call(BOOKING, "the suite").await);
    world.reconnected().await;
    let answer = world.call(LOOK, "afterwards").await;
    assert_honest(&answer, "lookup", "afterwards");
    assert_eq!(world.notes.calls(), ["the suite", "afterwards"]);
    let first = world.notes.processes()[0];
    until("the first process is gone", || (!is_running(first)).then_some(())).await;
}
