//! The server as an operator starts it and a client uses it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use expect_test::expect;
use serde_json::{Value, json};

use crate::provider::provider;
use crate::readme::check_block;

/// Some port that is free.
pub(crate) const ANYWHERE: &str = "127.0.0.1:0";

/// A server with the tools and records of this repository.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) printed: Vec<String>,
    /// What it prints next, unless that is collected.
    rest: Option<BufReader<std::process::ChildStderr>>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn command(data: &Path, listen: &str) -> Command {
    let mut command = bare(data);
    command.args(["serve", "--listen", listen, "--data"]).arg(data);
    command
}

pub(crate) fn bare(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quarterdeck"));
    command.current_dir(root());
    for variable in
        ["GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"]
    {
        command.env_remove(variable);
    }
    // Words alone, so that answers are the same with and without an installed model.
    command.env("XDG_CACHE_HOME", data);
    command.env("QUARTERDECK_TEXT__REHEARSAL__PACE_MS", "0");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

impl Server {
    pub(crate) fn start(data: &Path, options: &[&str]) -> Self {
        Self::begin(command(data, ANYWHERE).args(options))
    }

    /// Waits until it says where it listens.
    pub(crate) fn begin(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut rest = BufReader::new(child.stderr.take().unwrap());
        let mut server = Self { child, address: ANYWHERE.parse().unwrap(), printed: Vec::new(), rest: None };
        loop {
            let mut line = String::new();
            assert!(rest.read_line(&mut line).unwrap() > 0, "it ended: {:?}", server.printed);
            server.printed.push(line.trim_end().to_owned());
            if let Some((_, address)) = line.trim().split_once(" on http://") {
                server.address = address.parse().unwrap();
                server.rest = Some(rest);
                return server;
            }
        }
    }

    /// What it prints from now on.
    pub(crate) fn take_rest(&mut self) -> BufReader<std::process::ChildStderr> {
        self.rest.take().unwrap()
    }

    /// Collects what it prints from now on, so that a long log does not fill the pipe.
    pub(crate) fn collect_log(&mut self) -> std::thread::JoinHandle<String> {
        let mut rest = self.rest.take().unwrap();
        std::thread::spawn(move || {
            let mut log = String::new();
            rest.read_to_string(&mut log).unwrap();
            log
        })
    }

    /// Sends one request and reads the whole answer: status, headers, body without chunk sizes.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}",
            self.address
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body =
            if head.contains("transfer-encoding: chunked") { without_chunks(body) } else { body.to_owned() };
        (status, head.to_owned(), body)
    }

    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let (status, _, body) = self.ask("GET", path, "", "");
        (status, body)
    }

    pub(crate) fn signal(&self, signal: &str) {
        assert!(
            Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success()
        );
    }

    /// Waits for its end and gives what it said last.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.rest.take().unwrap().read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn every_number_of_calls_that_can_be_configured_is_read_and_those_beyond_are_answered() {
    let arguments: Vec<_> = (0..300).map(|number| format!(r#"{{"email":"{number}@fram.no"}}"#)).collect();
    let requests = provider(&arguments);
    let data = tempfile::tempdir().unwrap();
    let mut command = command(data.path(), ANYWHERE);
    command
        .env("OPENAI_BASE_URL", format!("http://{}/v1", requests.address))
        .env("QUARTERDECK_TEXT__MODEL", "model")
        .env("QUARTERDECK_POLICY__CALLS_PER_MESSAGE", "256");
    let server = Server::begin(&mut command);
    let (status, _, _) = server.ask("POST", "/api/chat", "", r#"{ "message": "Are these right?" }"#);
    assert_eq!(status, 200);
    requests.bodies.recv().unwrap();
    let printed: Value = serde_json::from_str(&requests.bodies.recv().unwrap()).unwrap();
    let results = printed["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool");
    let results: Vec<_> = results.map(|message| message["content"].as_str().unwrap()).collect();
    let beyond = results.iter().filter(|result| result.contains("A message may hold 256 calls.")).count();
    assert_eq!((results.len(), beyond), (300, 44));
}

fn without_chunks(body: &str) -> String {
    let mut out = String::new();
    let mut rest = body;
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        out.push_str(&after[..size]);
        rest = after[size..].trim_start_matches("\r\n");
    }
    out
}

/// The parts of an event stream.
pub(crate) fn parts(body: &str) -> Vec<Value> {
    let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

pub(crate) fn words(parts: &[Value]) -> String {
    parts
        .iter()
        .filter(|part| part["type"] == "text-delta")
        .filter_map(|part| part["delta"].as_str())
        .collect()
}

pub(crate) fn say(server: &Server, cookie: &str, body: Value) -> (String, Vec<Value>) {
    let headers = format!("content-type: application/json\r\n{cookie}");
    let (status, head, answer) = server.ask("POST", "/api/chat", &headers, &body.to_string());
    assert_eq!(status, 200, "{answer}");
    let set = head.lines().find_map(|line| line.strip_prefix("set-cookie: "));
    let cookie =
        set.map_or(cookie.to_owned(), |set| format!("cookie: {}\r\n", set.split(';').next().unwrap()));
    (cookie, parts(&answer))
}

#[test]
fn new_client_asks_books_and_confirms_before_anything_runs() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    assert_eq!(server.get("/healthz"), (200, "ok".into()));
    let (status, ready) = server.get("/readyz");
    assert_eq!(status, 200, "{ready}");

    let (cookie, answer) = say(&server, "", json!({ "message": "Who designed the Fram?" }));
    let session = answer[0]["messageMetadata"]["sessionId"].as_str().unwrap().to_owned();
    assert!(words(&answer).contains("Colin Archer"), "{}", words(&answer));
    assert!(words(&answer).contains('['), "it cites: {}", words(&answer));

    let book = "Book a meeting tomorrow at 15:00 for 30 minutes with anna@example.com about the budget";
    let (_, answer) = say(&server, &cookie, json!({ "message": book, "sessionId": session }));
    let question = answer.iter().find(|part| part["type"] == "data-confirmation").expect("it must ask");
    assert_eq!(question["data"]["tool"], "calendar_create_event");
    let token = question["data"]["token"].as_str().unwrap();
    let (status, _, envelope) = server.ask(
        "POST",
        "/api/confirmations",
        &cookie,
        &json!({ "token": token, "approve": true }).to_string(),
    );
    let envelope: Value = serde_json::from_str(&envelope).unwrap();
    assert_eq!((status, &envelope["ok"]), (200, &json!(true)), "{envelope}");
    let again = server.ask(
        "POST",
        "/api/confirmations",
        &cookie,
        &json!({ "token": token, "approve": true }).to_string(),
    );
    assert_eq!(again.0, 400, "a token is used once: {}", again.2);

    let (_, answer) =
        say(&server, &cookie, json!({ "message": "Let's talk by voice", "sessionId": session }));
    assert!(answer.iter().any(|part| part["type"] == "data-voice-session-start"), "{answer:?}");
    let (_, answer) =
        say(&server, &cookie, json!({ "message": "who is free tomorrow afternoon?", "sessionId": session }));
    assert!(words(&answer).contains("Free: "), "{}", words(&answer));

    server.signal("-TERM");
    let (code, rest) = server.ended();
    assert_eq!(code, Some(0), "{rest}");
    assert!(rest.contains("stopping") && rest.trim_end().ends_with("stopped"), "{rest}");
    let log: Vec<Value> = rest.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let is_ours = |line: &&Value| line["message"] == "session started" && line["session"] == session.as_str();
    assert!(log.iter().any(|line| is_ours(&line)), "{rest}");
    assert!(
        !rest.contains("budget") && !rest.contains("Archer") && !rest.contains(token),
        "not JSON: {rest}"
    );

    let server = Server::start(data.path(), &[]);
    assert!(
        !server.printed.iter().any(|line| line.contains("compiling")),
        "nothing changed: {:?}",
        server.printed
    );
    let (status, _, shown) = server.ask("GET", &format!("/api/sessions/{session}"), &cookie, "");
    assert_eq!(status, 200, "{shown}");
    assert!(shown.contains("Colin Archer") && shown.contains("calendar_create_event"), "{shown}");
}

#[test]
fn where_the_log_is_json_nothing_else_is_on_standard_error() {
    let data = tempfile::tempdir().unwrap();
    // A base with something to complain about.
    let kb = data.path().join("kb");
    std::fs::create_dir_all(kb.join("studio/doc")).unwrap();
    std::fs::write(kb.join("studio/doc/empty.md"), "").unwrap();
    let mut command = command(&data.path().join("data"), ANYWHERE);
    command.arg("--kb").arg(&kb).env("QUARTERDECK_LOGS__FORMAT", "json");
    let mut child = command.spawn().unwrap();
    let rest = BufReader::new(child.stderr.take().unwrap());
    let mut server =
        Server { child, address: ANYWHERE.parse().unwrap(), printed: Vec::new(), rest: Some(rest) };
    let read = |line: &str| -> Value {
        serde_json::from_str(line).unwrap_or_else(|_| panic!("this is not JSON: {line}"))
    };
    let mut log: Vec<Value> = Vec::new();
    while log.last().is_none_or(|line| line["message"] != "serving") {
        let mut line = String::new();
        assert!(server.rest.as_mut().unwrap().read_line(&mut line).unwrap() > 0, "it ended: {log:#?}");
        log.push(read(&line));
    }
    let serving = log.last().unwrap();
    assert_eq!((&serving["text"], &serving["voice"]), (&json!("rehearsal/built-in"), &json!("simulator")));
    assert!(serving["address"].as_str().unwrap().parse::<SocketAddr>().is_ok(), "{serving}");
    server.signal("-TERM");
    let (code, rest) = server.ended();
    assert_eq!(code, Some(0), "{rest}");
    log.extend(rest.lines().map(read));
    let has = |begin: &str| log.iter().any(|line| line["message"].as_str().unwrap().starts_with(begin));
    for message in ["compiling the tools", "left out: ", "stopping: ", "stopped"] {
        assert!(has(message), "{message}: {log:#?}");
    }
}

#[test]
fn without_a_command_it_serves() {
    let data = tempfile::tempdir().unwrap();
    let mut command = bare(data.path());
    command.env("QUARTERDECK_SERVER__LISTEN", ANYWHERE).env("QUARTERDECK_DATA__FOLDER", data.path());
    let server = Server::begin(&mut command);
    assert_eq!(server.get("/healthz"), (200, "ok".into()));
}

#[test]
fn operators_see_what_has_changed_since_the_registry_before() {
    let data = tempfile::tempdir().unwrap();
    let tools = data.path().join("tools");
    let made = Command::new(env!("CARGO_BIN_EXE_quarterdeck"))
        .args(["new", "word-count", "--tools"])
        .arg(&tools)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let options = ["--tools", tools.to_str().unwrap()];
    let registry = || -> Value {
        let server = Server::start(data.path(), &options);
        let (status, body) = server.get("/api/deck/registry");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    };
    let first = registry();
    assert_eq!(first["change"], Value::Null, "there was none before");
    let path = tools.join("word-count/schema.json");
    let definition = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, definition.replacen("\"version\": \"", "\"version\": \"7", 1)).unwrap();
    let second = registry();
    assert_ne!(first["version"], second["version"]);
    assert_eq!(second["change"]["previous"], first["version"]);
    assert!(!second["change"]["changes"].as_array().unwrap().is_empty(), "{}", second["change"]);
    assert_eq!(registry()["change"], second["change"], "starting again changes nothing");
    #[cfg(unix)]
    for name in ["registry.json", "registry.before.json", "tools.stamp"] {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(data.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name} is its owner's alone");
    }
}

#[test]
fn in_the_wrong_folder_it_says_so_and_makes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let output = bare(folder.path()).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(printed.contains("there is no folder tools") && printed.contains("--tools"), "{printed}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was made");
}

#[test]
fn the_readme_shows_a_real_answer() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    // A question that is answered alike by words and by meaning: a reader may have the model, and this test has not.
    let body = json!({ "messages": [{ "role": "user", "content": "What is Framheim?" }] });
    let headers = "content-type: application/json\r\n";
    let (status, _, answer) = server.ask("POST", "/v1/chat/completions", headers, &body.to_string());
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(status, 200, "{answer}");
    let command = "curl -s localhost:8080/v1/chat/completions -d '{ \"messages\":\n    [{ \"role\": \"user\", \"content\": \"What is Framheim?\" }] }' | jq -r '.choices[0].message.content'";
    let wrapped = wrap(answer["choices"][0]["message"]["content"].as_str().unwrap());
    check_block("README.md", "answer", command, &wrapped);
}

/// Lines of at most a hundred characters, as a reader would see them.
fn wrap(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().unwrap();
        if line.chars().count() + word.chars().count() > 99 {
            lines.push(word.to_owned());
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.join("\n")
}

#[test]
fn what_keeps_it_from_starting_is_told_with_the_way_out() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let second = command(data.path(), ANYWHERE).output().unwrap();
    let printed = |output: &std::process::Output| String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(second.status.code(), Some(2));
    assert!(printed(&second).contains("another quarterdeck uses"), "{}", printed(&second));

    let other = tempfile::tempdir().unwrap();
    let taken = server.address.to_string();
    let third = command(other.path(), &taken).output().unwrap();
    expect!["cannot listen on ADDRESS; stop what listens there, or choose another address with `--listen`"]
        .assert_eq(
            printed(&third)
                .replace(&taken, "ADDRESS")
                .lines()
                .find_map(|line| line.strip_prefix("error: "))
                .and_then(|line| line.split(": ").next())
                .unwrap_or(&printed(&third)),
        );
}

#[test]
fn a_script_makes_the_model_say_exactly_what_a_test_wants() {
    let data = tempfile::tempdir().unwrap();
    let script = data.path().join("script.json");
    let replies = json!([
        { "text": "One moment. ", "calls": [{ "name": "validate_email", "arguments": { "email": "nansen@fram.no" } }] },
        { "text": "It is fine." },
        { "text": "She was bui", "error": "cut" },
        { "text": "Again." },
    ]);
    std::fs::write(&script, replies.to_string()).unwrap();
    let server = Server::start(&data.path().join("data"), &["--rehearsal-script", script.to_str().unwrap()]);
    let (cookie, answer) = say(
        &server,
        "",
        json!({ "id": "c", "messages": [{ "id": "m", "role": "user", "parts": [{ "type": "text", "text": "Check" }] }] }),
    );
    assert_eq!(words(&answer), "One moment. It is fine.");
    let (_, answer) = say(
        &server,
        &cookie,
        json!({ "id": "c", "messages": [{ "id": "n", "role": "user", "parts": [{ "type": "text", "text": "And?" }] }] }),
    );
    let error = answer.iter().find(|part| part["type"] == "error").unwrap();
    let error: Value = serde_json::from_str(error["errorText"].as_str().unwrap()).unwrap();
    assert_eq!(error["type"], "TRANSIENT");
    assert_eq!(error["retryable"], true);
    let (_, answer) = say(
        &server,
        &cookie,
        json!({ "id": "c", "messages": [{ "id": "o", "role": "user", "parts": [{ "type": "text", "text": "Well?" }] }] }),
    );
    assert_eq!(words(&answer), "Again.", "the session goes on");
}

#[test]
fn words_are_on_the_way_before_the_answer_is_whole() {
    let data = tempfile::tempdir().unwrap();
    let script = data.path().join("script.json");
    std::fs::write(
        &script,
        json!([{ "repeat": { "text": " word", "times": 20, "everyMs": 50 } }]).to_string(),
    )
    .unwrap();
    let server = Server::start(&data.path().join("data"), &["--rehearsal-script", script.to_str().unwrap()]);
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let body = r#"{"message":"Go"}"#;
    let (address, length) = (server.address, body.len());
    write!(stream, "POST /api/chat HTTP/1.1\r\nhost: {address}\r\ncontent-length: {length}\r\n\r\n{body}")
        .unwrap();
    let (mut seen, mut reads_with_words, mut buffer) = (String::new(), 0, [0_u8; 65_536]);
    while !seen.contains("[DONE]") {
        let read = stream.read(&mut buffer).unwrap();
        let piece = String::from_utf8_lossy(&buffer[..read]).into_owned();
        reads_with_words += usize::from(piece.contains("text-delta"));
        seen.push_str(&piece);
    }
    assert_eq!(seen.matches("text-delta").count(), 20);
    // A busy machine may bring two together, but words that were kept back would come in one piece.
    assert!(reads_with_words >= 10, "{reads_with_words} pieces");
}

#[test]
fn a_shutdown_lets_an_answer_finish() {
    let data = tempfile::tempdir().unwrap();
    let script = data.path().join("script.json");
    std::fs::write(
        &script,
        json!([{ "repeat": { "text": " word", "times": 40, "everyMs": 25 } }]).to_string(),
    )
    .unwrap();
    let server = Server::start(&data.path().join("data"), &["--rehearsal-script", script.to_str().unwrap()]);
    let began = Instant::now();
    let answer = std::thread::scope(|scope| {
        let answer = scope.spawn(|| say(&server, "", json!({ "message": "Go" })).1);
        std::thread::sleep(Duration::from_millis(300));
        server.signal("-INT");
        answer.join().unwrap()
    });
    assert_eq!(words(&answer).matches("word").count(), 40, "the whole answer");
    assert_eq!(answer.last().unwrap()["type"], "finish");
    let (code, _) = server.ended();
    assert_eq!(code, Some(0));
    assert!(began.elapsed() < Duration::from_secs(10));
}
