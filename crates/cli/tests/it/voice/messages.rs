//! Messages that a handler in JavaScript sends to its client, in a call and in a written conversation.

use std::io::{Read, Write};
use std::net::TcpStream;

use quarterdeck_contracts::PROTOCOL_MESSAGE_TYPES;
use serde_json::{Value, json};

use super::page::Page;
use super::provider::Provider;
use super::server::{Server, Site, TIMEOUT};
use super::tools::add;

/// Tries every word of the protocols, and reports in a message of its own what it was told.
const TELL: &str = r#"
export async function execute({ args, context }) {
  const refused = {};
  for (const type of JSON.parse(args.what)) {
    try {
      await context.messaging.send({ type, sessionId: 'forged' });
    } catch (error) {
      refused[type] = `${error.name} ${error.code}: ${error.message}`;
    }
  }
  await context.messaging.send({ type: 'ice_report', data: { type: 'ready' }, list: [1, null, 'x'], refused });
  await context.messaging.send({ type: 'message', data: 1 });
  return { ok: true, data: null };
}
"#;

fn words() -> Vec<String> {
    let spell = |word: &str| [word.to_owned(), word.replace('_', "-"), word.to_uppercase()];
    let mut words: Vec<_> = PROTOCOL_MESSAGE_TYPES.into_iter().flat_map(spell).collect();
    words.sort();
    words.dedup();
    words
}

/// The message that must arrive, with an error for each word of the protocols.
fn check_report(report: &Value) {
    assert_eq!(report["data"], json!({ "type": "ready" }), "{report}");
    assert_eq!(report["list"], json!([1, null, "x"]), "{report}");
    let refused = report["refused"].as_object().unwrap();
    assert_eq!(refused.len(), words().len(), "{report}");
    for (word, error) in refused {
        let error = error.as_str().unwrap();
        assert!(error.starts_with("CapabilityError INVALID_ARGUMENT: messages of type"), "{word}: {error}");
        assert!(error.contains("choose another name"), "{word}: {error}");
    }
}

fn site(provider: &str) -> Site {
    let site = Site::new(provider);
    add(site.tools.path(), "tell", &json!({ "sideEffects": "none" }), TELL);
    site
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_own_messages_arrive_in_a_call_as_they_were_sent() {
    let words = json!(words()).to_string();
    let provider = Provider::with_turns(&json!([
        { "begins": "text", "steps": [
            { "call": { "id": "function-call-1", "name": "tell", "args": { "what": words } } },
            { "await": "answers" },
            { "say": "That is all." },
        ] },
    ]))
    .await;
    let site = site(&provider.address);
    let server = site.serve();
    let mut page = Page::connect(&server).await;
    page.exchange("Tell me", "That is all.").await;
    assert_eq!(page.results(), ["ok"]);
    let of_type = |kind: &str| -> Vec<_> { page.messages.iter().filter(|it| it["type"] == kind).collect() };
    let [report] = of_type("ice_report")[..] else { panic!("{:#?}", page.messages) };
    assert_eq!(report.as_object().unwrap().len(), 4, "nothing is added: {report}");
    check_report(report);
    assert_eq!(of_type("message"), [&json!({ "type": "message", "data": 1 })]);
    assert!(page.messages.iter().all(|it| it["sessionId"] != "forged"), "{:#?}", page.messages);
    server.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_own_messages_arrive_in_a_written_conversation_as_data_parts() {
    let site = site("http://127.0.0.1:9");
    let call = json!({ "name": "tell", "arguments": { "what": json!(words()).to_string() } });
    let replies = json!([{ "calls": [call] }, { "text": "That is all." }]);
    let script = site.tools.join("_script.json");
    std::fs::write(&script, json!({ "replies": replies }).to_string()).unwrap();
    let server = site.serve_with(&["--rehearsal-script", script.to_str().unwrap()]);
    let parts = parts(&server);
    let data = |name: &str| -> Vec<_> {
        parts.iter().filter(|part| part["type"] == name).map(|part| part["data"].clone()).collect()
    };
    let [report] = &data("data-ice-report")[..] else { panic!("{parts:#?}") };
    assert_eq!(report.as_object().unwrap().len(), 3, "the type is the part's: {report}");
    check_report(report);
    assert_eq!(data("data-message"), [json!({ "data": 1 })]);
    assert!(!json!(parts).to_string().contains("forged"), "{parts:#?}");
    server.stop();
}

/// The parts of the answer to a message.
fn parts(server: &Server) -> Vec<Value> {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let body = r#"{ "message": "Tell me" }"#;
    let (host, length) = (server.address, body.len());
    let head =
        format!("POST /api/chat HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}");
    write!(stream, "{head}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let parts = answer.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok());
    parts.collect()
}
