//! Two clients whose calls are equal share nothing.

use std::sync::Arc;

use quarterdeck_contracts::{ConfirmationAnswer, ErrorType, Mode, Outcome};
use quarterdeck_runtime::{Call, Client, ClientEvent, Connection, Session, SessionError};
use serde_json::{Value, json};

use super::deck::{Deck, kind, one, take};

const ROUNDS: u32 = 1_000;

struct Person {
    session: Session,
    connection: Connection,
}

impl Person {
    async fn new(deck: &Deck, name: &str) -> Self {
        let (session, connection) = deck.open(name, Mode::Voice).await;
        Self { session, connection }
    }

    async fn call(&self, tool: &str, what: &str) -> Arc<quarterdeck_contracts::ToolResponse> {
        // The same ids on both sides: they mean something within a session only.
        one(&self.connection, Call::new(tool, json!({ "what": what })).with_id(format!("call_{what}"))).await
    }

    fn token(&self) -> String {
        while let Some(event) = self.connection.try_next_event() {
            if let ClientEvent::Confirmation { request, .. } = event {
                return request.token.unwrap().expose().to_owned();
            }
        }
        panic!("nobody was asked");
    }
}

fn number(response: &Arc<quarterdeck_contracts::ToolResponse>) -> Value {
    match &response.outcome {
        Outcome::Success(data) => data["n"].clone(),
        Outcome::Failure(error) => panic!("{error}"),
    }
}

#[tokio::test(start_paused = true)]
async fn two_clients_with_equal_calls_share_no_answer_token_budget_or_value() {
    let deck = Deck::new();
    let (ann, bob) = (Person::new(&deck, "ann").await, Person::new(&deck, "bob").await);
    for round in 0..ROUNDS {
        let what = format!("round-{round:05}");
        // Answers: each runs its own, and neither sees the other's as a repetition.
        for person in [&ann, &bob] {
            let response = person.call("look", &what).await;
            assert_eq!((response.is_ok(), response.meta.idempotent_cache_hit), (true, None));
        }
        assert_eq!(deck.outside.times(&what), 2);
        // Values: each counts alone.
        for person in [&ann, &bob] {
            assert_eq!(number(&person.call("count", &format!("n-{round:05}")).await), json!(round + 1));
        }
        // Tokens: what one was asked, the other cannot answer.
        for person in [&ann, &bob] {
            let asked = person.call("pay", &format!("rent-{round:05}")).await;
            assert_eq!(kind(&asked), Some(ErrorType::ConfirmationRequired));
        }
        let (anns, bobs) = (ann.token(), bob.token());
        assert_ne!(anns, bobs);
        let stolen = take(bob.session.resolve_confirmation(&anns, ConfirmationAnswer::Approve).await);
        assert_eq!(kind(&stolen), Some(ErrorType::ConfirmationInvalid));
        let own = take(bob.session.resolve_confirmation(&bobs, ConfirmationAnswer::Approve).await);
        assert!(own.is_ok());
        assert_eq!(deck.outside.times(&format!("rent-{round:05}")), 1);
        // Budgets: three calls each are all that a spoken turn has, and one's do not count for the other.
        assert_eq!(
            kind(&ann.call("look", &format!("more-{round:05}")).await),
            Some(ErrorType::BudgetExceeded)
        );
        ann.session.begin_turn(None);
        assert_eq!(
            kind(&bob.call("look", &format!("more-{round:05}")).await),
            Some(ErrorType::BudgetExceeded)
        );
        bob.session.begin_turn(None);
    }
    // Blocks: one's is not the other's.
    assert!(ann.call("block", "x-------").await.is_ok());
    let open =
        |name: &str| deck.orchestrator.open(Client::anonymous(name), Mode::Text, deck.snapshot.clone());
    assert!(matches!(open("ann").await, Err(SessionError::Blocked(_))));
    assert!(open("bob").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_session_of_somebody_else_does_not_exist() {
    let deck = Deck::new();
    let (session, _connection) = deck.open("ann", Mode::Voice).await;
    for deck in [&deck, &deck.restarted()] {
        let stranger =
            deck.orchestrator.resume(session.id(), Client::anonymous("bob"), deck.snapshot.clone()).await;
        assert!(matches!(stranger, Err(SessionError::NotFound)));
    }
}
