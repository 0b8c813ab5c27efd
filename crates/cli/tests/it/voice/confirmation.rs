//! Confirmation in a voice call, and tools that are for text only.

use serde_json::json;

use super::page::Page;
use super::provider::Provider;
use super::server::Site;
use super::tools::{NOTHING, add};

#[tokio::test(flavor = "multi_thread")]
async fn approved_call_runs_once() {
    let provider = Provider::with_turns(&json!([
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
    let mut page = Page::connect(&server).await;
    page.send_text("Pay the rent").await;
    let token = page.wait_for("confirmation_request").await["token"].clone();
    page.wait_for("turn_complete").await;
    // A double click, and the line is lost in between.
    let yes = json!({ "type": "confirm", "token": token, "approve": true });
    page.send(&yes).await;
    let mut page = page.reconnect(&server).await;
    page.send(&yes).await;
    page.wait_for_answer("It is paid.").await;
    let report = provider.wait_for_report("two turns", |report| report.turns == 2).await;
    let answer = &report.calls[0].answers[0]["error"];
    assert_eq!(answer["type"], "CONFIRMATION_REQUIRED", "{report:#?}");
    assert!(
        !report.calls[0].answers[0].to_string().contains(token.as_str().unwrap()),
        "the model has no token"
    );
    server.stop();
    assert_eq!((site.count_runs("ran", "rent"), site.stored_count("pay").await), (1, 1));
    assert_eq!(provider.report().faults, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_only_for_text_is_refused_with_the_reason() {
    let provider = Provider::with_turns(&json!([
        { "begins": "text", "steps": [
            { "call": { "name": "write_only", "args": { "what": "letter" } } },
            { "await": "answers" },
            { "say": "Not here." },
        ] },
    ]))
    .await;
    let site = Site::new(&provider.address);
    let server = site.serve();
    let mut page = Page::connect(&server).await;
    page.exchange("Write a letter", "Not here.").await;
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
    let provider = Provider::with_turns(&json!([{ "begins": "text", "steps": [
        { "call": { "name": "deliver", "args": args } }, { "await": "answers" }, { "say": "Please look." },
    ] }]))
    .await;
    let site = Site::new(&provider.address);
    add(site.tools.path(), "deliver", &definition, NOTHING);
    let server = site.serve();
    let mut page = Page::connect(&server).await;
    page.send_text("Deliver it").await;
    let request = page.wait_for("confirmation_request").await;
    args["express"] = true.into();
    assert_eq!(request["args"], args, "as it would be run, defaults included");
    assert_eq!(request["preview"], "Deliver tea⟨U+202E⟩exe to Secret Lane 4");
    page.wait_for("turn_complete").await;
    server.stop();
    let trail = site.trail("tool_execution");
    assert!(
        !trail.is_empty() && trail.iter().all(|line| !line.to_string().contains("Secret Lane")),
        "{trail:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_looked_up_does_not_shut_the_caller_out() {
    let provider = Provider::with_turns(&json!([
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
    let mut page = Page::connect(&server).await;
    page.exchange("Look it up", "There it is.").await;
    assert_eq!(page.results(), ["ok", "UNAVAILABLE"]);
    page.send_text("You fool!").await;
    let done = page.wait_for("tool_result").await;
    assert_eq!(done["ok"], true, "{done}");
}
