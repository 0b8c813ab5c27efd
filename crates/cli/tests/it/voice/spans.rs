//! The spans of spoken conversations, as a collector gets them.

use std::time::Duration;

use serde_json::{Value, json};

use super::page::Page;
use super::pipeline::{QUESTION, cookie, pipeline};
use super::provider::Provider;
use super::server::Site;
use super::speech_engines::SpeechEngines;
use crate::serve::Server;
use crate::telemetry::receiver::{Receiver, assert_sound, of_name, text};
use crate::telemetry::variables;

/// How the requests to the model ended.
fn finish_reasons(spans: &[Value]) -> Vec<&str> {
    let requests = of_name(spans, "chat built-in").into_iter();
    requests.filter_map(|span| span["attributes"]["gen_ai.response.finish_reasons"][0].as_str()).collect()
}

/// Every span belongs to this conversation.
fn assert_conversation(spans: &[Value], page: &Page) {
    for span in spans.iter().filter(|span| !text(span, "name").starts_with("retrieval")) {
        assert_eq!(span["attributes"]["gen_ai.conversation.id"], page.ready["sessionId"], "{span:#}");
        assert_eq!(span["attributes"]["quarterdeck.channel"], "voice", "{span:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn spoken_question_has_spans_of_its_wait_its_requests_and_its_calls() {
    let Some(receiver) = Receiver::start() else { return };
    let engines = SpeechEngines::start(QUESTION);
    let data = tempfile::tempdir().unwrap();
    let mut server = Server::begin(pipeline(data.path(), &engines).envs(variables(&receiver.url())));
    drop(server.collect_log());
    let mut page = Page::dial(server.address, cookie(&server), json!({})).await;
    page.speak(Duration::from_millis(1_500)).await;
    page.wait_for_answer("Colin Archer").await;
    page.wait_for("turn_complete").await;

    let spans = receiver.wait_for("span", |spans| {
        finish_reasons(spans).contains(&"stop") && !of_name(spans, "invoke_agent").is_empty()
    });
    assert_sound(&spans);
    assert_conversation(&spans, &page);
    let waits = of_name(&spans, "invoke_agent quarterdeck");
    assert_eq!(waits.len(), 1, "{spans:#?}");
    let wait = &waits[0]["attributes"];
    assert!(wait["quarterdeck.voice.first_audio"].as_f64().unwrap() > 0.0, "{wait}");
    assert_eq!(wait["gen_ai.output.type"], "speech");
    assert_eq!(of_name(&spans, "execute_tool kb_search").len(), 1, "{spans:#?}");
    let reasons = finish_reasons(&spans);
    let calls = of_name(&spans, "execute_tool").len();
    assert_eq!(
        reasons,
        [vec!["tool_calls"; calls], vec!["stop"]].concat(),
        "one request for each call: {spans:#?}"
    );
    receiver.wait_for("metric", |metrics| {
        ["quarterdeck.voice.first_audio.duration", "gen_ai.client.operation.duration"]
            .iter()
            .all(|name| !of_name(metrics, name).is_empty())
    });
    assert!(!receiver.everything().contains("Archer"), "{}", receiver.everything());
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_connection_of_a_live_model_is_a_span_with_its_error() {
    let Some(receiver) = Receiver::start() else { return };
    let provider = Provider::with_turns(&json!([
        { "begins": "text", "steps": [{ "say": "Hello." }] },
        { "begins": "text", "containing": "there", "steps": [
            { "wait": 100 },
            { "drop": true, "on": 1 },
            { "say": "Still here." },
        ] },
    ]))
    .await;
    let mut site = Site::new(&provider.address);
    for (name, value) in variables(&receiver.url()) {
        site.set(name, value);
    }
    // Outages are kept whatever the sampling.
    site.set("QUARTERDECK_TELEMETRY__SAMPLING_PERCENT", "0");
    let server = site.serve();
    let mut page = Page::connect(&server).await;
    page.exchange("Good day", "Hello.").await;
    page.exchange("Are you there?", "Still here.").await;
    let spans = receiver.wait_for("span", |spans| !spans.is_empty());
    assert_sound(&spans);
    assert_conversation(&spans, &page);
    let [outage] = of_name(&spans, "reconnect")[..] else { panic!("{spans:#?}") };
    assert_eq!((text(outage, "kind"), &outage["error"]), ("CLIENT", &json!(true)), "{outage:#}");
    server.stop();
}
