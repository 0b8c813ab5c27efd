//! The chat agent with a real language model on a real server: SmolLM2-135M on llama.cpp, which `scripts/language-model`
//! installs. It is too small to be wise, so only the shape of what comes is asserted.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serve::{ANYWHERE, Server, command};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// llama.cpp's server with the model. It does not stop for a signal that it can catch.
struct Llama {
    process: Child,
    port: u16,
}

impl Llama {
    fn start(context: u32) -> Option<Self> {
        let folder = root().join("target/language-model");
        if !folder.join(".holds").exists() {
            let required = std::env::var("QUARTERDECK_REQUIRE_CLIENTS").is_ok_and(|value| value == "1");
            assert!(!required, "a language model is required here; `scripts/language-model` installs it");
            #[expect(
                clippy::print_stderr,
                reason = "the reader of the result must know that nothing was tried"
            )]
            {
                eprintln!("SKIPPED: there is no language model; `scripts/language-model` installs one");
            }
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(folder.join("bin/python"));
        command.arg(root().join("tests/language-model/server.py")).arg(folder.join("model.gguf"));
        command.args([port.to_string(), context.to_string()]);
        let process =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let server = Self { process, port };
        let begin = Instant::now();
        while !server.is_ready() {
            assert!(begin.elapsed() < Duration::from_secs(120), "llama.cpp does not start");
            std::thread::sleep(Duration::from_millis(100));
        }
        Some(server)
    }

    fn is_ready(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        let mut answer = String::new();
        write!(stream, "GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").is_ok()
            && stream.read_to_string(&mut answer).is_ok()
            && answer.starts_with("HTTP/1.1 200")
    }

    /// Our server with it as the model, and these of the shipped tools.
    fn serve(&self, site: &Path, tools: &[&str], settings: &[(&str, &str)]) -> Server {
        let mut command = command(&site.join("data"), ANYWHERE);
        command.args(["--tools"]).arg(shipped(site, tools));
        command.env("OPENAI_BASE_URL", format!("http://127.0.0.1:{}/v1", self.port));
        command.env("QUARTERDECK_TEXT__MODEL", "smollm2");
        command.envs(settings.iter().copied());
        Server::begin(&mut command)
    }
}

impl Drop for Llama {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Copies of shipped tools; all of them where none is named.
fn shipped(site: &Path, names: &[&str]) -> PathBuf {
    let tools = root().join("tools");
    if names.is_empty() {
        return tools;
    }
    for name in names {
        let to = site.join("tools").join(name);
        fs::create_dir_all(&to).unwrap();
        for file in fs::read_dir(tools.join(name)).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
    }
    site.join("tools")
}

/// The parts of the answer to one message.
fn say(server: &Server, text: &str) -> Vec<Value> {
    let message = json!({ "id": "m1", "role": "user", "parts": [{ "type": "text", "text": text }] });
    let body = json!({ "id": "chat-1", "messages": [message] }).to_string();
    let (status, _, body) = server.ask("POST", "/api/chat", "content-type: application/json\r\n", &body);
    assert_eq!(status, 200, "{body}");
    let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn of_type<'p>(parts: &'p [Value], kind: &str) -> Vec<&'p Value> {
    parts.iter().filter(|part| part["type"] == kind).collect()
}

#[test]
fn a_whole_turn_of_a_real_model_with_shipped_tools() {
    let Some(llama) = Llama::start(4_096) else { return };
    let site = tempfile::tempdir().unwrap();
    let short = site.path().join("prompts");
    fs::create_dir_all(&short).unwrap();
    fs::write(short.join("core.md"), "You answer briefly, with tools.\n").unwrap();
    let tools = ["linkedin-lookup", "format-datetime"];
    let settings = [
        ("QUARTERDECK_PROMPTS__FOLDER", short.to_str().unwrap()),
        ("QUARTERDECK_TEXT__GUIDE_TOKENS", "0"),
        ("QUARTERDECK_TEXT__ROUNDS", "2"),
    ];
    let mut server = llama.serve(site.path(), &tools, &settings);
    let log = server.collect_log();
    let parts = say(&server, "Which date is 2026-01-13T09:30:00Z?");
    drop(server);
    let log = log.join().unwrap();
    let (calls, errors) = (of_type(&parts, "tool-input-available"), of_type(&parts, "error"));
    assert!(errors.is_empty(), "{errors:?}\n{log}");
    assert_eq!(of_type(&parts, "start").len(), 1);
    let words = of_type(&parts, "text-delta").len();
    assert!(words > 0 || !calls.is_empty(), "{parts:?}\n{log}");
    let answered = |call: &&Value| {
        parts.iter().any(|part| {
            let is_end = part["type"].as_str().is_some_and(|kind| kind.starts_with("tool-output"));
            is_end && part["toolCallId"] == call["toolCallId"]
        })
    };
    assert!(calls.iter().all(answered), "every call has one answer: {parts:?}");
    let usage = &of_type(&parts, "finish")[0]["messageMetadata"]["usage"];
    assert!(usage["inputTokens"].as_u64() > Some(100) && usage["outputTokens"].as_u64() > Some(0), "{usage}");
    assert!(!log.contains("refuses a declaration"), "the shipped tools are declared as it takes them: {log}");
}

#[test]
fn a_real_server_with_a_small_context_takes_every_shipped_tool_and_tells_its_limit() {
    let Some(llama) = Llama::start(512) else { return };
    let site = tempfile::tempdir().unwrap();
    // In all of JSON Schema first: the server refuses a pattern, and is asked again without it.
    for (dialect, is_refused) in [("openai", true), ("compatible", false)] {
        let settings = [("QUARTERDECK_TEXT__OPENAI__DIALECT", dialect)];
        let mut server = llama.serve(site.path(), &[], &settings);
        let log = server.collect_log();
        let parts = say(&server, "Hello");
        drop(server);
        let log = log.join().unwrap();
        // A schema is refused before anything is counted, so a context that is too small says that all were taken.
        let errors = of_type(&parts, "error");
        assert!(
            errors.iter().any(|error| error.to_string().contains("takes 512 tokens and was sent")),
            "{parts:?}"
        );
        assert!(log.contains("context is too small") && log.contains("\"can_shorten\":true"), "{log}");
        assert_eq!(log.contains("the server refuses a declaration"), is_refused, "{log}");
        let told = log.contains(r#"linkedin_lookup","keyword":"pattern""#);
        assert_eq!(told, is_refused, "{log}");
    }
}
