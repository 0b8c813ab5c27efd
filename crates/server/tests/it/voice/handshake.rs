//! The WebSocket handshake and `start`.

use std::time::Duration;

use quarterdeck_server::Settings;
use quarterdeck_websocket::UpgradeError;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::page::{Page, Read};
use crate::http::{Ask, Open};
use crate::world::World;

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// A valid request, except for the headers that a test removes or adds.
fn request(world: &World, without: &str, with: &[(&str, &str)]) -> Ask {
    let proper = [("upgrade", "websocket"), ("sec-websocket-version", "13"), ("sec-websocket-key", KEY)];
    let kept = proper.iter().filter(|(name, _)| *name != without);
    kept.chain(with).fold(world.get("/voice"), |ask, (name, value)| ask.with(name, value))
}

/// The same with `Connection: Upgrade`; `Ask` sends `close` by itself.
fn upgrade_request(world: &World, without: &str, with: &[(&str, &str)]) -> Ask {
    request(world, without, with).with("connection", "Upgrade")
}

#[tokio::test]
async fn a_request_without_upgrade_gets_426() {
    let world = World::new().await;
    for ask in [
        world.get("/voice"),
        request(&world, "", &[]),
        upgrade_request(&world, "upgrade", &[]),
        upgrade_request(&world, "upgrade", &[("upgrade", "h2c")]),
        upgrade_request(&world, "sec-websocket-version", &[]),
        upgrade_request(&world, "sec-websocket-version", &[("sec-websocket-version", "8")]),
    ] {
        let answer = ask.send().await;
        assert_eq!((answer.refusal().0, answer.refusal().1), (426, "VALIDATION".into()));
        assert_eq!(answer.header("upgrade"), Some("websocket"));
        assert_eq!(answer.header("sec-websocket-version"), Some("13"));
    }
    assert_eq!(world.ask("HEAD", "/voice").send().await.status, 426);
    assert_eq!(world.post("/voice", &json!({})).send().await.status, 405);
    for key in ["", "short", "not base64 at all!!!!!!!"] {
        let answer = upgrade_request(&world, "sec-websocket-key", &[("sec-websocket-key", key)]).send().await;
        assert_eq!(answer.refusal().0, 400, "{key}");
    }
    assert_eq!(upgrade_request(&world, "sec-websocket-key", &[]).send().await.refusal().0, 400);
    assert_eq!(world.get("/voice?ticket=a&ticket=b").send().await.refusal().0, 400);
}

#[tokio::test]
async fn the_upgrade_answers_the_key_and_sets_a_new_clients_cookie() {
    let world = World::new().await;
    let open = |cookie: Option<String>| {
        let ask = upgrade_request(&world, "", &[]);
        let ask = if let Some(cookie) = cookie { ask.with("cookie", &cookie) } else { ask };
        async { ask.open().await.head() }
    };
    let answer = open(None).await;
    assert_eq!(answer.status, 101);
    assert_eq!(answer.header("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    assert_eq!(answer.header("upgrade"), Some("websocket"));
    let cookie = answer.cookie().unwrap();
    let again = open(Some(cookie)).await;
    assert_eq!((again.status, again.cookie()), (101, None));
}

#[tokio::test]
async fn a_call_from_another_origin_must_be_listed() {
    let settings = Settings { origins: vec!["https://shop.example".into()], ..Settings::default() };
    let world = World::with(settings).await;
    let own = format!("http://{}", world.address);
    for (origin, status) in
        [(own.as_str(), 101), ("https://shop.example", 101), ("https://evil.example", 403), ("null", 403)]
    {
        let answer = upgrade_request(&world, "", &[("origin", origin)]).open().await.head();
        assert_eq!(answer.status, status, "{origin}");
    }
    assert_eq!(upgrade_request(&world, "", &[("host", "evil.example")]).open().await.head().status, 403);
    assert_eq!(upgrade_request(&world, "", &[]).open().await.head().status, 101, "no browser");
}

#[tokio::test]
async fn voice_connections_are_limited_and_released() {
    let settings = Settings { voice_connections: 3, voice_per_client: 2, ..Settings::default() };
    let world = World::with(settings).await;
    let (ann, ben) = (world.new_client().await, world.new_client().await);
    let open = |cookie: String| {
        let world = &world;
        async move { Page::try_open(world, "/voice", &[("cookie", &cookie)]).await }
    };
    let status = |refused: Result<Page, UpgradeError>| match refused {
        Err(UpgradeError::Refused { status, .. }) => status,
        Err(error) => panic!("{error}"),
        Ok(_) => 101,
    };
    let first = open(ann.clone()).await.unwrap();
    let _second = open(ann.clone()).await.unwrap();
    assert_eq!(status(open(ann.clone()).await), 429);
    let _third = open(ben.clone()).await.unwrap();
    assert_eq!(status(open(ben.clone()).await), 503);
    drop(first);
    let given_back = async {
        while status(open(ann.clone()).await) != 101 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), given_back).await.unwrap();
}

#[tokio::test]
async fn voice_is_refused_where_it_is_not_configured() {
    let world = World::without_voice().await;
    let answer = upgrade_request(&world, "", &[]).send().await;
    assert_eq!((answer.refusal().0, answer.refusal().1), (503, "UNAVAILABLE".into()));
    assert_eq!(world.post("/api/voice/ticket", &json!({})).send().await.refusal().0, 503);
}

#[tokio::test]
async fn a_draining_server_refuses_calls_and_closes_waiting_connections() {
    let mut world = World::new().await;
    let cookie = world.new_client().await;
    let mut waiting = Page::open(&world, "/voice", &[]).await;
    let (mut calling, _) = Page::calling(&world, &cookie).await;
    let late = upgrade_request(&world, "", &[]).bytes();
    let mut connection = TcpStream::connect(world.address).await.unwrap();
    connection.write_all(&late[..20]).await.unwrap();
    assert_eq!(world.get("/healthz").send().await.status, 200, "the server has the first part");
    world.stop();
    calling.until("going_away").await;
    connection.write_all(&late[20..]).await.unwrap();
    assert_eq!(Open::read(connection).await.rest().await.refusal().0, 503);
    assert_eq!(waiting.read().await, Read::Closed(Some(1001)));
    assert_eq!(calling.ending().await, (None, Some(1001)));
    drop((waiting, calling));
    world.wait_until_stopped().await;
}

#[tokio::test]
async fn the_first_message_must_be_start() {
    let world = World::new().await;
    let says = async |text: &str| {
        let mut page = Page::open(&world, "/voice", &[]).await;
        page.socket.send_text(text);
        page.socket.flush().await.unwrap();
        page.ending().await
    };
    let validation = |(error, code): (Option<serde_json::Value>, Option<u16>)| {
        assert_eq!((&error.unwrap()["type"], code), (&json!("VALIDATION"), Some(1008)));
    };
    for wrong in [
        r#"{"type":"ping"}"#.to_owned(),
        r#"{"type":"text","text":"hello"}"#.to_owned(),
        r#"{"type":"audio","data":"AAAAAAAA"}"#.to_owned(),
        json!({ "type": "start", "sessionId": "no id" }).to_string(),
        json!({ "type": "start", "sessionId": "x".repeat(129) }).to_string(),
        json!({ "type": "start", "pendingRequest": "x".repeat(501) }).to_string(),
    ] {
        validation(says(&wrong).await);
    }
    let mut page = Page::open(&world, "/voice", &[]).await;
    page.send_audio(&[0; 640]).await;
    validation(page.ending().await);
    // What cannot be read is answered, and may be said again.
    let mut page = Page::open(&world, "/voice", &[]).await;
    for text in ["hello", r#"{"type":"sing"}"#] {
        page.socket.send_text(text);
        page.socket.flush().await.unwrap();
        assert_eq!(page.until("error").await["error"]["type"], "VALIDATION");
    }
    page.socket.send_text(r#"{"type":"start"}"#);
    page.socket.flush().await.unwrap();
    page.until("ready").await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_start_is_closed() {
    let world = World::new().await;
    let mut silent = Page::open(&world, "/voice", &[]).await;
    assert_eq!(silent.ending().await, (None, Some(4002)));
}
