//! `fetch`: what it brings home, and where it does not go.

use std::net::IpAddr;
use std::sync::Arc;

use quarterdeck_contracts::Outcome;
use quarterdeck_contracts::handler::Handler;
use quarterdeck_host_js::{Addresses, FetchConfig, HostConfig, JsHost};
use quarterdeck_testkit::FakeContext;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::world::{SECOND, config, data, load_files, within};

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
        } catch (error) { return { ok: true, data: { code: error.code, message: error.message } }; }
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
        assert_eq!(answer["code"], "NOT_DECLARED", "{written}: {answer}");
        assert!(answer["message"].as_str().unwrap().contains("public internet"), "{written}: {answer}");
    }
}

#[tokio::test]
async fn redirects_are_checked_like_first_requests() {
    let port = server().await;
    let host = fetching(only_the_test_server());
    let handler = fetcher(&host, &["localhost", "127.0.0.2"]);
    let inside = fetch(&handler, &format!("http://localhost:{port}/inside")).await;
    assert!(inside["message"].as_str().unwrap().contains("public internet"), "{inside}");
    let undeclared = fetch(&handler, &format!("http://localhost:{port}/undeclared")).await;
    assert!(
        undeclared["message"].as_str().unwrap().contains("\"network\": [\"elsewhere.example\"]"),
        "{undeclared}"
    );
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
        ("http://example.com@other.example/", "NOT_DECLARED"),
        ("ftp://example.com/", "INVALID_ARGUMENT"),
        ("file:///etc/passwd", "INVALID_ARGUMENT"),
        ("data:text/plain,x", "INVALID_ARGUMENT"),
        ("nonsense", "INVALID_ARGUMENT"),
    ] {
        assert_eq!(fetch(&handler, url).await["code"], code, "{url}");
    }
    let letting = load_files(&host, &[("tool/handler.js", "export const execute = async () => ({ ok: true, data: (await fetch('http://other.example/')).status });")], &[]).unwrap();
    let answer = letting.run(json!({}), FakeContext::new(), SECOND).await.unwrap();
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
