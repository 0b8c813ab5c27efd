//! Who gets in at a server that others can reach.

use std::process::Command;

use crate::serve::{Server, command};

const KEY: &str = "authorization: Bearer a-key-of-some-length\r\n";

/// A server that others could reach, if this machine let them.
fn open(data: &std::path::Path) -> Command {
    let mut command = command(data, "0.0.0.0:0");
    command.env("QUARTERDECK_ADMIN_TOKEN", "an-admin-token-of-some-length");
    command
}

fn status(server: &Server, path: &str, headers: &str) -> u16 {
    server.ask("GET", path, headers, "").0
}

#[test]
fn beyond_loopback_a_configured_key_closes_v1_and_opens_it() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::begin(open(data.path()).env("QUARTERDECK_API_KEY_CI", "a-key-of-some-length"));
    assert_eq!(status(&server, "/v1/models", ""), 401);
    assert_eq!(status(&server, "/v1/models", KEY), 200);
    assert_eq!(status(&server, "/v1/models", "authorization: Basic YTpi\r\n"), 401);
    assert_eq!(status(&server, "/api/me", ""), 200);
    drop(server);
    let mut command = open(data.path());
    command.env("QUARTERDECK_API_KEY_CI", "a-key-of-some-length");
    let server = Server::begin(
        command.env("QUARTERDECK_AUTH__REQUIRED__V1", "false").env("QUARTERDECK_AUTH__REQUIRED__API", "true"),
    );
    assert_eq!(status(&server, "/v1/models", ""), 200);
    assert_eq!(status(&server, "/api/me", ""), 401);
    assert_eq!(status(&server, "/api/me", KEY), 200);
}

#[test]
fn on_loopback_a_configured_key_closes_nothing_but_behind_a_proxy_it_does() {
    let data = tempfile::tempdir().unwrap();
    let mut local = command(data.path(), "127.0.0.1:0");
    let server = Server::begin(local.env("QUARTERDECK_API_KEY_CI", "a-key-of-some-length"));
    assert_eq!(status(&server, "/v1/models", ""), 200);
    drop(server);
    let server = Server::begin(local.env("QUARTERDECK_SERVER__TRUST_PROXY", "true"));
    assert_eq!(status(&server, "/v1/models", ""), 401);
    assert_eq!(status(&server, "/v1/models", KEY), 200);
}

#[test]
fn beyond_loopback_the_hosts_are_those_that_are_listed_or_the_operator_is_warned() {
    let data = tempfile::tempdir().unwrap();
    let is_warned = |server: &Server| server.printed.iter().any(|line| line.contains("`server.hosts`"));
    let server = Server::begin(&mut open(data.path()));
    assert!(is_warned(&server), "{:?}", server.printed);
    assert_eq!(status(&server, "/healthz", ""), 200);
    drop(server);
    let server = Server::begin(open(data.path()).env("QUARTERDECK_SERVER__HOSTS", "shop.example"));
    assert!(!is_warned(&server), "{:?}", server.printed);
    assert_eq!(status(&server, "/healthz", ""), 403, "its own address is not listed");
    drop(server);
    let server = Server::begin(open(data.path()).env("QUARTERDECK_SERVER__HOSTS", "shop.example, 0.0.0.0"));
    assert_eq!(status(&server, "/healthz", ""), 200);
    drop(server);
    let server = Server::begin(&mut command(data.path(), "127.0.0.1:0"));
    assert!(!is_warned(&server), "on loopback no host has to be listed: {:?}", server.printed);
}
