//! What a definition calls sensitive appears nowhere that people read.

use std::io::Write;
use std::sync::{Arc, Mutex};

use quarterdeck_contracts::{ConfirmationAnswer, Mode};
use quarterdeck_runtime::{Call, ClientEvent, Reply};
use serde_json::json;

use super::deck::{Deck, one, take};

const SECRET: &str = "hunter2-planted";

/// A log that a test can read.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn planted_secrets_appear_nowhere() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let deck = Deck::new();
    let (session, connection) = deck.open("ann", Mode::Text).await;
    let with_secret = |what: serde_json::Value| json!({ "what": what, "secret": SECRET });

    // What runs, what breaks, what is refused by each kind of gate, and what does not exist.
    for tool in ["book", "book", "book", "crash", "look", "typed_only", "members", "rare", "no_such_tool"] {
        let response = one(&connection, Call::new(tool, with_secret(json!("x")))).await;
        assert!(!json!(*response).to_string().contains(SECRET), "{tool}");
    }
    let wrong = one(&connection, Call::new("look", with_secret(json!(3)))).await;
    assert!(!json!(*wrong).to_string().contains(SECRET));

    // What is approved is shown: to the one who approves, and to nobody else.
    session.begin_turn(None);
    let replies = connection.submit(vec![Call::new("pay", with_secret(json!("rent")))]).all().await;
    assert!(matches!(&replies[0], Reply::Waits { .. }));
    let Some(ClientEvent::Confirmation { request, .. }) = connection.try_event() else { panic!() };
    assert!(request.preview.contains(SECRET), "{}", request.preview);
    assert_eq!(request.args["secret"], SECRET);
    let token = request.token.unwrap();
    assert!(take(session.answer_confirmation(token.expose(), ConfirmationAnswer::Approve).await).is_ok());

    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for message in [" handler failed ", " handler session="] {
        let line =
            log.lines().find(|line| line.contains(message)).unwrap_or_else(|| panic!("{message}: {log}"));
        for field in ["session=", "turn=1", "call=", "tool=\"crash\""] {
            assert!(line.contains(field), "{field}: {line}");
        }
    }
    for (place, text) in [
        ("log", log),
        ("trail", deck.trail.text()),
        ("metrics", deck.orchestrator.metrics().json().to_string()),
        ("metrics", deck.orchestrator.metrics().prometheus()),
    ] {
        assert!(!text.contains(SECRET), "{place}: {text}");
        assert!(!text.contains(token.expose()), "{place} holds a token");
    }
    assert!(deck.trail.count("tool_execution") > 10);
}
