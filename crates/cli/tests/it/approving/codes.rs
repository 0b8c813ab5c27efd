//! Two conversations of one client, with a question open in each.

use serde_json::{Value, json};

use super::{Site, booking, code, complete, trail};

fn bookings(site: &Site) -> usize {
    let lines = trail(&site.path("data"), "tool_execution");
    lines.iter().filter(|line| line["ok"] == true && line["toolId"] == "calendar_create_event").count()
}

#[test]
fn a_code_approves_only_in_the_conversation_in_which_its_question_was_asked() {
    let text = |text: &str| json!({ "text": text });
    for begins in [["Book tea", "Book dinner"], ["Book it", "Book it"]] {
        let script = json!([
            booking(1),
            text("Please."),
            booking(2),
            text("Please."),
            text("Which?"),
            text("Which?"),
            text("Done."),
            text("Done."),
        ]);
        let site = Site::new(&script);
        let server = site.serve(|_| {});
        let ask = |words: &str| {
            let mut told = vec![json!({ "role": "user", "content": words })];
            let question = complete(&server, "me", &json!(told));
            told.push(json!({ "role": "assistant", "content": question }));
            (told, code(&question))
        };
        let (first, first_code) = ask(begins[0]);
        let (second, second_code) = ask(begins[1]);
        assert_ne!(first_code, second_code);
        let reply = |told: &[Value], code: &str| {
            let mut told = told.to_vec();
            told.push(json!({ "role": "user", "content": format!("approve {code}") }));
            complete(&server, "me", &json!(told))
        };
        assert_eq!(reply(&second, &first_code), "Which?", "{begins:?}");
        assert_eq!(reply(&first, &second_code), "Which?", "{begins:?}");
        assert_eq!(bookings(&site), 0, "{begins:?}");
        assert_eq!(reply(&first, &first_code), "Done.");
        assert_eq!(bookings(&site), 1, "{begins:?}");
        assert_eq!(reply(&second, &second_code), "Done.");
        assert_eq!(bookings(&site), 2, "{begins:?}");
    }
}
