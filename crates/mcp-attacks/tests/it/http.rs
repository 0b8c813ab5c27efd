//! Servers over HTTP: where they send us, and what they answer.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use quarterdeck_contracts::ErrorType;
use quarterdeck_host_mcp::{HttpConfig, UpstreamTransport};
use quarterdeck_outbound::{PrivateHost, SecretText};
use tempfile::TempDir;
use url::Url;

use crate::memory::within;
use crate::world::{
    BOOKING, HOSTILE, LOOK, Settings, World, assert_honest, assert_outcome_unknown, error, for_model, kind,
};

const MEGABYTE: u64 = 1_000_000;
const REDIRECTS: [&str; 5] = [
    "301 Moved Permanently",
    "302 Found",
    "303 See Other",
    "307 Temporary Redirect",
    "308 Permanent Redirect",
];

/// A hostile server in a process of its own.
pub(crate) struct HttpServer {
    process: Child,
    port: u16,
    folder: TempDir,
}

impl HttpServer {
    pub(crate) fn start(behaviour: &str, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Command::new(HOSTILE)
            .args(["http", behaviour])
            .arg(folder.path().join("notes.jsonl"))
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { process, port: line.trim().parse().unwrap(), folder }
    }

    /// A world around it, with its port opened by configuration.
    pub(crate) fn world(self, settings: Settings) -> HttpWorld {
        let opened = vec![format!("127.0.0.1:{}", self.port).parse::<PrivateHost>().unwrap()];
        self.world_with(opened, settings)
    }

    fn world_with(self, private_hosts: Vec<PrivateHost>, settings: Settings) -> HttpWorld {
        let transport = UpstreamTransport::Http(HttpConfig {
            url: Url::parse(&format!("http://127.0.0.1:{}/mcp", self.port)).unwrap(),
            headers: BTreeMap::from([("x-api-key".to_owned(), SecretText::from("hunter2"))]),
            oauth: None,
            private_hosts,
        });
        let Self { process, folder, .. } = self;
        HttpWorld { world: World::new(folder, transport, settings), process: ServerProcess(process) }
    }
}

/// A world whose server ends with it.
pub(crate) struct HttpWorld {
    world: World,
    #[expect(dead_code, reason = "held until the end of the test")]
    process: ServerProcess,
}

impl std::ops::Deref for HttpWorld {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

struct ServerProcess(Child);

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A place that must not be visited: nothing is accepted, so a visit would wait in its queue.
struct Forbidden(TcpListener);

impl Forbidden {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self(listener)
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.0.local_addr().unwrap())
    }

    #[track_caller]
    fn assert_not_visited(&self) {
        assert!(self.0.accept().is_err(), "{} was visited", self.url());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_to_loopback_is_not_followed() {
    for status in REDIRECTS {
        for behaviour in ["redirects", "redirects-calls"] {
            let forbidden = Forbidden::new();
            let world = HttpServer::start(behaviour, &[&forbidden.url(), status]).world(Settings::default());
            let response = world.call(LOOK, "it").await;
            assert!(kind(&response).is_some(), "{behaviour} {status}: {}", for_model(&response));
            assert!(!for_model(&response).contains("127.0.0.1"), "{}", for_model(&response));
            forbidden.assert_not_visited();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_to_a_private_address_is_not_followed() {
    for place in [
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]:1/",
        "file:///etc/passwd",
    ] {
        let world =
            HttpServer::start("redirects", &[place, "307 Temporary Redirect"]).world(Settings::default());
        let response = world.call(BOOKING, "it").await;
        assert_eq!(error(&response).kind, ErrorType::Unavailable, "{place}");
        assert_eq!(world.notes.count("tools/call"), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_loopback_that_is_not_opened_is_not_dialled() {
    let world = HttpServer::start("honest", &[]).world_with(Vec::new(), Settings::default());
    let response = world.call(LOOK, "it").await;
    assert_eq!(error(&response).kind, ErrorType::Unavailable);
    assert_eq!(world.notes.count("connection"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demand_for_a_token_sends_us_nowhere() {
    let forbidden = Forbidden::new();
    let world = HttpServer::start("demands-token", &[&forbidden.url()]).world(Settings::default());
    let response = world.call(LOOK, "it").await;
    assert!(kind(&response).is_some());
    forbidden.assert_not_visited();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_honest_server_gets_the_configured_header_and_nothing_of_our_clients() {
    let world = HttpServer::start("honest", &[]).world(Settings::default());
    assert_honest(&world.call(LOOK, "it").await, "lookup", "it");
    for request in world.notes.of("tools/call") {
        let headers = request["headers"].to_string();
        assert!(headers.contains("hunter2"), "{headers}");
        for name in ["authorization", "cookie", "ann"] {
            assert!(!headers.contains(&format!("\"{name}\"")), "{headers}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_too_large_or_never_end_are_refused_within_bounded_memory() {
    let settings = || Settings { timeout: Duration::from_secs(10), ..Settings::default() };
    for behaviour in
        ["huge-result", "endless-body", "endless-events", "deep-result", "invalid-utf8", "wrong-type"]
    {
        let world = HttpServer::start(behaviour, &[]).world(settings());
        world.connected().await;
        let response = within(60 * MEGABYTE, world.call(BOOKING, "it")).await;
        assert!(kind(&response).is_some(), "{behaviour}");
        assert!(for_model(&response).len() < 4_000, "{behaviour}");
        assert_eq!(world.notes.calls(), ["it"], "{behaviour}: a write is sent once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_without_an_answer_has_an_unknown_outcome_and_is_never_sent_again() {
    for behaviour in ["dies-in-write", "never-answers"] {
        let settings = Settings { timeout: Duration::from_secs(3), ..Settings::default() };
        let world = HttpServer::start(behaviour, &[]).world(settings);
        world.connected().await;
        assert_outcome_unknown(&world.call(BOOKING, "it").await);
        assert_eq!(world.notes.calls(), ["it"], "{behaviour}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_to_a_server_that_forgot_the_session_is_not_sent_a_second_time() {
    let world = HttpServer::start("forgets-session", &[]).world(Settings::default());
    world.connected().await;
    let response = world.call(BOOKING, "it").await;
    assert!(kind(&response).is_some());
    assert_eq!(world.notes.calls(), ["it"]);
}
