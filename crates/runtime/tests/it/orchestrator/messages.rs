//! Messages that tools send to the client.

use quarterdeck_contracts::{Mode, Outcome, PROTOCOL_MESSAGE_TYPES};
use quarterdeck_runtime::{Call, ClientEvent};
use serde_json::json;

use super::fixture::{Fixture, submit_one};

/// However a tool spells them: the text stream writes `-` where voice writes `_`.
#[tokio::test(start_paused = true)]
async fn a_tool_cannot_send_a_message_of_the_protocol() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    for kind in PROTOCOL_MESSAGE_TYPES {
        for spelling in [kind.to_owned(), kind.replace('_', "-"), kind.to_uppercase()] {
            session.begin_turn(None);
            let answer = submit_one(&connection, Call::new("message", json!({ "what": spelling }))).await;
            let Outcome::Failure(error) = &answer.outcome else { panic!("{spelling} was sent") };
            assert!(error.message.contains("belong to the protocol"), "{spelling}: {}", error.message);
        }
    }
    assert!(connection.try_next_event().is_none(), "nothing was sent");

    session.begin_turn(None);
    assert!(submit_one(&connection, Call::new("message", json!({ "what": "ice_report" }))).await.is_ok());
    let Some(ClientEvent::Message(message)) = connection.try_next_event() else { panic!("it was not sent") };
    assert_eq!(message["type"], "ice_report");
}
