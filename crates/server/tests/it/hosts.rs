//! The `Host` header.

use crate::http::raw;
use crate::world::World;

async fn status(world: &World, head: &str) -> u16 {
    let head = format!("{head}connection: close\r\n\r\n");
    raw(world.address, head.as_bytes()).await.rest().await.status
}

#[tokio::test]
async fn exactly_one_host_header_is_required() {
    let world = World::new().await;
    for path in ["/api/me", "/v1/models", "/voice", "/healthz", "/nowhere"] {
        let asked = async |hosts: &[&str]| {
            let lines: String = hosts.iter().map(|host| format!("host: {host}\r\n")).collect();
            status(&world, &format!("GET {path} HTTP/1.1\r\n{lines}")).await
        };
        let usual = asked(&["localhost"]).await;
        assert!(![400, 403].contains(&usual), "{path} {usual}");
        for wrong in [
            &[][..],
            &["localhost", "localhost"],
            &["localhost", "evil.example"],
            &["evil.example", "localhost"],
        ] {
            assert_eq!(asked(wrong).await, 400, "{path} {wrong:?}");
        }
        for unreadable in
            ["", "local host", "ann@localhost", "localhost/x", "localhost:port", "localhost, localhost"]
        {
            assert_eq!(asked(&[unreadable]).await, 400, "{path} {unreadable}");
        }
        assert_eq!(asked(&["evil.example"]).await, 403, "{path}");
    }
}

#[tokio::test]
async fn the_target_and_the_header_name_the_same_host() {
    let world = World::new().await;
    let asked = async |target: &str, host: &str| {
        status(&world, &format!("GET http://{target}/healthz HTTP/1.1\r\nhost: {host}\r\n")).await
    };
    assert_eq!(asked("localhost", "localhost").await, 200);
    assert_eq!(asked("localhost", "localhost:80").await, 200);
    for (target, host) in [
        ("evil.example", "localhost"),
        ("localhost", "evil.example"),
        ("localhost:81", "localhost"),
        ("a@localhost", "localhost"),
    ] {
        assert_eq!(asked(target, host).await, 400, "{target} {host}");
    }
    assert_eq!(asked("evil.example", "evil.example").await, 403);
}

#[tokio::test]
async fn http_1_0_may_leave_out_the_host() {
    let world = World::new().await;
    assert_eq!(status(&world, "GET /healthz HTTP/1.0\r\n").await, 200);
    assert_eq!(status(&world, "GET /healthz HTTP/1.0\r\nhost: a\r\nhost: b\r\n").await, 400);
    let with_origin = "GET /api/me HTTP/1.0\r\norigin: http://evil.example\r\n";
    assert_eq!(status(&world, with_origin).await, 403, "a browser names its host");
}
