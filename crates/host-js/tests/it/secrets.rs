//! Secrets that the host adds to a handler's requests, private hosts that an operator opens, and answers that stand in for
//! the network.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use quarterdeck_contracts::Outcome;
use quarterdeck_contracts::handler::{Handler, HostError};
use quarterdeck_host_js::{
    FetchAnswers, FetchConfig, FetchStandIn, HostConfig, JsHost, StandInAnswer, ToolGrants,
};
use quarterdeck_outbound::SecretText;
use quarterdeck_testkit::FakeContext;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::world::{TEN_SECONDS, config, load_defined};

const KEY: &str = "k3y/with+signs&9";
const TENANT: &str = "tenant-0123456789";

/// A server that repeats what it is asked, and keeps it.
struct Echo {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Echo {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = requests.clone();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let kept = kept.clone();
                tokio::spawn(async move {
                    let mut buffer = [0; 8192];
                    let read = socket.read(&mut buffer).await.unwrap_or(0);
                    let request = String::from_utf8_lossy(&buffer[..read]).into_owned();
                    let answer = respond(&request);
                    kept.lock().unwrap().push(request);
                    let _ = socket.write_all(answer.as_bytes()).await;
                });
            }
        });
        Self { port, requests }
    }

    fn url(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}/{path}", self.port)
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }
}

fn respond(request: &str) -> String {
    let path = request.split(' ').nth(1).unwrap_or("/");
    let escaped = json!(request).to_string();
    let (status, more, body) = match path.split_once("?to=") {
        Some((_, to)) => {
            // What the host has added to the query is not part of it.
            let to = to.split('&').next().unwrap_or_default().replace("{KEY}", "k3y%2Fwith%2Bsigns%269");
            ("302 Found", format!("location: {to}\r\n"), String::new())
        }
        None if path.starts_with("/zipped") => {
            ("200 OK", "content-encoding: gzip\r\n".into(), request.to_owned())
        }
        None if path.starts_with("/refused") => {
            ("401 Unauthorized", format!("x-key: {KEY}\r\n"), format!("Invalid key: Bearer {KEY}"))
        }
        None => ("200 OK", format!("x-seen: {KEY}\r\n"), format!("{request}\n{escaped}")),
    };
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{more}content-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

fn grants(private_hosts: &[String]) -> ToolGrants {
    ToolGrants {
        secrets: [("API_KEY", KEY), ("TENANT", TENANT)]
            .map(|(name, secret)| (name.to_owned(), SecretText::from(secret)))
            .into(),
        private_hosts: private_hosts.iter().map(|host| host.parse().unwrap()).collect(),
    }
}

fn host(grants: ToolGrants) -> JsHost {
    let fetch =
        FetchConfig { grants: BTreeMap::from([("tool".to_owned(), grants)]), ..FetchConfig::default() };
    JsHost::new(HostConfig { fetch, ..config() }).unwrap()
}

const FETCHER: &str = "export async function execute({ args }) {
    try {
      const response = await fetch(args.url, args.init);
      const headers = [...response.headers];
      return { ok: true, data: { status: response.status, url: response.url, headers, text: await response.text() } };
    } catch (error) { return { ok: true, data: { code: error.code, message: error.message } }; }
  }";

/// A handler with a key in a header and a tenant in the query, both for `localhost`.
fn handler(host: &JsHost) -> Arc<dyn Handler> {
    try_handler(host, json!({ "host": "localhost", "header": "Authorization", "format": "Bearer {}" }))
        .unwrap()
}

fn try_handler(host: &JsHost, key: Value) -> Result<Arc<dyn Handler>, HostError> {
    let fields = json!({
        "network": ["localhost", "127.0.0.1"],
        "secrets": { "API_KEY": key, "TENANT": { "host": "localhost", "query": "tenant" } },
    });
    load_defined(host, &[("tool/handler.js", FETCHER)], fields)
}

/// What the handler was told, and what was logged.
async fn fetched(handler: &Arc<dyn Handler>, url: &str, init: Value) -> (Value, Vec<String>) {
    let context = FakeContext::new();
    let args = json!({ "url": url, "init": init });
    let answer = handler.run(args, context.clone(), TEN_SECONDS).await.unwrap();
    let Outcome::Success(told) = answer.outcome else { panic!("{answer:?}") };
    (told, context.recorded().logs.into_iter().map(|(_, line)| line).collect())
}

fn has_no_secret(told: &impl std::fmt::Debug) {
    let text = format!("{told:?}");
    for part in ["k3y", "with+signs", "with%2Bsigns", "azN5L3dpdGg", "0123456789"] {
        assert!(!text.contains(part), "{part} in {text}");
    }
}

#[tokio::test]
async fn secrets_are_added_to_requests_and_hidden_in_answers() {
    let echo = Echo::start().await;
    let host = host(grants(&[format!("localhost:{}", echo.port)]));
    let handler = handler(&host);
    for (path, status) in [("echo?a=1&b=%2F", 200), ("refused", 401)] {
        let (told, logs) = fetched(&handler, &echo.url("localhost", path), json!({})).await;
        assert_eq!(told["status"], status, "{told}");
        assert!(told["text"].as_str().unwrap().contains("[hidden]"), "{told}");
        has_no_secret(&(told, logs));
        let [request] = &echo.take()[..] else { panic!("one request") };
        assert!(request.contains(&format!("authorization: Bearer {KEY}\r\n")), "{request}");
        let separator = if path.contains('?') { '&' } else { '?' };
        assert!(request.contains(&format!(" /{path}{separator}tenant={TENANT} ")), "{request}");
    }
}

#[tokio::test]
async fn secrets_go_to_no_other_host_and_do_not_come_back() {
    let (echo, other) = (Echo::start().await, Echo::start().await);
    let opened = [&echo, &other]
        .map(|server| [format!("localhost:{}", server.port), format!("127.0.0.1:{}", server.port)]);
    let host = host(grants(&opened.concat()));
    let handler = handler(&host);
    // The other host, asked directly and through a redirect, and back home from there.
    let elsewhere = echo.url("127.0.0.1", "there");
    let home = echo.url("127.0.0.1", &format!("x?to={}", echo.url("localhost", "home")));
    for (url, with_secrets) in [
        (elsewhere.clone(), vec![false]),
        (echo.url("localhost", "x?to=/within"), vec![true, true]),
        (echo.url("localhost", &format!("x?to={elsewhere}")), vec![true, false]),
        (echo.url("localhost", &format!("x?to={home}")), vec![true, false, false]),
        (echo.url("127.0.0.1", &format!("x?to={}", echo.url("localhost", "in"))), vec![false, false]),
    ] {
        let (told, _) = fetched(&handler, &url, json!({})).await;
        assert_eq!(told["status"], 200, "{url}: {told}");
        has_no_secret(&told);
        let found: Vec<_> =
            echo.take().iter().map(|request| request.contains(KEY) && request.contains(TENANT)).collect();
        assert_eq!(found, with_secrets, "{url}");
    }
    // Another port is another server.
    let port = echo.url("localhost", &format!("x?to={}", other.url("localhost", "there")));
    assert_eq!(fetched(&handler, &port, json!({})).await.0["status"], 200);
    let [at_other] = &other.take()[..] else { panic!("one request") };
    assert!(!at_other.contains(KEY) && !at_other.contains(TENANT), "{at_other}");
    echo.take();
    // A redirect that has the secret's place already.
    fetched(&handler, &echo.url("localhost", "x?to=/y?tenant=forged"), json!({})).await;
    let again = echo.take().pop().unwrap();
    assert!(again.starts_with(&format!("GET /y?tenant={TENANT} ")), "{again}");
    // A server that writes the secret into the address of another host.
    let leak = echo.url("localhost", &format!("x?to={}", other.url("127.0.0.1", "?k={KEY}")));
    let (told, logs) = fetched(&handler, &leak, json!({})).await;
    assert!(told["message"].as_str().unwrap().contains("repeats a secret"), "{told}");
    assert_eq!(other.take(), [""; 0]);
    // Within the host it may; the handler does not see it in the response's address.
    let (told_within, _) = fetched(&handler, &echo.url("localhost", "x?to=/y?k={KEY}"), json!({})).await;
    assert!(told_within["url"].as_str().unwrap().contains("[hidden]"), "{told_within}");
    has_no_secret(&(told, logs, told_within));
}

#[tokio::test]
async fn a_handler_cannot_take_the_place_of_a_secret_nor_ask_for_an_echo_in_disguise() {
    let echo = Echo::start().await;
    let host = host(grants(&[format!("localhost:{}", echo.port)]));
    let handler = handler(&host);
    let url = echo.url("localhost", "echo");
    for (url, init, taken) in [
        (url.clone(), json!({ "headers": { "AUTHORIZATION": "mine" } }), "header authorization"),
        (format!("{url}?x=1&tenant=mine"), json!({}), "query parameter tenant"),
    ] {
        let (told, _) = fetched(&handler, &url, init).await;
        assert_eq!(told["code"], "INVALID_ARGUMENT", "{told}");
        assert!(told["message"].as_str().unwrap().contains(taken), "{told}");
    }
    assert_eq!(echo.take(), [""; 0], "nothing was sent");
    let init = json!({ "headers": { "Accept-Encoding": "gzip", "Range": "bytes=0-4" } });
    fetched(&handler, &url, init).await;
    let sent = echo.take()[0].to_lowercase();
    assert!(!sent.contains("accept-encoding") && !sent.contains("range:"), "{sent}");
    let (told, _) = fetched(&handler, &echo.url("localhost", "zipped"), json!({})).await;
    assert!(told["message"].as_str().unwrap().contains("compressed"), "{told}");
    has_no_secret(&told);
}

#[tokio::test]
async fn an_error_says_whether_the_secret_or_the_host_is_missing() {
    let echo = Echo::start().await;
    let url = echo.url("localhost", "echo");
    // The host is opened, the secret is not there.
    let without = ToolGrants { secrets: BTreeMap::new(), ..grants(&[format!("localhost:{}", echo.port)]) };
    let (told, logs) = fetched(&handler(&host(without)), &url, json!({})).await;
    assert_eq!(told["code"], "AUTH_ERROR", "{told}");
    let message = told["message"].as_str().unwrap();
    assert!(
        message.contains("the secret API_KEY is not configured") && message.contains("[tools.tool.secrets]"),
        "{told}"
    );
    assert!(logs[0].contains("env = "), "{logs:?}");
    // The secret is there, the host is not opened; over https, so that the secret may travel.
    let (told, logs) =
        fetched(&handler(&host(grants(&[]))), &url.replace("http:", "https:"), json!({})).await;
    assert_eq!(told["code"], "NOT_AVAILABLE", "{told}");
    assert!(told["message"].as_str().unwrap().contains("`private_hosts` under [tools.tool]"), "{told}");
    let hint = format!("private_hosts = [\"localhost:{}\"] under [tools.tool] opens it", echo.port);
    assert!(logs[0].contains(&hint), "{logs:?}");
    // Unencrypted, to a host that is not known to be private.
    let (told, _) = fetched(&handler(&host(grants(&[]))), &url, json!({})).await;
    assert!(told["message"].as_str().unwrap().contains("over https only"), "{told}");
    assert_eq!(echo.take(), [""; 0]);
}

#[tokio::test]
async fn private_hosts_are_opened_one_by_one() {
    let (echo, other) = (Echo::start().await, Echo::start().await);
    let plain = |host: &JsHost, tool: &str| {
        let fields = json!({ "toolId": tool, "network": ["localhost", "127.0.0.1"] });
        load_defined(host, &[("tool/handler.js", FETCHER)], fields).unwrap()
    };
    for (opened, name, literal) in
        [("localhost", true, false), ("127.0.0.1", true, true), ("[::1]", false, false)]
    {
        let host = host(grants(&[format!("{opened}:{}", echo.port)]));
        let (mine, others) = (plain(&host, "tool"), plain(&host, "other_tool"));
        for (handler, url, is_reached) in [
            (&mine, echo.url("localhost", ""), name),
            (&mine, echo.url("127.0.0.1", ""), literal),
            (&mine, other.url("localhost", ""), false),
            (&mine, other.url("127.0.0.1", ""), false),
            (&mine, echo.url("localhost", &format!("x?to={}", other.url("localhost", ""))), false),
            (&others, echo.url("localhost", ""), false),
        ] {
            let (told, _) = fetched(handler, &url, json!({})).await;
            assert_eq!(told["status"] == 200, is_reached, "{opened} {url}: {told}");
        }
    }
    assert_eq!(other.take(), [""; 0]);
}

#[test]
fn a_secret_that_has_no_place_keeps_the_handler_from_loading() {
    let host = host(grants(&[]));
    for key in [
        json!({ "host": "localhost" }),
        json!({ "host": "localhost", "header": "Host" }),
        json!({ "host": "localhost", "header": "X-A", "query": "a" }),
    ] {
        let Err(error) = try_handler(&host, key.clone()) else { panic!("{key}") };
        assert!(error.to_string().contains("API_KEY"), "{error}");
    }
}

/// Answers for one session.
#[derive(Debug)]
struct Recording;

impl FetchStandIn for Recording {
    fn for_session(&self, session_id: &str) -> Option<Arc<dyn FetchAnswers>> {
        (session_id == "session_1").then(|| Arc::new(Self) as _)
    }
}

impl FetchAnswers for Recording {
    fn answer(&self, method: &str, url: &str) -> StandInAnswer {
        let response = |status: u16, headers: &[(&str, &str)], body: &str| StandInAnswer::Response {
            status,
            headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            body: body.into(),
        };
        match (method, url) {
            ("GET", "http://localhost/moved") => response(302, &[("location", "/there?a=1")], ""),
            ("GET", "http://localhost/there?a=1") => response(200, &[("x-a", "1")], "recorded"),
            ("GET", "http://localhost/away") => StandInAnswer::Unreachable,
            _ => StandInAnswer::Unknown(format!("no answer to {method} {url}")),
        }
    }
}

#[tokio::test]
async fn a_stand_in_answers_under_the_same_rules_and_needs_no_secret() {
    let fetch = FetchConfig { stand_in: Some(Arc::new(Recording)), ..FetchConfig::default() };
    let host = JsHost::new(HostConfig { fetch, ..config() }).unwrap();
    let handler = handler(&host);
    let ask = |url: &'static str, init: Value| fetched(&handler, url, init);
    let (told, _) = ask("http://localhost/moved", json!({})).await;
    let expected = json!({ "status": 200, "url": "http://localhost/there?a=1", "headers": [["x-a", "1"]], "text": "recorded" });
    assert_eq!(told, expected);
    for (url, init, message) in [
        ("http://localhost/away", json!({}), "localhost cannot be reached"),
        (
            "http://localhost/there?a=1",
            json!({ "method": "POST" }),
            "no answer to POST http://localhost/there?a=1",
        ),
        ("http://localhost/moved", json!({ "headers": { "authorization": "x" } }), "is added by the host"),
        ("http://other.example/", json!({}), "\"network\": [\"other.example\"]"),
    ] {
        let (told, _) = ask(url, init).await;
        assert!(told["message"].as_str().unwrap().contains(message), "{url}: {told}");
    }
}
