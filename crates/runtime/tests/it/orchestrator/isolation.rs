//! Two clients whose calls are equal share nothing.

use std::sync::Arc;

use quarterdeck_contracts::{ConfirmationAnswer, ErrorType, Mode, Outcome};
use quarterdeck_runtime::{Call, Client, ClientEvent, Connection, Session, SessionError};
use serde_json::{Value, json};

use super::fixture::{Fixture, error_kind, receive, submit_one};

const ROUNDS: u32 = 1_000;

struct TestClient {
    session: Session,
    connection: Connection,
}

impl TestClient {
    async fn new(fixture: &Fixture, name: &str) -> Self {
        let (session, connection) = fixture.open(name, Mode::Voice).await;
        Self { session, connection }
    }

    async fn call(&self, tool: &str, what: &str) -> Arc<quarterdeck_contracts::ToolResponse> {
        // The same ids on both sides: they mean something within a session only.
        submit_one(&self.connection, Call::new(tool, json!({ "what": what })).with_id(format!("call_{what}")))
            .await
    }

    fn token(&self) -> String {
        while let Some(event) = self.connection.try_next_event() {
            if let ClientEvent::Confirmation { request, .. } = event {
                return request.token.unwrap().expose().to_owned();
            }
        }
        panic!("no confirmation was requested");
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
    let fixture = Fixture::new();
    let (ann, bob) = (TestClient::new(&fixture, "ann").await, TestClient::new(&fixture, "bob").await);
    for round in 0..ROUNDS {
        let what = format!("round-{round:05}");
        // Answers: each runs its own, and neither sees the other's as a repetition.
        for client in [&ann, &bob] {
            let response = client.call("look", &what).await;
            assert_eq!((response.is_ok(), response.meta.idempotent_cache_hit), (true, None));
        }
        assert_eq!(fixture.effects.times(&what), 2);
        // Values: each counts alone.
        for client in [&ann, &bob] {
            assert_eq!(number(&client.call("count", &format!("n-{round:05}")).await), json!(round + 1));
        }
        // Tokens: what one was asked, the other cannot answer.
        for client in [&ann, &bob] {
            let asked = client.call("pay", &format!("rent-{round:05}")).await;
            assert_eq!(error_kind(&asked), Some(ErrorType::ConfirmationRequired));
        }
        let (anns, bobs) = (ann.token(), bob.token());
        assert_ne!(anns, bobs);
        let stolen = receive(bob.session.resolve_confirmation(&anns, ConfirmationAnswer::Approve).await);
        assert_eq!(error_kind(&stolen), Some(ErrorType::ConfirmationInvalid));
        let own = receive(bob.session.resolve_confirmation(&bobs, ConfirmationAnswer::Approve).await);
        assert!(own.is_ok());
        assert_eq!(fixture.effects.times(&format!("rent-{round:05}")), 1);
        // Budgets: three calls each are all that a spoken turn has, and one's do not count for the other.
        assert_eq!(
            error_kind(&ann.call("look", &format!("more-{round:05}")).await),
            Some(ErrorType::BudgetExceeded)
        );
        ann.session.begin_turn(None);
        assert_eq!(
            error_kind(&bob.call("look", &format!("more-{round:05}")).await),
            Some(ErrorType::BudgetExceeded)
        );
        bob.session.begin_turn(None);
    }
    // Blocks: one's is not the other's.
    assert!(ann.call("block", "x-------").await.is_ok());
    let open =
        |name: &str| fixture.orchestrator.open(Client::anonymous(name), Mode::Text, fixture.snapshot.clone());
    assert!(matches!(open("ann").await, Err(SessionError::Blocked(_))));
    assert!(open("bob").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_voice_session_of_another_client_is_not_found() {
    let fixture = Fixture::new();
    let (session, _connection) = fixture.open("ann", Mode::Voice).await;
    for fixture in [&fixture, &fixture.restarted()] {
        let stranger = fixture
            .orchestrator
            .resume(session.id(), Client::anonymous("bob"), fixture.snapshot.clone())
            .await;
        assert!(matches!(stranger, Err(SessionError::NotFound)));
    }
}
