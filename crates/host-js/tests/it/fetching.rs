//! `fetch`: what it brings home, and where it does not go.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use quarterdeck_contracts::Outcome;
use quarterdeck_contracts::handler::Handler;
use quarterdeck_host_js::{FetchConfig, HostConfig, JsHost};
use quarterdeck_outbound::Addresses;
use quarterdeck_testkit::FakeContext;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::world::{TEN_SECONDS, config, data, load_files, within};

/// Answers every request by its path, on a port of its own.
async fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = Vec::new();
                let mut buffer = [0; 4096];
                // Small requests arrive whole.
                let read = socket.read(&mut buffer).await.unwrap_or(0);
                request.extend_from_slice(&buffer[..read]);
                let request = String::from_utf8_lossy(&request).into_owned();
                let response = respond(&request, port);
                let _ = socket.write_all(&response).await;
            });
        }
    });
    port
}

fn respond(request: &str, port: u16) -> Vec<u8> {
    let path = request.split(' ').nth(1).unwrap_or("/");
    let found = |location: &str| {
        format!(
            "HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        )
        .into_bytes()
    };
    let ok = |body: &str| {
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nx-kind: test\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len()).into_bytes()
    };
    match path {
        "/json" => ok(r#"{"a":[1,"é"]}"#),
        "/echo" => ok(request),
        "/missing" => {
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\nconnection: close\r\n\r\ngone".to_vec()
        }
        "/moved" => found("/json"),
        "/around" => found("/around"),
        "/inside" => found(&format!("http://127.0.0.2:{port}/json")),
        "/undeclared" => found("http://elsewhere.example/json"),
        "/file" => found("file:///etc/passwd"),
        "/large" => ok(&"x".repeat(2_000_000)),
        "/endless" => {
            let mut response = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_vec();
            response.resize(3_000_000, b'x');
            response
        }
        _ => ok("fine"),
    }
}

/// A host that may dial 127.0.0.1, as if it were public, and otherwise what its rule says.
fn fetching(addresses: Addresses) -> JsHost {
    JsHost::new(HostConfig { fetch: FetchConfig { addresses, ..FetchConfig::default() }, ..config() })
        .unwrap()
}

fn only_the_test_server() -> Addresses {
    Addresses::Where(Arc::new(|address: IpAddr| address == IpAddr::from([127, 0, 0, 1]) || address.is_ipv6()))
}

/// A handler that fetches `args.url` and says what came of it.
fn fetcher(host: &JsHost, network: &[&str]) -> Arc<dyn Handler> {
    let source = "export async function execute({ args }) {
        try {
          const response = await fetch(args.url, args.init);
          return { ok: true, data: { status: response.status, ok: response.ok, kind: response.headers.get('X-Kind'), text: await response.text() } };
        } catch (error) { return { ok: true, data: { name: error.name, code: error.code, message: error.message } }; }
      }";
    load_files(host, &[("tool/handler.js", source)], network).unwrap()
}

async fn fetch(handler: &Arc<dyn Handler>, url: &str) -> Value {
    data(handler, json!({ "url": url })).await
}

#[tokio::test]
async fn a_declared_host_is_reached() {
    let port = server().await;
    let host = fetching(only_the_test_server());
    let handler = fetcher(&host, &["localhost", "127.0.0.1"]);
    let answer = fetch(&handler, &format!("http://localhost:{port}/json")).await;
    assert_eq!(answer, json!({ "status": 200, "ok": true, "kind": "test", "text": "{\"a\":[1,\"é\"]}" }));
    assert_eq!(fetch(&handler, &format!("http://127.0.0.1:{port}/moved")).await["status"], 200);
    let missing = fetch(&handler, &format!("http://LOCALHOST:{port}/missing")).await;
    assert_eq!((&missing["status"], &missing["ok"]), (&json!(404), &json!(false)));

    let init = json!({ "method": "post", "headers": { "X-Mine": "1", "Host": "evil.example", "Content-Length": "5" }, "body": "hello" });
    let echo = data(&handler, json!({ "url": format!("http://localhost:{port}/echo"), "init": init })).await;
    let text = echo["text"].as_str().unwrap().to_lowercase();
    assert!(text.starts_with("post /echo") && text.contains("x-mine: 1") && text.contains("hello"), "{text}");
    assert!(!text.contains("evil.example"), "{text}");
}

#[tokio::test]
async fn a_request_that_may_change_something_counts_as_an_effect_once_it_was_sent() {
    let port = server().await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let host = fetching(only_the_test_server());
    let handler = fetcher(&host, &["localhost"]);
    let tried = [
        ("GET", port, "/json", false),
        ("POST", port, "/echo", true),
        ("DELETE", port, "/missing", true),
        // Its answer is never whole.
        ("POST", port, "/large", true),
        ("POST", closed, "/echo", false),
    ];
    for (method, port, path, is_effect) in tried {
        let context = FakeContext::new();
        let args = json!({ "url": format!("http://localhost:{port}{path}"), "init": { "method": method } });
        handler.run(args, context.clone(), TEN_SECONDS).await.unwrap();
        assert_eq!(context.recorded().reached_outside, is_effect, "{method} {path}");
    }
}

#[tokio::test]
async fn bodies_come_in_every_shape_once() {
    let port = server().await;
    let host = fetching(only_the_test_server());
    let source = "export async function execute({ args }) {
        const [one, two, three] = await Promise.all([fetch(args.url), fetch(new URL(args.url)), fetch(args.url)]);
        await three.text();
        let twice; try { await three.text(); } catch (error) { twice = error.name; }
        return { ok: true, data: { json: await one.json(), bytes: (await two.arrayBuffer()).byteLength, twice } };
      }";
    let handler = load_files(&host, &[("tool/handler.js", source)], &["localhost"]).unwrap();
    let answer = data(&handler, json!({ "url": format!("http://localhost:{port}/json") })).await;
    assert_eq!(answer, json!({ "json": { "a": [1, "é"] }, "bytes": 14, "twice": "TypeError" }));
}

#[tokio::test]
async fn private_addresses_are_refused_however_they_are_written() {
    let port = server().await;
    let host = fetching(Addresses::Public);
    let hosts = [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:7f00:1]",
        "169.254.169.254",
        "10.0.0.1",
        "[fe80::1]",
        "[fd00::1]",
        "[64:ff9b::7f00:1]",
        "0.0.0.0",
    ];
    let handler = fetcher(&host, &hosts);
    for written in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0177.0.0.1",
        "0x7f.1",
        "0x7f000001",
        "2130706433",
        "127.1",
        "169.254.169.254",
        "10.0.0.1",
        "[fe80::1]",
        "[fd00::1]",
        "[64:ff9b::127.0.0.1]",
        "0.0.0.0",
        "0",
    ] {
        let answer = fetch(&handler, &format!("http://{written}:{port}/json")).await;
        let code = if written == "localhost" { "NOT_AVAILABLE" } else { "NOT_DECLARED" };
        assert_eq!(answer["code"], code, "{written}: {answer}");
    }
}

#[tokio::test]
async fn redirects_are_checked_like_first_requests() {
    let port = server().await;
    let host = fetching(only_the_test_server());
    let handler = fetcher(&host, &["localhost", "127.0.0.2"]);
    let inside = fetch(&handler, &format!("http://localhost:{port}/inside")).await;
    assert_eq!(inside["message"], "localhost redirects to where handlers may not go", "{inside}");
    let undeclared = fetch(&handler, &format!("http://localhost:{port}/undeclared")).await;
    assert!(undeclared["message"].as_str().unwrap().contains("`network` does not name"), "{undeclared}");
    let file = fetch(&handler, &format!("http://localhost:{port}/file")).await;
    assert_eq!(file["code"], "INVALID_ARGUMENT", "{file}");
    let around = fetch(&handler, &format!("http://localhost:{port}/around")).await;
    assert!(around["message"].as_str().unwrap().contains("too many redirects"), "{around}");
}

#[tokio::test]
async fn what_was_not_declared_or_is_not_http_is_refused() {
    let host = fetching(Addresses::Any);
    let handler = fetcher(&host, &["example.com"]);
    for (url, code) in [
        ("http://other.example/", "NOT_DECLARED"),
        ("http://sub.example.com/", "NOT_DECLARED"),
        ("ftp://example.com/", "INVALID_ARGUMENT"),
        ("file:///etc/passwd", "INVALID_ARGUMENT"),
        ("data:text/plain,x", "INVALID_ARGUMENT"),
        ("nonsense", "INVALID_ARGUMENT"),
    ] {
        assert_eq!(fetch(&handler, url).await["code"], code, "{url}");
    }
    let letting = load_files(&host, &[("tool/handler.js", "export const execute = async () => ({ ok: true, data: (await fetch('http://other.example/')).status });")], &[]).unwrap();
    let answer = letting.run(json!({}), FakeContext::new(), TEN_SECONDS).await.unwrap();
    let Outcome::Failure(error) = answer.outcome else { panic!("{answer:?}") };
    assert_eq!(error.kind.as_str(), "PERMANENT");
    assert!(error.message.contains("\"network\": [\"other.example\"]"), "{}", error.message);
}

#[tokio::test]
async fn large_and_slow_responses_end() {
    let port = server().await;
    let host = fetching(only_the_test_server());
    let handler = fetcher(&host, &["localhost"]);
    for path in ["large", "endless"] {
        let answer = fetch(&handler, &format!("http://localhost:{port}/{path}")).await;
        assert!(answer["message"].as_str().unwrap().contains("larger than"), "{answer}");
    }
    // A server that accepts and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://localhost:{}/", silent.local_addr().unwrap().port());
    let error = handler.run(json!({ "url": url }), FakeContext::new(), within(100)).await.unwrap_err();
    assert!(error.to_string().contains("deadline"), "{error}");
}

/// A server that follows its script (`/<status>/<where>` redirects to the first server or the second) and keeps every
/// request.
struct Recorded {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Recorded {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = requests.clone();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let kept = kept.clone();
                tokio::spawn(async move {
                    let mut buffer = [0; 4096];
                    let read = socket.read(&mut buffer).await.unwrap_or(0);
                    let request = String::from_utf8_lossy(&buffer[..read]).into_owned();
                    let path = request.split(' ').nth(1).unwrap_or("/").to_owned();
                    kept.lock().unwrap().push(request);
                    let answer = match path.trim_start_matches('/').split_once("?to=") {
                        Some((status, to)) => format!("HTTP/1.1 {status} Found\r\nlocation: {to}\r\n"),
                        None => "HTTP/1.1 200 OK\r\n".to_owned(),
                    };
                    let answer = answer + "content-length: 0\r\nconnection: close\r\n\r\n";
                    let _ = socket.write_all(answer.as_bytes()).await;
                });
            }
        });
        Self { port, requests }
    }

    fn url(&self, path: &str) -> String {
        format!("http://localhost:{}/{path}", self.port)
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }
}

#[tokio::test]
async fn credentials_in_a_url_are_refused_and_never_sent() {
    let server = Recorded::start().await;
    let host = fetching(only_the_test_server());
    let handler = fetcher(&host, &["localhost", "example.com"]);
    let port = server.port;
    for url in [
        format!("http://user:pass@localhost:{port}/"),
        format!("http://user@localhost:{port}/"),
        format!("http://:pass@localhost:{port}/"),
        format!("http://us%65r:p%40ss@LOCALHOST:{port}/"),
        format!("HTTP:\\\\user:pass@localhost:{port}\\"),
        format!("http:user:pass@localhost:{port}/"),
        format!("http://example.com@localhost:{port}/"),
        format!("http://localhost:{port}@example.com/"),
    ] {
        let answer = fetch(&handler, &url).await;
        assert_eq!(answer["name"], "TypeError", "{url}: {answer}");
        assert!(answer["message"].as_str().unwrap().contains("no user name and no password"), "{answer}");
    }
    // A handler that fools `web.js` is refused all the same.
    let source = "JSON.parse = () => ({}); export async function execute({ args }) {
        try { await fetch(args.url); } catch (error) { return { ok: true, data: error.message }; } }";
    let fooling = load_files(&host, &[("tool/handler.js", source)], &["localhost"]).unwrap();
    let answer = fetch(&fooling, &format!("http://user:pass@localhost:{port}/")).await;
    assert!(answer.as_str().unwrap().contains("no user name and no password"), "{answer}");
    assert_eq!(server.take(), Vec::<String>::new(), "nothing was sent");

    for to in [format!("http://user:pass@localhost:{port}/there"), format!("//user@localhost:{port}/there")] {
        let answer = fetch(&handler, &server.url(&format!("302?to={to}"))).await;
        let message = answer["message"].as_str().unwrap();
        assert!(message.contains("redirects to a URL with a user name"), "{answer}");
        assert!(!message.contains("pass") || message.contains("a password"), "{answer}");
        let requests = server.take();
        assert_eq!(requests.len(), 1, "the redirect is not followed: {requests:?}");
    }
}

#[tokio::test]
async fn secrets_stay_with_their_origin_across_redirects() {
    const SECRETS: [&str; 8] = [
        "Authorization",
        "Cookie",
        "X-Api-Key",
        "api-key",
        "X-Goog-Api-Key",
        "X-Auth-Token",
        "X-Amz-Security-Token",
        "X-Anything",
    ];
    let (one, two) = (Recorded::start().await, Recorded::start().await);
    let host = fetching(only_the_test_server());
    let handler = fetcher(&host, &["localhost", "127.0.0.1"]);
    let secrets = SECRETS.map(|name| (name, json!("s3cret")));
    let mut headers: serde_json::Map<String, Value> =
        secrets.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    headers.insert("Accept-Language".into(), json!("nb"));
    headers.insert("Content-Type".into(), json!("text/x-test"));
    for status in [301, 302, 303, 307, 308] {
        for method in ["GET", "POST", "PUT", "DELETE"] {
            let body = if method == "GET" { Value::Null } else { json!("the body") };
            let init = json!({ "method": method, "headers": headers, "body": body });
            let ask = |url: String| data(&handler, json!({ "url": url, "init": init }));
            let case = format!("{method} {status}");

            // Within the origin everything goes along.
            assert_eq!(ask(one.url(&format!("{status}?to=/there"))).await["status"], 200, "{case}");
            let requests = one.take();
            assert_eq!(requests[1].matches("s3cret").count(), SECRETS.len(), "{case}: {requests:?}");

            // To another port, another name and through both back home: nothing does.
            let home = one.url("home");
            for to in [
                two.url("there"),
                format!("http://127.0.0.1:{}/there", one.port),
                two.url(&format!("{status}?to={home}")),
            ] {
                assert_eq!(ask(one.url(&format!("{status}?to={to}"))).await["status"], 200, "{case} {to}");
                let (first, rest) = (one.take(), two.take());
                assert_eq!(first[0].matches("s3cret").count(), SECRETS.len(), "{case}: {first:?}");
                for request in first[1..].iter().chain(&rest) {
                    let request = request.to_lowercase();
                    assert!(!request.contains("s3cret"), "{case} {to}: {request}");
                    assert!(request.contains("accept-language: nb"), "{case} {to}: {request}");
                    let becomes_get = match status {
                        303 => method != "GET",
                        301 | 302 => method == "POST",
                        _ => false,
                    };
                    let expected = if becomes_get { "GET" } else { method }.to_lowercase();
                    assert!(request.starts_with(&format!("{expected} /")), "{case} {to}: {request}");
                    let has_body = method != "GET" && !becomes_get;
                    assert_eq!(request.ends_with("the body"), has_body, "{case} {to}: {request}");
                    let has_type = !becomes_get;
                    assert_eq!(request.contains("text/x-test"), has_type, "{case} {to}: {request}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_handler_is_told_no_private_address_and_the_operator_is() {
    let server = Recorded::start().await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let public = fetching(Addresses::Public);
    let declared = ["localhost", "10.1.2.3", "169.254.169.254", "[fd00::7]", "127.0.0.1", "nowhere.invalid"];
    let handler = fetcher(&public, &declared);
    let port = server.port;
    let mut by_name = Vec::new();
    for (url, logged) in [
        (format!("http://localhost:{port}/"), Some("is not on the public internet")),
        (format!("http://localhost:{closed}/"), Some("is not on the public internet")),
        (format!("http://nowhere.invalid:{port}/"), None),
        (format!("http://127.0.0.1:{port}/"), Some("127.0.0.1 is not on the public internet")),
        (format!("http://127.0.0.1:{closed}/"), Some("127.0.0.1 is not on the public internet")),
        ("http://10.1.2.3/".into(), Some("10.1.2.3 is not on the public internet")),
        ("http://169.254.169.254/latest/".into(), Some("169.254.169.254 is not")),
        ("http://[fd00::7]/".into(), Some("fd00::7 is not")),
    ] {
        let (answer, logs) = told_and_logged(&handler, &url).await;
        no_address_in(&answer);
        assert_eq!(logs.is_empty(), logged.is_none(), "{url}: {logs:?}");
        assert!(logged.is_none_or(|logged| logs[0].contains(logged)), "{url}: {logs:?}");
        match url.contains("localhost") || url.contains("nowhere") {
            // Whether it exists, and whether anything answers there, is not told.
            true => by_name.push(answer.to_string().replace("nowhere.invalid", "localhost")),
            false => {
                assert!(answer["message"].as_str().unwrap().starts_with("this address may not"), "{answer}")
            }
        }
    }
    by_name.dedup();
    assert_eq!(by_name.len(), 1, "{by_name:?}");
    assert_eq!(server.take().len(), 0);

    // What a server says in a redirect is not the handler's either.
    let host = fetching(only_the_test_server());
    let handler = fetcher(&host, &["localhost", "127.0.0.2", "10.1.2.3"]);
    for (to, logged) in [
        (format!("http://127.0.0.2:{port}/"), "127.0.0.2"),
        ("http://10.1.2.3/".into(), "10.1.2.3"),
        ("http://10.9.9.9/".into(), "10.9.9.9"),
        ("http://192.168.0.1/admin".into(), "192.168.0.1"),
        ("http://vault.internal.corp/".into(), "vault.internal.corp"),
        ("http://[fd00::7]/".into(), "fd00::7"),
    ] {
        let (answer, logs) = told_and_logged(&handler, &server.url(&format!("302?to={to}"))).await;
        no_address_in(&answer);
        assert!(!answer.to_string().contains("corp"), "{answer}");
        assert!(logs.iter().any(|line| line.contains(logged)), "{to}: {logs:?}");
    }
}

/// A handler that fetches thousands of times does not fill the log.
#[tokio::test]
async fn refused_fetches_fill_no_log() {
    let host = fetching(Addresses::Public);
    let source = "export async function execute() {
        for (let n = 0; n < 100; n++) await fetch('http://10.0.0.1/').catch(() => {});
        return { ok: true };
      }";
    let handler = load_files(&host, &[("tool/handler.js", source)], &["10.0.0.1"]).unwrap();
    let context = FakeContext::new();
    handler.run(json!({}), context.clone(), TEN_SECONDS).await.unwrap();
    assert_eq!(context.recorded().logs.len(), 10);
}

async fn told_and_logged(handler: &Arc<dyn Handler>, url: &str) -> (Value, Vec<String>) {
    let context = FakeContext::new();
    let answer = handler.run(json!({ "url": url }), context.clone(), TEN_SECONDS).await.unwrap();
    let Outcome::Success(told) = answer.outcome else { panic!("{answer:?}") };
    (told, context.recorded().logs.into_iter().map(|(_, line)| line).collect())
}

fn no_address_in(answer: &Value) {
    let text = answer.to_string();
    let parts = text.split(|letter: char| !(letter.is_ascii_hexdigit() || letter == '.' || letter == ':'));
    for part in parts {
        assert!(part.trim_matches(['.', ':']).parse::<IpAddr>().is_err(), "{answer}");
    }
}
