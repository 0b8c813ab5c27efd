//! What one client may learn of another through the running server.

use std::path::Path;
use std::sync::Arc;

use quarterdeck_calendar::{CalendarConfig, Calendars};
use quarterdeck_contracts::{Mode, Store};
use quarterdeck_runtime::gates::ClientFacts;
use quarterdeck_runtime::{Call, Client, Orchestrator, Reply, RuntimeParts};
use quarterdeck_testkit::tree;
use serde_json::{Value, json};

use crate::data::{registry, run, store};
use crate::serve::Server;
use crate::terminal::quarterdeck;

const EVENT: &str = "BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VEVENT\nUID:secret-uid@fram\nDTSTAMP:20260101T000000Z\n\
                     DTSTART:20301201T090000Z\nDTEND:20301201T100000Z\nSUMMARY:Layoffs\nATTENDEE:mailto:ada@fram.no\n\
                     END:VEVENT\nEND:VCALENDAR\n";

/// A model that looks at the calendars in every way it can, whatever is said to it.
fn script(folder: &Path) -> String {
    let look = |calendars: Value| {
        let arguments = json!({ "start_date": "2030-12-01T00:00:00Z", "end_date": "2030-12-02T00:00:00Z",
                                "calendars": calendars, "include_details": true });
        json!({ "name": "calendar_get_availability", "arguments": arguments })
    };
    let calls = [look(json!(["primary"])), look(json!(["primary", "team"])), look(json!(["personal"]))];
    let replies = json!([{ "calls": calls }, { "text": "That is all." }]);
    let script = json!({ "replies": replies, "order": "conversation" });
    let file = folder.join("script.json");
    std::fs::write(&file, script.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

fn imported(data: &Path, calendar: &str) {
    std::fs::write(data.join("secret.ics"), EVENT).unwrap();
    let ics = data.join("secret.ics");
    let words = [
        "calendar",
        "import",
        ics.to_str().unwrap(),
        "--calendar",
        calendar,
        "--data",
        data.to_str().unwrap(),
    ];
    let output = quarterdeck(data, &words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn visitor_learns_no_title_attendee_or_id_of_appointments_that_are_not_its_own() {
    let data = tempfile::tempdir().unwrap();
    imported(data.path(), "primary");
    imported(data.path(), "personal");
    let server = Server::start(data.path(), &["--rehearsal-script", &script(data.path())]);
    let printed = r#"{ "message": "What is in the calendar?" }"#;
    let (status, _, stream) = server.ask("POST", "/api/chat", "", printed);
    assert!(status == 200 && stream.contains("2030-12-01T09:00:00Z"), "{status} {stream}");
    for secret in ["Layoffs", "ada@fram.no", "secret-uid"] {
        assert!(!stream.contains(secret), "{secret} in {stream}");
    }
    assert!(stream.contains("open to clients who have signed in"), "{stream}");
}

const LOOK: &str = r#"
//- tools/look/schema.json
{
  "toolId": "look",
  "version": "1.0.0",
  "description": "Lists what stands in the calendars on one day.",
  "category": "retrieval",
  "sideEffects": "read_only",
  "idempotent": true,
  "requiresConfirmation": false,
  "allowedModes": ["text"],
  "latencyBudgetMs": 500,
  "capabilities": ["calendar"],
  "parameters": {
    "type": "object",
    "additionalProperties": false,
    "properties": { "calendars": { "type": "array", "items": { "type": "string" }, "description": "Which." } }
  }
}
//- tools/look/guide.md
# Look

Lists events.

```json
{}
```
//- tools/look/handler.js
export async function execute({ args, context }) {
  const range = { timeMin: '2030-12-01T00:00:00Z', timeMax: '2030-12-02T00:00:00Z' };
  const events = await context.calendar.getEvents({ ...range, ...args });
  return { ok: true, data: events.map(({ summary, private: hidden }) => ({ summary, hidden: hidden ?? false })) };
}
"#;

/// What a handler in JavaScript is given on behalf of a client with these claims.
fn seen_by(claims: &Value, calendars: &[&str]) -> Value {
    let files = tree(LOOK);
    assert!(quarterdeck(files.path(), &["build"]).status.success());
    let state = files.join(".quarterdeck");
    std::fs::create_dir(&state).unwrap();
    imported(&state, "primary");
    imported(&state, "personal");
    let registry = registry(&files.join("tools"));
    run(async {
        let store = store(&files);
        let orchestrator = Orchestrator::new(RuntimeParts {
            calendar: Some(Arc::new(Calendars::local(CalendarConfig::default()).unwrap())),
            calendar_details_claim: Some("role=staff".parse().unwrap()),
            ..RuntimeParts::new(store.clone())
        });
        let claims = claims.as_object().unwrap().clone().into_iter().collect();
        let facts = Arc::new(ClientFacts { authenticated: true, claims });
        let client = Client::known("ann", facts);
        let session = orchestrator.open(client, Mode::Text, registry.snapshot()).await.unwrap();
        session.begin_turn(None);
        let call = Call::new("look", json!({ "calendars": calendars }));
        let replies = session.connect().submit(vec![call]).all().await;
        let [Reply::Answer(answer)] = &replies[..] else { panic!("one answer") };
        store.close().await.unwrap();
        json!(answer.response)["data"].clone()
    })
}

#[test]
fn details_are_for_clients_with_the_configured_claim_whatever_the_handler_asks_for() {
    let hidden = json!({ "summary": "", "hidden": true });
    let shown = json!({ "summary": "Layoffs", "hidden": false });
    for (claims, expected) in [
        (json!({}), &hidden),
        (json!({ "role": "guest" }), &hidden),
        (json!({ "role": true, "staff": true }), &hidden),
        (json!({ "role": ["guest", "staff"] }), &shown),
    ] {
        assert_eq!(seen_by(&claims, &["primary"]), json!([expected]), "{claims}");
        assert_eq!(seen_by(&claims, &["personal", "primary"]), json!([expected, expected]), "{claims}");
    }
}
