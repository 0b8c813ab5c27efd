//! Secrets and private hosts of tools, through the commands and the server as an operator runs them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use quarterdeck_testkit::{Tree, tree};
use serde_json::{Value, json};

use crate::serve::Server;
use crate::terminal::{command, stdout_json};

const KEY: &str = "planted-KEY/7f3a91+c0ffee";
const TENANT: &str = "planted-TENANT-5d2b8e44";

/// A server that repeats every request in its answer, in several forms.
struct Echo {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Echo {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = requests.clone();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let Ok(mut socket) = socket else { return };
                let kept = kept.clone();
                std::thread::spawn(move || answer(&mut socket, &kept));
            }
        });
        Self { port, requests }
    }

    fn last(&self) -> String {
        self.requests.lock().unwrap().last().cloned().unwrap_or_default()
    }
}

fn answer(socket: &mut TcpStream, kept: &Mutex<Vec<String>>) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match socket.read(&mut buffer) {
            Ok(read) if read > 0 => request.extend_from_slice(&buffer[..read]),
            _ => return,
        }
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    let status = if request.contains("/denied") { "403 Forbidden" } else { "200 OK" };
    let body = json!({ "you sent": request, "encoded": "cGxhbnRlZC1LRVkvN2YzYTkxK2MwZmZlZQ==" }).to_string();
    kept.lock().unwrap().push(request);
    let length = body.len();
    let _ = write!(
        socket,
        "HTTP/1.1 {status}\r\nx-key: {KEY}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
}

/// A handler that passes on everything it can get hold of: to its answer, the log, the audit log, its store, the client
/// and an error.
const TELLTALE: &str = r#"
export async function execute({ args, context }) {
  const response = await fetch(args.url, { method: 'POST', body: 'x' });
  const seen = { url: response.url, headers: [...response.headers], text: await response.text(), keys: Object.keys(globalThis) };
  const all = JSON.stringify([seen, context]);
  console.log('seen', all);
  context.progress(all.slice(0, 2000));
  context.audit.log('seen', seen);
  await context.store.put('seen', all);
  await context.messaging.send({ type: 'seen', seen });
  if (!response.ok) throw new Error(`refused: ${all}`);
  return { ok: true, data: seen };
}
"#;

/// A tool with two secrets for `localhost`.
fn site(fields: &Value) -> Tree {
    let files = tree("");
    let mut definition = json!({
        "toolId": "telltale", "version": "1.0.0", "description": "Asks a server, and tells everything.",
        "category": "action", "sideEffects": "writes", "idempotent": false, "requiresConfirmation": false,
        "allowedModes": ["text", "voice"], "latencyBudgetMs": 3000, "timeoutMs": 20_000, "capabilities": ["store"],
        "network": ["localhost"],
        "secrets": {
            "API_KEY": { "host": "localhost", "header": "Authorization", "format": "Bearer {}" },
            "TENANT": { "host": "localhost", "query": "tenant" },
        },
        "parameters": { "type": "object", "additionalProperties": false, "required": ["url"],
            "properties": { "url": { "type": "string", "description": "Where." } } },
    });
    for (name, value) in fields.as_object().unwrap() {
        definition[name] = value.clone();
    }
    files.write("tools/telltale/schema.json", definition.to_string());
    files.write("tools/telltale/guide.md", "# Telltale\n\nAsks a server. Use it when testing.\n");
    files.write("tools/telltale/handler.js", TELLTALE);
    files
}

/// Both secrets, one from a variable and one from a file, and a private host.
fn configure(files: &Tree, port: u16) {
    files.write("secrets/tenant", format!("{TENANT}\n"));
    files.write(
        "quarterdeck.toml",
        format!(
            "[tools.telltale]\nprivate_hosts = [\"localhost:{port}\"]\nsecrets.API_KEY = {{ env = \"TELLTALE_KEY\" }}\n\
             secrets.TENANT = {{ file = \"secrets/tenant\" }}\n"
        ),
    );
}

fn call(files: &Tree, url: &str, flags: &[&str]) -> (Value, String) {
    let args = json!({ "url": url }).to_string();
    let mut command = command(files.path());
    command.args(["call", "telltale", &args]).args(flags).env("TELLTALE_KEY", KEY);
    let output = command.output().unwrap();
    (stdout_json(&output), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// No part of a secret, however it is written.
fn has_no_secret(place: &str, text: &str) {
    let lower = text.to_lowercase();
    for part in ["planted-key", "7f3a91", "planted-tenant", "5d2b8e44", "cgxhbnrlzc1lrvk", "cgxhbnrlzc1urk"] {
        if let Some(at) = lower.find(part) {
            let around: String =
                lower.chars().skip(lower[..at].chars().count().saturating_sub(60)).take(160).collect();
            panic!("{part} in {place}: …{around}…");
        }
    }
}

#[test]
fn a_call_uses_the_configured_secrets_and_shows_none() {
    let echo = Echo::start();
    let files = site(&json!({}));
    configure(&files, echo.port);
    for path in ["ok", "denied"] {
        let (envelope, printed) = call(&files, &format!("http://localhost:{}/{path}", echo.port), &[]);
        let sent = echo.last();
        assert!(sent.contains(&format!("authorization: Bearer {KEY}")) && sent.contains(TENANT), "{sent}");
        assert_eq!(envelope["ok"], path == "ok", "{envelope}");
        assert!(printed.contains("[hidden]"), "{printed}");
        has_no_secret("the envelope", &envelope.to_string());
        has_no_secret("the terminal", &printed);
    }
}

#[test]
fn an_error_of_a_call_says_whether_the_secret_or_the_host_is_missing() {
    let echo = Echo::start();
    let files = site(&json!({}));
    let url = format!("http://localhost:{}/ok", echo.port);
    let opened = format!("localhost:{}", echo.port);
    // Neither is configured: the secret is looked for first.
    let (envelope, printed) = call(&files, &url, &["--private-host", &opened]);
    assert_eq!(envelope["error"]["type"], "AUTH", "{envelope}");
    let message = envelope["error"]["message"].as_str().unwrap();
    assert!(message.contains("the secret API_KEY is not configured for this tool"), "{message}");
    assert!(printed.contains("[tools.telltale.secrets]"), "{printed}");
    // Without secrets in its definition, the host is what is missing.
    let files = site(&json!({ "secrets": {} }));
    let (envelope, printed) = call(&files, &url, &[]);
    assert_eq!(envelope["error"]["type"], "TRANSIENT", "{envelope}");
    let message = envelope["error"]["message"].as_str().unwrap();
    assert!(message.contains("`private_hosts` under [tools.telltale]"), "{message}");
    assert!(
        printed.contains(&format!("private_hosts = [\"{opened}\"] under [tools.telltale] opens it")),
        "{printed}"
    );
    let (envelope, _) = call(&files, &url, &["--private-host", &opened]);
    assert_eq!(envelope["ok"], true, "{envelope}");
}

#[test]
fn cases_and_calls_take_recorded_answers_and_send_nothing() {
    let echo = Echo::start();
    let files = site(&json!({ "network": ["api.example.com"], "secrets": {
        "API_KEY": { "host": "api.example.com", "header": "Authorization" },
    } }));
    let url = "https://api.example.com/v1/ice?day=1";
    let fetch = json!([
        { "url": url, "method": "POST", "headers": { "x-kind": "recorded" }, "body": { "thickness": 2 } },
        { "url": "https://api.example.com/away", "method": "POST", "unreachable": true },
    ]);
    let expect_text =
        json!({ "ok": true, "data": { "text": "{\"thickness\":2}", "headers": [["x-kind", "recorded"]] } });
    let unknown = json!({ "ok": false, "error": { "type": "TRANSIENT" } });
    let cases = json!([
        { "name": "reads the answer", "given": { "fetch": fetch }, "args": { "url": url }, "expect": expect_text },
        { "name": "is told of a lost host", "given": { "fetch": fetch }, "args": { "url": "https://api.example.com/away" }, "expect": unknown },
        { "name": "is told of a gap", "given": { "fetch": fetch }, "args": { "url": "https://api.example.com/gap" },
          "expect": { "ok": false, "error": { "message": "no answer to POST https://api.example.com/gap is recorded; add it to `given.fetch`" } } },
        { "name": "reaches no other host", "given": { "fetch": fetch }, "args": { "url": "https://other.example/" },
          "expect": { "ok": false, "error": { "type": "PERMANENT" } } },
    ]);
    files.write("tools/telltale/recorded.case.json", cases.to_string());
    let output = command(files.path()).arg("test").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.ends_with("4 passed, 0 failed\n"), "{text}");
    files.write("answers.json", fetch.to_string());
    let (envelope, _) = call(&files, url, &["--fetch", "answers.json"]);
    assert_eq!(envelope["data"]["text"], r#"{"thickness":2}"#, "{envelope}");
    assert_eq!(echo.last(), "");
}

/// Examples and cases are run by anyone, with approval: they never act with an operator's credentials.
#[test]
fn tests_of_a_tool_use_a_local_stand_in_without_the_real_secrets() {
    let echo = Echo::start();
    let files = site(&json!({}));
    configure(&files, echo.port);
    let url = format!("http://localhost:{}/ok", echo.port);
    let case = json!({ "name": "asks the stand-in", "args": { "url": url }, "expect": { "ok": true } });
    files.write("tools/telltale/local.case.json", case.to_string());
    let output = command(files.path()).arg("test").env("TELLTALE_KEY", KEY).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let sent = echo.last();
    assert!(sent.contains("authorization: Bearer stand-in-for-API_KEY"), "{sent}");
    has_no_secret("the request", &sent);
}

#[test]
fn what_is_configured_for_a_tool_and_does_not_fit_it_is_warned_about() {
    let files = site(&json!({}));
    files.write(
        "quarterdeck.toml",
        "[tools.telltales]\nprivate_hosts = [\"localhost:1\"]\n[tools.telltale]\n\
         private_hosts = [\"vault.internal:8200\", \"10.0.0.5:80\"]\nsecrets.OTHER = { env = \"TELLTALE_KEY\" }\n",
    );
    let server = serve(&files);
    let printed = server.printed.join("\n");
    for warning in [
        "[tools.telltales] is configured, and there is no tool telltales",
        "[tools.telltale.secrets] has OTHER, which `secrets` in the tool's schema.json does not name",
        "[tools.telltale] opens vault.internal:8200, which `network` in the tool's schema.json does not name",
        "the secret API_KEY of telltale is not configured, so its requests to localhost fail",
    ] {
        assert!(printed.contains(warning), "{printed}");
    }
    assert!(!printed.contains("10.0.0.5"), "an address has no name: {printed}");
    has_no_secret("the terminal", &printed);
}

/// A server that logs everything it can.
fn serve(files: &Tree) -> Server {
    let mut command = command(files.path());
    command.args(["serve", "--listen", "127.0.0.1:0", "--kb", "no-kb", "--data", "state"]);
    if files.join("script.json").is_file() {
        command.args(["--rehearsal-script", "script.json"]);
    }
    for variable in
        ["GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"]
    {
        command.env_remove(variable);
    }
    command.env("XDG_CACHE_HOME", files.path()).env("QUARTERDECK_TEXT__REHEARSAL__PACE_MS", "0");
    command.env("TELLTALE_KEY", KEY).env("QUARTERDECK_LOGS__LEVEL", "trace");
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
    Server::begin(command.stderr(std::process::Stdio::piped()))
}

/// Everything below a folder, as bytes.
fn all_files(folder: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        match path.is_dir() {
            true => all_files(&path, found),
            false => found.push((path.clone(), std::fs::read(&path).unwrap())),
        }
    }
}

#[test]
fn planted_secrets_are_found_nowhere() {
    let echo = Echo::start();
    let files = site(&json!({}));
    configure(&files, echo.port);
    let call_to = |path: &str| {
        let url = format!("http://localhost:{}/{path}", echo.port);
        json!({ "name": "telltale", "arguments": { "url": url } })
    };
    let replies =
        json!([{ "calls": [call_to("ok")] }, { "calls": [call_to("denied")] }, { "text": "That is all." }]);
    files.write("script.json", json!({ "replies": replies }).to_string());
    let mut server = serve(&files);
    // The log at this level is more than a pipe holds.
    let log = server.collect_log();
    let (status, _, stream) = server.ask("POST", "/api/chat", "", r#"{ "message": "Tell me" }"#);
    assert_eq!(status, 200, "{stream}");
    assert!(echo.last().contains("/denied") && echo.last().contains(KEY), "{}", echo.last());
    assert!(stream.contains("[hidden]") && stream.contains("That is all."), "{stream}");
    has_no_secret("the stream", &stream);
    for path in [
        "/",
        "/deck",
        "/openapi.json",
        "/metrics",
        "/metrics?format=prometheus",
        "/healthz",
        "/readyz",
        "/api/me",
        "/api/tools",
        "/api/tools/telltale",
        "/api/deck/overview",
        "/api/deck/series",
        "/api/deck/sessions",
        "/api/deck/audit",
        "/api/deck/registry",
    ] {
        let (status, body) = server.get(path);
        assert_eq!(status, 200, "{path}: {body}");
        has_no_secret(path, &body);
    }
    let trail = server.get("/api/deck/audit").1;
    assert!(trail.contains("[hidden]"), "the handler's own event is in the audit log: {trail}");
    let body = json!({ "tool": "telltale", "args": call_to("ok")["arguments"] }).to_string();
    let (_, _, played) =
        server.ask("POST", "/api/deck/playground", "content-type: application/json\r\n", &body);
    has_no_secret("the playground", &played);
    server.signal("-TERM");
    let code = server.child.wait().unwrap();
    assert!(code.success(), "{code}");
    let log = server.printed.join("\n") + &log.join().unwrap();
    assert!(log.contains("[hidden]"), "the handler's own line is in the log");
    has_no_secret("the log", &log);
    let config = command(files.path()).arg("config").env("TELLTALE_KEY", KEY).output().unwrap();
    let listing = String::from_utf8_lossy(&config.stdout).into_owned();
    assert!(listing.contains("tools.telltale.secrets.API_KEY"), "{listing}");
    has_no_secret("`quarterdeck config`", &listing);
    let mut written = Vec::new();
    all_files(&files.join("state"), &mut written);
    all_files(&files.join("tools"), &mut written);
    let names: Vec<_> =
        written.iter().map(|(path, _)| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert!(
        names.iter().any(|name| name == "quarterdeck.db")
            && names.iter().any(|name| name.starts_with("audit")),
        "{names:?}"
    );
    let store = written.iter().find(|(path, _)| path.ends_with("quarterdeck.db")).unwrap();
    assert!(String::from_utf8_lossy(&store.1).contains("[hidden]"), "what the handler stored is in the file");
    for (path, bytes) in written {
        has_no_secret(&path.display().to_string(), &String::from_utf8_lossy(&bytes));
    }
}
