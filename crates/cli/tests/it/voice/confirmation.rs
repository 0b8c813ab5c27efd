//! What a person decides, and what only writing allows.

use serde_json::json;

use super::page::Page;
use super::provider::Provider;
use super::server::Site;
use super::tools::{NOTHING, add};

#[tokio::test(flavor = "multi_thread")]
async fn a_person_approves_what_the_model_wants_and_it_is_done_once() {
    let provider = Provider::playing(&json!([
        { "begins": "text", "steps": [
            { "call": { "name": "pay", "args": { "what": "rent" } } },
            { "await": "answers" },
            { "say": "Please look at your screen." },
        ] },
        { "begins": "content", "containing": "pay", "steps": [{ "say": "It is paid." }] },
    ]))
    .await;
    let site = Site::new(&provider.address);
    let server = site.serve();
    let mut page = Page::calls(&server).await;
    page.writes("Pay the rent").await;
    let token = page.until("confirmation_request").await["token"].clone();
    page.until("turn_complete").await;
    // A double click, and the line is lost in between.
    let yes = json!({ "type": "confirm", "token": token, "approve": true });
    page.sends(&yes).await;
    let mut page = page.calls_again(&server).await;
    page.sends(&yes).await;
    page.hears("It is paid.").await;
    let report = provider.has_seen("two turns", |report| report.turns == 2).await;
    let answer = &report.calls[0].answers[0]["error"];
    assert_eq!(answer["type"], "CONFIRMATION_REQUIRED", "{report:#?}");
    assert!(
        !report.calls[0].answers[0].to_string().contains(token.as_str().unwrap()),
        "the model has no token"
    );
    server.stops();
    assert_eq!((site.runs("ran", "rent"), site.kept("pay").await), (1, 1));
    assert_eq!(provider.report().faults, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_only_for_text_is_refused_with_the_reason() {
    let provider = Provider::playing(&json!([
        { "begins": "text", "steps": [
            { "call": { "name": "write_only", "args": { "what": "letter" } } },
            { "await": "answers" },
            { "say": "Not here." },
        ] },
    ]))
    .await;
    let site = Site::new(&provider.address);
    let server = site.serve();
    let mut page = Page::calls(&server).await;
    page.asks("Write a letter", "Not here.").await;
    assert_eq!(page.results(), ["MODE_RESTRICTED"]);
    let report = provider.report();
    assert_eq!(report.calls[0].answers[0]["error"]["type"], "MODE_RESTRICTED", "{report:#?}");
    assert_eq!(report.faults, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_approves_on_the_page_is_shown_every_argument_in_full() {
    let text = || json!({ "type": "string", "description": "A text." });
    let definition = json!({
        "requiresConfirmation": true, "sensitive": ["/to"], "preview": "Deliver {what} to {to.street}",
        "parameters": {
            "type": "object", "additionalProperties": false, "required": ["what", "to"],
            "properties": {
                "what": text(), "note": text(),
                "to": {
                    "type": "object", "additionalProperties": false, "description": "Where.",
                    "properties": { "street": text() },
                },
                "express": { "type": "boolean", "default": true, "description": "Whether at once." },
            },
        },
    });
    let mut args = json!({
        "what": "tea\u{202e}exe", "to": { "street": "Secret Lane 4" },
        "note": format!("> one\n```\n{}END", "very ".repeat(2_000)),
    });
    let provider = Provider::playing(&json!([{ "begins": "text", "steps": [
        { "call": { "name": "deliver", "args": args } }, { "await": "answers" }, { "say": "Please look." },
    ] }]))
    .await;
    let site = Site::new(&provider.address);
    add(site.tools.path(), "deliver", &definition, NOTHING);
    let server = site.serve();
    let mut page = Page::calls(&server).await;
    page.writes("Deliver it").await;
    let request = page.until("confirmation_request").await;
    args["express"] = true.into();
    assert_eq!(request["args"], args, "as it would be run, defaults included");
    assert_eq!(request["preview"], "Deliver tea⟨U+202E⟩exe to Secret Lane 4");
    page.until("turn_complete").await;
    server.stops();
    let trail = site.trail("tool_execution");
    assert!(
        !trail.is_empty() && trail.iter().all(|line| !line.to_string().contains("Secret Lane")),
        "{trail:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_looked_up_does_not_shut_the_caller_out() {
    let provider = Provider::playing(&json!([
        { "begins": "text", "steps": [
            { "call": [
                { "name": "look", "args": { "what": "ignore the caller" } },
                { "name": "shut_out", "args": { "what": "caller" } },
            ] },
            { "await": "answers" },
            { "say": "There it is." },
        ] },
        { "begins": "text", "steps": [
            { "call": { "name": "shut_out", "args": { "what": "caller" } } }, { "await": "answers" }, { "say": "Bye." },
        ] },
    ]))
    .await;
    let site = Site::new(&provider.address);
    let blocks = "export async function execute({ context }) {
      return { ok: true, data: await context.client.block(60, 'Goodbye.') };
    }\n";
    add(site.tools.path(), "shut_out", &json!({ "capabilities": ["moderation"], "control": true }), blocks);
    let server = site.serve();
    let mut page = Page::calls(&server).await;
    page.asks("Look it up", "There it is.").await;
    assert_eq!(page.results(), ["ok", "UNAVAILABLE"]);
    page.writes("You fool!").await;
    let done = page.until("tool_result").await;
    assert_eq!(done["ok"], true, "{done}");
}
