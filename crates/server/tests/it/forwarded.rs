//! Requests behind proxies.

use quarterdeck_server::Settings;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::http::Open;
use crate::world::World;

async fn behind_a_proxy(requests_per_minute: u32) -> World {
    World::with(Settings { requests_per_minute, trust_proxy: true, ..Settings::default() }).await
}

async fn ask(world: &World, lines: &[&str]) -> u16 {
    let ask = world.get("/healthz");
    lines.iter().fold(ask, |ask, line| ask.with("x-forwarded-for", line)).send().await.status
}

#[tokio::test]
async fn every_form_of_an_address_is_the_same_address() {
    for spellings in [
        ["203.0.113.7", "203.0.113.7:4711", "::ffff:203.0.113.7", "[::ffff:203.0.113.7]:4711"],
        ["2001:db8::7", "[2001:db8::7]", "[2001:db8::7]:4711", "2001:DB8:0::7"],
    ] {
        let world = behind_a_proxy(4).await;
        for spelt in spellings {
            assert_eq!(ask(&world, &[spelt]).await, 200, "{spelt}");
        }
        for spelt in spellings {
            assert_eq!(ask(&world, &[spelt]).await, 429, "{spelt}");
        }
        assert_eq!(ask(&world, &["203.0.113.8"]).await, 200, "another address");
    }
}

#[tokio::test]
async fn of_several_header_lines_the_last_hop_counts() {
    let world = behind_a_proxy(3).await;
    for said in ["198.51.100.1", "127.0.0.1", "198.51.100.2, unknown"] {
        assert_eq!(ask(&world, &[said, "203.0.113.7"]).await, 200, "{said}");
    }
    for said in ["198.51.100.3", "127.0.0.1", "", "garbage, ,"] {
        assert_eq!(ask(&world, &[said, "203.0.113.7"]).await, 429, "{said}");
    }
}

#[tokio::test]
async fn malformed_hops_are_rate_limited_too() {
    for garbage in
        ["unknown", "_obfuscated", "", "203.0.113.7:99999", "[::1", "127.0.0.1", "[::1]:80", "localhost"]
    {
        let world = behind_a_proxy(2).await;
        let mut answers = Vec::new();
        for _ in 0..4 {
            answers.push(ask(&world, &[garbage]).await);
        }
        assert_eq!(answers, [200, 200, 429, 429], "{garbage}");
    }
    let world = behind_a_proxy(2).await;
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(ask(&world, &[]).await);
    }
    assert_eq!(answers, [200, 200, 429], "a proxy that says nothing");
}

#[tokio::test]
async fn hops_that_are_not_utf8_are_rate_limited_too() {
    let world = behind_a_proxy(1).await;
    let mut answers = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        let head = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-forwarded-for: \xff\xfe\r\n\r\n";
        stream.write_all(head).await.unwrap();
        answers.push(Open::read(stream).await.rest().await.status);
    }
    assert_eq!(answers, [200, 429]);
}

#[tokio::test]
async fn one_network_of_ipv6_is_one_address() {
    let world = behind_a_proxy(3).await;
    for number in 1..=3 {
        assert_eq!(ask(&world, &[&format!("2001:db8::{number}")]).await, 200);
    }
    assert_eq!(ask(&world, &["2001:db8::ffff:4"]).await, 429);
    assert_eq!(ask(&world, &["2001:db8:0:1::1"]).await, 200);
}

#[tokio::test]
async fn a_proxied_request_is_not_treated_as_local() {
    let world = World::with(Settings { requests_per_minute: 1_000, ..Settings::default() }).await;
    assert_eq!(world.get("/metrics").send().await.status, 200);
    for (name, value) in [
        ("x-forwarded-for", "203.0.113.7"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-for", ""),
        ("x-forwarded-for", "unknown"),
        ("forwarded", "for=127.0.0.1"),
        ("via", "1.1 front"),
        ("x-real-ip", "127.0.0.1"),
    ] {
        let answer = world.get("/metrics").with(name, value).send().await;
        assert_eq!(answer.status, 401, "{name}: {value}");
    }
}

#[tokio::test]
async fn guessing_a_credential_is_rate_limited() {
    let keys = vec![quarterdeck_server::ApiKey::new("ci", "sesame")];
    let identity = quarterdeck_server::Identity::new(crate::world::COOKIE_SECRET, None, keys);
    let settings = Settings { requests_per_minute: 3, trust_proxy: true, ..Settings::default() };
    let world = World::with_identity(settings, identity).await;
    let mut answers = Vec::new();
    for guess in 0..5 {
        let ask = world.get("/v1/models").with("x-forwarded-for", "203.0.113.7");
        answers.push(ask.with("authorization", &format!("Bearer guess{guess}")).send().await.status);
    }
    assert_eq!(answers, [401, 401, 401, 429, 429]);
}
