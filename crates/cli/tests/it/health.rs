//! The probe of containers, and the manual pages of packages.

use std::net::TcpListener;

use quarterdeck_testkit::tree;

use crate::serve::Server;
use crate::terminal::quarterdeck;

#[test]
fn health_tells_a_server_that_runs_from_an_address_where_none_does() {
    let files = tree("");
    let server = Server::start(&files.join("data"), &[]);
    let address = server.address.to_string();
    for flags in [&["health", "--server", &address][..], &["health", "--ready", "--server", &address]] {
        let output = quarterdeck(files.path(), flags);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
    drop(server);
    let output = quarterdeck(files.path(), &["health", "--server", &address]);
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "container engines reserve 2: {printed}");
    assert!(printed.contains(&format!("no server answers on {address}")), "{printed}");
}

#[test]
fn health_does_not_wait_for_a_server_that_accepts_and_says_nothing() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let start = std::time::Instant::now();
    let output = quarterdeck(tree("").path(), &["health", "--server", &address]);
    assert_eq!(output.status.code(), Some(1));
    assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn every_command_has_a_manual_page_except_the_one_that_writes_them() {
    let files = tree("");
    let output = quarterdeck(files.path(), &["man", "--out", "pages/man1"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = |name: &str| std::fs::read_to_string(files.join(&format!("pages/man1/{name}.1")));
    assert!(page("quarterdeck").unwrap().contains("quarterdeck\\-serve(1)"));
    assert!(page("quarterdeck-audit-verify").unwrap().contains(".SH SYNOPSIS"));
    assert!(page("quarterdeck-man").is_err(), "a hidden command has none");
}
