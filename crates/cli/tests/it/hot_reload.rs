//! `serve --watch`: what is saved is in the next answer, and what is broken is not.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::ChildStderr;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serve::{self, ANYWHERE, Server, say};
use crate::small_site::Site;

/// Generous, because a busy machine must not fail a test.
const TIMEOUT: Duration = Duration::from_secs(60);

fn handler(count: u32) -> String {
    format!(
        "export function execute() {{ return {{ ok: true, data: {{ count: {count}, unit: 'words' }} }}; }}\n"
    )
}

/// A site whose model calls the tool in every turn.
fn site() -> Site {
    let site = Site::new();
    let call = json!({ "calls": [{ "name": "word_count", "arguments": { "text": "a b" } }] });
    let script = json!({ "order": "process", "atEnd": "again", "replies": [call, { "text": "Counted." }] });
    site.files.write("script.json", script.to_string());
    site.files.write("prompts/core.md", "You count.\n");
    site.files.write("quarterdeck.toml", "");
    site.files
        .write("kb/ship.md", "---\nid: doc:ship\ntype: doc\ntitle: The ship\n---\nThe ship has two masts.\n");
    site.files.write("tools/word-count/handler.js", handler(1));
    site
}

fn watch(site: &Site) -> (Server, Receiver<String>) {
    let mut command = serve::command(&site.data(), ANYWHERE);
    for (flag, path) in [
        ("--tools", "tools"),
        ("--kb", "kb"),
        ("--config", "quarterdeck.toml"),
        ("--rehearsal-script", "script.json"),
    ] {
        command.arg(flag).arg(site.files.join(path));
    }
    command.arg("--watch").env("QUARTERDECK_PROMPTS__FOLDER", site.files.join("prompts"));
    let mut server = Server::begin(&mut command);
    let lines = printed(server.take_rest());
    wait_for(&lines, "  watch ");
    (server, lines)
}

fn printed(rest: BufReader<ChildStderr>) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || rest.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    lines
}

fn wait_for(lines: &Receiver<String>, part: &str) -> String {
    let until = Instant::now() + TIMEOUT;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let line = lines.recv_timeout(left).unwrap_or_else(|_| panic!("{part:?} was not printed"));
        if line.contains(part) {
            return line;
        }
    }
}

/// The events of `/api/watch`.
struct Feed(BufReader<TcpStream>);

impl Feed {
    fn open(server: &Server) -> Self {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        write!(stream, "GET /api/watch HTTP/1.1\r\nhost: {}\r\n\r\n", server.address).unwrap();
        let mut feed = Self(BufReader::new(stream));
        assert!(feed.next_line().contains("200"));
        feed
    }

    fn next_line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.0.read_line(&mut line).unwrap() > 0, "the feed ended");
        line
    }

    fn wait_for(&mut self, is_meant: impl Fn(&Value) -> bool) -> Value {
        let (until, mut seen) = (Instant::now() + TIMEOUT, Vec::new());
        loop {
            // The server sends a comment every few seconds.
            assert!(Instant::now() < until, "only these came: {seen:#?}");
            let line = self.next_line();
            let Some(data) = line.strip_prefix("data: ") else { continue };
            let status: Value = serde_json::from_str(data).unwrap();
            if is_meant(&status) {
                return status;
            }
            seen.push(status);
        }
    }
}

/// What the tool answered in a turn.
fn count(parts: &[Value]) -> &Value {
    let output = parts.iter().find(|part| part["type"] == "tool-output-available");
    &output.unwrap_or_else(|| panic!("no call was answered: {parts:?}"))["output"]["data"]["count"]
}

fn message(id: usize) -> Value {
    let parts = json!([{ "type": "text", "text": "How many?" }]);
    json!({ "id": "chat", "messages": [{ "id": format!("m{id}"), "role": "user", "parts": parts }] })
}

#[test]
#[expect(clippy::print_stderr, reason = "the measured times are shown when someone looks")]
fn a_saved_handler_is_in_the_next_message_of_the_same_conversation() {
    let site = site();
    let (server, lines) = watch(&site);
    let (cookie, answer) = say(&server, "", message(0));
    assert_eq!(count(&answer), 1);
    let session = answer[0]["messageMetadata"]["sessionId"].clone();
    let mut feed = Feed::open(&server);

    let mut times = Vec::new();
    for save in 2..=21 {
        let since = Instant::now();
        site.files.write("tools/word-count/handler.js", handler(save));
        feed.wait_for(|status| status["reloads"] == save - 1);
        times.push(since.elapsed());
        let (_, answer) = say(&server, &cookie, message(save as usize));
        assert_eq!(count(&answer), save);
        assert_eq!(answer[0]["messageMetadata"]["sessionId"], session, "it is the same session");
    }
    times.sort();
    eprintln!(
        "from the save to live: median {:?}, worst {:?}",
        times[times.len() / 2],
        times[times.len() - 1]
    );
    assert!(times[times.len() / 2] < Duration::from_secs(5), "{times:?}");
    wait_for(&lines, "~ word_count changed");

    let (status, versions) = server.get("/api/deck/versions");
    let versions: Value = serde_json::from_str(&versions).unwrap();
    assert_eq!(status, 200);
    let loaded = versions["versions"].as_array().unwrap().len();
    assert!(loaded <= 2, "what no session has is dropped: {versions:#}");
}

#[test]
fn a_broken_save_keeps_the_old_tools_and_is_reported_until_it_is_corrected() {
    let site = site();
    let (server, lines) = watch(&site);
    let mut feed = Feed::open(&server);
    let first = feed.wait_for(|_| true)["registry"].clone();
    site.files.write("tools/word-count/handler.js", "export const nothing = 1;\n");
    let status = feed.wait_for(|status| status["problems"].as_array().is_some_and(|list| !list.is_empty()));
    let text = status["problems"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("QD") && text.contains("word-count/handler.js"), "{text}");
    assert_eq!((&status["problems"][0]["source"], &status["registry"]), (&json!("tools"), &first));
    wait_for(&lines, "word-count/handler.js");
    wait_for(&lines, "not live");
    let (cookie, answer) = say(&server, "", message(0));
    assert_eq!(count(&answer), 1, "the old handler answers");

    site.files.write("tools/word-count/handler.js", handler(7));
    let status = feed.wait_for(|status| status["problems"] == json!([]));
    assert_ne!(status["registry"], first);
    wait_for(&lines, "live (tools");
    let (_, answer) = say(&server, &cookie, message(1));
    assert_eq!(count(&answer), 7);
    assert_eq!(server.get("/readyz").0, 200);
}

#[test]
fn a_tool_whose_native_handler_is_not_compiled_in_is_not_served() {
    let site = site();
    let (server, _lines) = watch(&site);
    let mut feed = Feed::open(&server);
    let path = site.files.path().join("tools/word-count");
    site.files.write("tools/word-count/handler.rs", "pub async fn execute() {}\n");
    fs::remove_file(path.join("handler.js")).unwrap();
    let status = feed.wait_for(|status| status["problems"].as_array().is_some_and(|list| !list.is_empty()));
    assert_eq!(status["reloads"], 0, "{status}");
    let (_, answer) = say(&server, "", message(0));
    assert_eq!(count(&answer), 1);
}

#[test]
fn a_save_by_rename_and_one_in_two_steps_are_served_whole() {
    let site = site();
    let (server, _lines) = watch(&site);
    let mut feed = Feed::open(&server);
    let path = site.files.path().join("tools/word-count/handler.js");
    let next = site.files.path().join("tools/word-count/handler.js.tmp");
    fs::write(&next, handler(2)).unwrap();
    fs::rename(&next, &path).unwrap();
    let status = feed.wait_for(|status| status["reloads"] != 0);
    assert_eq!(status["problems"], json!([]));
    let (cookie, answer) = say(&server, "", message(0));
    assert_eq!(count(&answer), 2);

    // Half of it is sound too, and must not be served.
    let whole = format!("{}export const half = 1;\n", handler(4));
    let mut open = fs::OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
    open.write_all(handler(3).as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let (_, answer) = say(&server, &cookie, message(1));
    assert_eq!(count(&answer), 2, "the save is not complete");
    open.set_len(0).unwrap();
    std::io::Seek::rewind(&mut open).unwrap();
    open.write_all(whole.as_bytes()).unwrap();
    drop(open);
    feed.wait_for(|status| status["reloads"] == 2);
    let (_, answer) = say(&server, &cookie, message(2));
    assert_eq!(count(&answer), 4);

    // Removed and written again, as some editors do.
    fs::remove_file(&path).unwrap();
    fs::write(&path, handler(5)).unwrap();
    feed.wait_for(|status| status["reloads"] == 3);
    let (_, answer) = say(&server, &cookie, message(3));
    assert_eq!(count(&answer), 5);
}

#[test]
fn prompts_records_and_configuration_are_followed_too() {
    let site = site();
    let (server, lines) = watch(&site);
    let mut feed = Feed::open(&server);
    let changed = |part: &'static str| {
        move |status: &Value| {
            let lines = status["changes"].as_array().unwrap();
            lines.iter().any(|line| line.as_str().unwrap().contains(part))
        }
    };
    site.files.write("prompts/core.md", "You count twice.\n");
    feed.wait_for(changed("core.md changed"));
    site.files.write("prompts/core.md", "");
    let status = feed.wait_for(|status| !status["problems"].as_array().unwrap().is_empty());
    assert_eq!(status["problems"][0]["source"], "prompts");
    site.files.write("prompts/core.md", "You count again.\n");
    feed.wait_for(changed("core.md changed"));

    site.files
        .write("kb/mast.md", "---\nid: doc:mast\ntype: doc\ntitle: The mast\n---\nThe mast is of pine.\n");
    feed.wait_for(changed("2 records"));
    site.files.write("kb/mast.md", "---\nid: [broken\n");
    let status = feed.wait_for(|status| !status["problems"].as_array().unwrap().is_empty());
    assert_eq!(status["problems"][0]["source"], "knowledge", "{status}");
    fs::remove_file(site.files.path().join("kb/mast.md")).unwrap();
    feed.wait_for(changed("1 record"));

    site.files.write("quarterdeck.toml", "[page]\ntitle = \"Fram\"\n");
    feed.wait_for(changed("page settings changed"));
    let (_, page) = server.get("/api/page");
    assert_eq!(serde_json::from_str::<Value>(&page).unwrap()["title"], "Fram");
    site.files.write("quarterdeck.toml", "[server]\nmax_connections = 77\n");
    feed.wait_for(changed("server.max_connections takes effect when the server is started again"));
    site.files.write("quarterdeck.toml", "[serve]\n");
    let status = feed.wait_for(|status| !status["problems"].as_array().unwrap().is_empty());
    assert_eq!(status["problems"][0]["source"], "configuration");
    wait_for(&lines, "configuration: not live");
}

#[test]
fn a_locked_server_does_not_follow_its_folder() {
    let site = site();
    let said = site.refused(&["--watch", "--locked"]);
    assert!(said.contains("`--watch`") && said.contains("help:"), "{said}");
}

#[test]
fn without_watch_the_server_says_once_that_its_folder_is_newer() {
    let site = site();
    let mut server = site.start(&[]);
    let lines = printed(server.take_rest());
    site.files.write("tools/word-count/handler.js", handler(2));
    let said = wait_for(&lines, "files have changed since they were loaded");
    assert!(said.contains("quarterdeck serve --watch"), "{said}");
    // The next change is said again, and the first one only once.
    site.files.write("tools/word-count/handler.js", handler(3));
    wait_for(&lines, "files have changed since they were loaded");
    server.signal("-TERM");
    let rest: Vec<String> = lines.iter().collect();
    assert!(!rest.iter().any(|line| line.contains("files have changed")), "{rest:?}");
}
