//! Signed values have one spelling.

use serde_json::{Value, json};

use crate::voice::page::Page;
use crate::world::World;

/// The text with one character changed, at every place from `from` on.
fn variants(text: &str, from: usize) -> Vec<String> {
    let mut all = Vec::new();
    for (place, letter) in text.char_indices().skip(from) {
        for other in [letter.to_ascii_uppercase(), '+', if letter == '0' { '1' } else { '0' }] {
            if other != letter {
                all.push(format!("{}{other}{}", &text[..place], &text[place + 1..]));
            }
        }
    }
    all
}

#[tokio::test]
async fn a_cookie_in_another_spelling_makes_a_new_client() {
    let world = World::new().await;
    let cookie = world.new_client().await;
    let client = world.client_of(&cookie).await;
    for forged in variants(&cookie, "quarterdeck_client=".len()) {
        let answer = world.get("/api/me").with("cookie", &forged).send().await;
        assert_ne!(answer.json()["clientId"], client.as_str(), "{forged}");
    }
}

#[tokio::test]
async fn a_ticket_in_another_spelling_is_refused() {
    let world = World::new().await;
    let ticket = world.post("/api/voice/ticket", &json!({})).send().await.json();
    let ticket = ticket["ticket"].as_str().unwrap().to_owned();
    let signature = ticket.find('.').unwrap() + 1;
    for forged in variants(&ticket, signature - 4) {
        let forged = forged.replace('+', "%2B");
        let refused = Page::try_open(&world, &format!("/voice?ticket={forged}"), &[]).await;
        assert!(refused.is_err(), "{forged}");
    }
    assert!(Page::try_open(&world, &format!("/voice?ticket={ticket}"), &[]).await.is_ok(), "it was not used");
}

#[tokio::test]
async fn a_confirmation_token_in_another_spelling_is_refused() {
    let world = World::new().await;
    let cookie = world.new_client().await;
    let asked =
        world.post("/api/chat", &json!({ "message": "call it" })).with("cookie", &cookie).send().await;
    let token = asked.event("data-confirmation")["data"]["token"].as_str().unwrap().to_owned();
    let decide = |token: &str| {
        let body: Value = json!({ "token": token, "approve": true });
        world.post("/api/confirmations", &body).with("cookie", &cookie).send()
    };
    for forged in variants(&token, 0).into_iter().step_by(3) {
        assert_ne!(decide(&forged).await.status, 200, "{forged}");
    }
    assert_eq!(decide(&token).await.status, 200);
}
