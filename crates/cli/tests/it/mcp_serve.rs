//! `quarterdeck mcp serve`: a client at the pipes, with the data folder and with a running server.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::serve::{ANYWHERE, Server, command as server_command};

const OLD: &str = "2025-11-25";
const NEW: &str = "2026-07-28";

/// A client that started its server itself. Whatever the server writes must be a message.
struct PipeClient {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    requests: i64,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// With the tools and records of this repository.
fn mcp_serve(cache: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quarterdeck"));
    command.current_dir(root()).args(["mcp", "serve"]).args(options);
    // Words alone, so that a model that is installed changes nothing.
    command.env("XDG_CACHE_HOME", cache);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

impl PipeClient {
    fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output, requests: 0 }
    }

    fn in_folder(data: &Path, options: &[&str]) -> Self {
        Self::start(mcp_serve(data, &["--data", data.to_str().unwrap()]).args(options))
    }

    fn at(server: &Server, cache: &Path) -> Self {
        Self::start(&mut mcp_serve(cache, &["--url", &format!("http://{}", server.address)]))
    }

    fn write(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "it ended");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The next answer; what the server tells by itself may come at any time.
    fn read_answer(&mut self) -> Value {
        loop {
            let message = self.read();
            if message.get("method").is_none() {
                return message;
            }
        }
    }

    /// Sends a request without waiting for its answer.
    fn send(&mut self, method: &str, params: Value) -> i64 {
        self.requests += 1;
        let message = json!({ "jsonrpc": "2.0", "id": self.requests, "method": method, "params": params });
        self.write(&message.to_string());
        self.requests
    }

    fn answer_to(&mut self, id: i64) -> Value {
        loop {
            let message = self.read();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer_to(id)
    }

    /// A request of the newer generation.
    fn ask_alone(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": NEW,
            "io.modelcontextprotocol/clientInfo": { "name": "pipe", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        self.ask(method, params)
    }

    fn shake_hands(&mut self) -> Value {
        let info = json!({ "name": "pipe", "version": "1" });
        let hello = json!({ "protocolVersion": OLD, "capabilities": {}, "clientInfo": info });
        let answer = self.ask("initialize", hello);
        self.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer
    }

    /// Closes its end. Returns what was still answered, and the exit code.
    fn leave(mut self) -> (Vec<Value>, Option<i32>) {
        drop(self.input.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        let messages = rest.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        // News of the server, which a slow machine has time for, is no answer.
        let answers = messages.filter(|message| message.get("id").is_some()).collect();
        (answers, self.child.wait().unwrap().code())
    }
}

impl Drop for PipeClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn call(email: &str) -> Value {
    json!({ "name": "validate_email", "arguments": { "email": email } })
}

/// What a client does that has shaken hands.
fn check_with_handshake(client: &mut PipeClient) {
    let hello = client.shake_hands();
    assert_eq!(hello["result"]["serverInfo"]["name"], "quarterdeck", "{hello}");
    assert_eq!(hello["result"]["protocolVersion"], OLD);
    let tools = client.ask("tools/list", json!({}));
    let tools = tools["result"]["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "kb_search"));
    let answer = client.ask("tools/call", call("nansen@fram.no"));
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let listed = client.ask("resources/list", json!({}));
    let uris = listed["result"]["resources"].as_array().unwrap().iter();
    let uris: Vec<_> = uris.map(|resource| resource["uri"].as_str().unwrap()).collect();
    assert!(uris.contains(&"kb://studio/person/roald-amundsen"), "{listed}");
    assert!(!uris.iter().any(|uri| uri.starts_with("kb://personal/")), "{listed}");
    let refused = client.ask("resources/list", json!({ "cursor": "somewhere" }));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    check_reading(&mut |client, method, params| client.ask(method, params), client);
}

/// What a client of either generation reads.
fn check_reading(ask: &mut dyn FnMut(&mut PipeClient, &str, Value) -> Value, client: &mut PipeClient) {
    let read = ask(client, "resources/read", json!({ "uri": "kb://studio/person/roald-amundsen" }));
    let text = read["result"]["contents"][0]["text"].as_str().unwrap_or_default();
    assert!(text.starts_with("# Roald Amundsen"), "{read}");
    for uri in ["kb://personal/person/jonas-liksomsen", "kb://studio/person/unknown"] {
        let refused = ask(client, "resources/read", json!({ "uri": uri }));
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let templates = ask(client, "resources/templates/list", json!({}));
    let template = &templates["result"]["resourceTemplates"][0]["uriTemplate"];
    assert_eq!(template, "kb://{namespace}/{type}/{slug}", "{templates}");
    let context = json!({ "arguments": { "namespace": "studio", "type": "person" } });
    let argument = json!({ "name": "slug", "value": "roald" });
    let completion = json!({ "ref": { "type": "ref/resource", "uri": template }, "argument": argument, "context": context });
    let completed = ask(client, "completion/complete", completion);
    assert_eq!(completed["result"]["completion"]["values"], json!(["roald-amundsen"]), "{completed}");
    let prompts = ask(client, "prompts/list", json!({}));
    let names = prompts["result"]["prompts"].as_array().unwrap().iter().map(|prompt| &prompt["name"]);
    assert!(names.clone().any(|name| name == "kb_search"), "{prompts}");
    // It is for voice alone.
    assert!(!names.clone().any(|name| name == "end_voice_session"), "{prompts}");
    let guide = ask(client, "prompts/get", json!({ "name": "kb_search", "arguments": { "query": "ice" } }));
    let guide = guide["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(
        guide.starts_with("# Search the knowledge base") && guide.contains(r#"{"query":"ice"}"#),
        "{guide}"
    );
    let unknown = ask(client, "prompts/get", json!({ "name": "end_voice_session" }));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}

/// What a client does that has not.
fn check_without_handshake(client: &mut PipeClient) {
    let found = client.ask_alone("server/discover", json!({}));
    let capabilities = &found["result"]["capabilities"];
    for capability in ["tools", "resources", "prompts", "completions"] {
        assert!(capabilities[capability].is_object(), "{capability}: {found}");
    }
    let answer = client.ask_alone("tools/call", call("nansen@fram.no"));
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    let listed = client.ask_alone("resources/list", json!({}));
    assert_eq!(
        (&listed["result"]["cacheScope"], &listed["result"]["ttlMs"]),
        (&json!("private"), &json!(60_000))
    );
    check_reading(&mut |client, method, params| client.ask_alone(method, params), client);
}

#[test]
fn mcp_client_at_the_pipe_uses_tools_records_and_guides_in_both_generations() {
    let data = tempfile::tempdir().unwrap();
    for check in [check_with_handshake, check_without_handshake] {
        let mut client = PipeClient::in_folder(data.path(), &[]);
        check(&mut client);
        assert_eq!(client.leave(), (Vec::new(), Some(0)));
    }
}

#[test]
fn mcp_client_that_closes_its_end_at_once_gets_its_answers() {
    let data = tempfile::tempdir().unwrap();
    let mut client = PipeClient::in_folder(data.path(), &[]);
    client.shake_hands();
    for number in 0..10 {
        client.send("tools/call", call(&format!("{number}@fram.no")));
    }
    let (answers, code) = client.leave();
    assert_eq!((answers.len(), code), (10, Some(0)));
    assert!(answers.iter().all(|answer| answer["result"]["isError"] == false), "{answers:?}");
    // And one that says nothing.
    assert_eq!(PipeClient::in_folder(data.path(), &[]).leave(), (Vec::new(), Some(0)));
}

#[test]
fn lines_that_are_no_messages_are_refused_and_the_mcp_connection_goes_on() {
    let data = tempfile::tempdir().unwrap();
    let mut client = PipeClient::in_folder(data.path(), &[]);
    client.shake_hands();
    client.write("hello");
    assert_eq!(client.read_answer()["error"]["code"], -32700);
    client.write(&format!(
        r#"{{"jsonrpc":"2.0","id":"deep","method":"ping","params":{}{}}}"#,
        "[".repeat(90),
        "]".repeat(90)
    ));
    let refused = client.read_answer();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("deep"), &json!(-32600)));
    client.write(r#"{"jsonrpc":"2.0","id":"twice","method":"tools/call","params":{"name":"a","name":"b"}}"#);
    assert_eq!(client.read_answer()["id"], "twice");
    client.write(&"x".repeat(3 << 20));
    assert_eq!(client.read_answer()["error"]["code"], -32600);
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    assert_eq!(client.leave().1, Some(0));
}

#[test]
fn mcp_client_that_has_signed_in_reads_its_own_records() {
    let data = tempfile::tempdir().unwrap();
    let mut client = PipeClient::in_folder(data.path(), &["--client", "tuva"]);
    let read = client.ask_alone("resources/read", json!({ "uri": "kb://personal/person/jonas-liksomsen" }));
    let contents = &read["result"]["contents"][0];
    assert!(contents["text"].as_str().unwrap().starts_with("# Jonas Liksomsen"), "{read}");
}

#[test]
fn data_folder_of_a_running_server_is_refused_and_the_way_to_it_is_named() {
    let data = tempfile::tempdir().unwrap();
    let _server = Server::start(data.path(), &[]);
    let mut command = mcp_serve(data.path(), &["--data", data.path().to_str().unwrap()]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]), "{said}");
    assert!(said.contains("another quarterdeck uses"), "{said}");
    assert!(said.contains("`quarterdeck mcp serve --url http://127.0.0.1:8080`"), "{said}");
}

#[test]
fn messages_are_passed_on_to_a_running_server_in_both_generations() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    for check in [check_with_handshake, check_without_handshake] {
        let mut client = PipeClient::at(&server, data.path());
        check(&mut client);
        assert_eq!(client.leave(), (Vec::new(), Some(0)));
    }
}

#[test]
fn mcp_session_outlives_a_restart_of_the_server_behind_the_pipe() {
    let data = tempfile::tempdir().unwrap();
    let mut server = Server::start(data.path(), &[]);
    let address = server.address;
    let mut client = PipeClient::at(&server, data.path());
    client.shake_hands();
    assert_eq!(client.ask("tools/call", call("a@fram.no"))["result"]["isError"], false);
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let refused = client.ask("tools/call", call("b@fram.no"));
    assert!(refused["error"]["message"].as_str().unwrap().contains("quarterdeck serve"), "{refused}");
    let _server = Server::begin(&mut server_command(data.path(), &address.to_string()));
    let answer = client.ask("tools/call", call("c@fram.no"));
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert_eq!(client.leave().1, Some(0));
}

#[test]
fn server_that_wants_a_key_gets_the_one_that_is_named() {
    let data = tempfile::tempdir().unwrap();
    let mut command = server_command(data.path(), ANYWHERE);
    command
        .env("QUARTERDECK_API_KEY_PIPE", "a-key-of-some-length")
        .env("QUARTERDECK_AUTH__REQUIRED__MCP", "true");
    let server = Server::begin(&mut command);
    let mut client = PipeClient::at(&server, data.path());
    let refused = client.ask_alone("tools/list", json!({}));
    assert!(refused["error"]["message"].as_str().unwrap().contains("--key-env"), "{refused}");
    let url = format!("http://{}", server.address);
    let mut command = mcp_serve(data.path(), &["--url", &url, "--key-env", "PIPE_KEY"]);
    let mut client = PipeClient::start(command.env("PIPE_KEY", "a-key-of-some-length"));
    let read = client.ask_alone("resources/read", json!({ "uri": "kb://studio/person/roald-amundsen" }));
    assert!(read["result"]["contents"].is_array(), "{read}");
}
