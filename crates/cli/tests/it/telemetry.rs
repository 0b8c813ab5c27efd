//! Telemetry of a running server, received with OpenTelemetry's own classes. `scripts/otlp-receiver` installs them.

mod across_services;
mod confirmed_call;
pub(crate) mod receiver;
mod recording_service;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serve::{ANYWHERE, Server, command};
use receiver::{Receiver, assert_sound, of_name, text};

const SECRET: &str = "planted.secret.4711@fram.no";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A model that does this in one turn after the other, whatever is said to it.
fn script(folder: &Path, turns: &[Value]) -> String {
    let replies: Vec<_> =
        turns.iter().flat_map(|calls| [json!({ "calls": calls }), json!({ "text": "Done." })]).collect();
    let file = folder.join("script.json");
    let script = json!({ "replies": replies, "atEnd": "again" });
    std::fs::write(&file, script.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

fn look_up() -> Value {
    json!({ "name": "validate_email", "arguments": { "email": SECRET } })
}

fn search() -> Value {
    json!({ "name": "kb_search", "arguments": { "query": "Fram" } })
}

fn unknown() -> Value {
    json!({ "name": "sell_4711_secret", "arguments": { "to": SECRET } })
}

fn sending_to(data: &Path, endpoint: &str, turns: &[Value]) -> Command {
    let mut command = command(data, ANYWHERE);
    command.args(["--rehearsal-script", &script(data, turns)]).envs(variables(endpoint));
    command
}

/// What makes a server send to a collector, soon.
pub(crate) fn variables(endpoint: &str) -> [(&'static str, &str); 3] {
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),
        ("QUARTERDECK_TELEMETRY__INTERVAL_SECONDS", "1"),
        ("QUARTERDECK_TELEMETRY__METRICS_INTERVAL_SECONDS", "1"),
    ]
}

fn say(server: &Server, headers: &str) {
    let (status, _, stream) = server.ask("POST", "/api/chat", headers, r#"{ "message": "Go on." }"#);
    assert!(status == 200 && stream.contains("Done."), "{status} {stream}");
}

fn counter(server: &Server, name: &str) -> u64 {
    let (_, metrics) = server.get("/metrics?format=prometheus");
    let line = metrics.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn turn_arrives_as_one_trace_by_the_conventions_and_without_content() {
    let Some(receiver) = Receiver::start() else { return };
    let data = tempfile::tempdir().unwrap();
    let turns = [json!([search(), look_up(), unknown()])];
    let mut server = Server::begin(&mut sending_to(data.path(), &receiver.url(), &turns));
    let log = server.collect_log();
    say(&server, &format!("traceparent: {PARENT}\r\n"));

    let spans = receiver.wait_for("span", |spans| !of_name(spans, "invoke_agent").is_empty());
    assert_sound(&spans);
    for span in &spans {
        assert_eq!((text(span, "service"), text(span, "scope")), ("quarterdeck", "quarterdeck"));
        assert_eq!(text(span, "trace"), &PARENT[3..35], "the client's trace goes on: {span:#}");
    }
    let turn = of_name(&spans, "invoke_agent")[0];
    assert_eq!(text(turn, "parent"), &PARENT[36..52]);
    let requests = of_name(&spans, "chat");
    assert_eq!(requests.len(), 2, "{spans:#?}");
    let reasons: Vec<_> =
        requests.iter().map(|span| &span["attributes"]["gen_ai.response.finish_reasons"]).collect();
    assert_eq!(reasons, [&json!(["tool_calls"]), &json!(["stop"])]);
    for span in requests.iter().chain(&of_name(&spans, "execute_tool")) {
        assert_eq!(span["parent"], turn["id"], "{span:#}");
    }
    assert!(requests[0]["attributes"]["gen_ai.response.time_to_first_chunk"].is_f64());

    let tool = |name: &str| of_name(&spans, &format!("execute_tool {name}"))[0];
    assert_eq!(tool("kb_search")["attributes"]["quarterdeck.policy.decision"], "allowed");
    assert_eq!(tool("kb_search")["attributes"]["gen_ai.tool.type"], "datastore");
    let retrieval = of_name(&spans, "retrieval")[0];
    assert_eq!(retrieval["parent"], tool("kb_search")["id"]);
    let refused = tool("unknown_tool");
    assert_eq!(refused["error"], true);
    assert_eq!(refused["attributes"]["quarterdeck.policy.decision"], "refused");
    assert_eq!(refused["attributes"]["quarterdeck.policy.rule"], "known_tool");
    assert_eq!(refused["events"][0]["name"], "quarterdeck.gate");

    let metrics = receiver.wait_for("metric", |metrics| {
        ["gen_ai.client.operation.duration", "gen_ai.client.token.usage", "quarterdeck.tool.duration"]
            .iter()
            .all(|name| !of_name(metrics, name).is_empty())
    });
    assert_eq!(of_name(&metrics, "gen_ai.client.operation.duration")[0]["unit"], "s");
    let lines = receiver.wait_for("log", |lines| !lines.is_empty());
    assert!(lines.iter().all(|line| line["body"].is_string()), "{lines:#?}");

    server.signal("-TERM");
    drop(log.join());
    for secret in ["4711", "Go on."] {
        assert!(!receiver.everything().contains(secret), "{secret} was sent");
    }
}

#[test]
fn content_that_is_switched_on_hides_what_is_sensitive() {
    let Some(receiver) = Receiver::start() else { return };
    let data = tempfile::tempdir().unwrap();
    let turns = [json!([search(), look_up(), unknown()])];
    let mut command = sending_to(data.path(), &receiver.url(), &turns);
    let server = Server::begin(command.env("QUARTERDECK_TELEMETRY__CONTENT", "true"));
    say(&server, "");
    let spans = receiver.wait_for("span", |spans| !of_name(spans, "invoke_agent").is_empty());
    let arguments = |name: &str| {
        let span = of_name(&spans, &format!("execute_tool {name}"))[0];
        text(&span["attributes"], "gen_ai.tool.call.arguments").to_owned()
    };
    assert!(arguments("kb_search").contains(r#""query":"Fram""#), "{}", arguments("kb_search"));
    assert!(arguments("validate_email").contains("[hidden]"), "{}", arguments("validate_email"));
    assert!(!receiver.everything().contains("4711"), "{}", receiver.everything());
}

#[test]
fn refusals_are_kept_whatever_the_sampling_and_quiet_turns_are_not() {
    let Some(receiver) = Receiver::start() else { return };
    let data = tempfile::tempdir().unwrap();
    let turns = [json!([search()]), json!([search(), unknown()])];
    let mut command = sending_to(data.path(), &receiver.url(), &turns);
    let server = Server::begin(command.env("QUARTERDECK_TELEMETRY__SAMPLING_PERCENT", "0"));
    say(&server, "");
    let begun = Instant::now();
    while counter(&server, "quarterdeck_telemetry_spans_sampled_out_total") == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "the quiet turn is not left out");
        std::thread::sleep(Duration::from_millis(100));
    }
    say(&server, "");
    let spans = receiver.wait_for("span", |spans| !of_name(spans, "invoke_agent").is_empty());
    assert_eq!(of_name(&spans, "invoke_agent").len(), 1, "{spans:#?}");
    assert_eq!(of_name(&spans, "execute_tool").len(), 2, "the whole trace is kept: {spans:#?}");
}

#[test]
fn dead_collector_delays_no_turn_and_a_counter_tells_what_was_dropped() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let dead = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    // It accepts connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_url = format!("http://{}", silent.local_addr().unwrap());
    let turns = [json!([search(), look_up()])];
    let time = |endpoint: Option<&str>| {
        let data = tempfile::tempdir().unwrap();
        let mut command = sending_to(data.path(), endpoint.unwrap_or_default(), &turns);
        command.env("QUARTERDECK_TELEMETRY__TIMEOUT_SECONDS", "1");
        let server = Server::begin(&mut command);
        let mut times: Vec<_> = (0..20)
            .map(|_| {
                let begun = Instant::now();
                say(&server, "");
                begun.elapsed()
            })
            .collect();
        times.sort();
        (times[10], server, data)
    };
    let (without, ..) = time(None);
    for endpoint in [&dead, &silent_url] {
        let (with, server, _data) = time(Some(endpoint.as_str()));
        assert!(with < without + Duration::from_millis(100), "{with:?} with {endpoint}, {without:?} without");
        let begun = Instant::now();
        while counter(&server, "quarterdeck_telemetry_spans_dropped_total") == 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing is counted for {endpoint}");
            std::thread::sleep(Duration::from_millis(200));
        }
        assert_eq!(counter(&server, "quarterdeck_telemetry_spans_exported_total"), 0);
        // The collector does not hold up the end either.
        let begun = Instant::now();
        server.signal("-TERM");
        assert_eq!(server.ended().0, Some(0));
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }
}
