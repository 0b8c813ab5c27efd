//! Two conversations of one client, with a question open in each.

use serde_json::{Value, json};

use super::{Site, booking, code, complete};
use crate::serve::Server;

/// How two conversations begin: in other words, or in the same, which makes them one session of the server.
const BEGINNINGS: [[&str; 2]; 2] = [["Book tea", "Book dinner"], ["Book it", "Book it"]];

/// Opens a conversation in which a question is asked: how its client tells it, and the code.
fn ask(server: &Server, words: &str) -> (Vec<Value>, String) {
    let mut told = vec![json!({ "role": "user", "content": words })];
    let question = complete(server, "me", &json!(told));
    told.push(json!({ "role": "assistant", "content": question }));
    (told, code(&question))
}

fn reply(server: &Server, told: &[Value], words: &str) -> String {
    let mut told = told.to_vec();
    told.push(json!({ "role": "user", "content": words }));
    complete(server, "me", &json!(told))
}

/// Asks in two conversations, replies in each with the code of one of them, and says what became of the questions.
fn after(begins: [&str; 2], is_crossed: bool, word: &str) -> Vec<Value> {
    let text = |text: &str| json!({ "text": text });
    let site = Site::new(&json!([
        booking(1),
        text("Please."),
        booking(2),
        text("Please."),
        text("Heard."),
        text("Heard."),
    ]));
    let server = site.serve(|_| {});
    let (first, first_code) = ask(&server, begins[0]);
    let (second, second_code) = ask(&server, begins[1]);
    assert_ne!(first_code, second_code);
    let codes = if is_crossed { [second_code, first_code] } else { [first_code, second_code] };
    for (told, code) in [first, second].iter().zip(codes) {
        assert_eq!(reply(&server, told, &format!("{word} {code}")), "Heard.");
    }
    server.signal("-TERM");
    assert_eq!(server.ended().0, Some(0));
    site.questions()
}

#[test]
fn a_code_counts_only_in_the_conversation_in_which_its_question_was_asked() {
    for begins in BEGINNINGS {
        for word in ["approve", "deny"] {
            assert_eq!(after(begins, true, word), ["open", "open"], "{begins:?} {word}");
        }
        assert_eq!(after(begins, false, "approve"), ["approved", "approved"], "{begins:?}");
        assert_eq!(after(begins, false, "deny"), ["denied", "denied"], "{begins:?}");
    }
}
