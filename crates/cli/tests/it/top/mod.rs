//! `quarterdeck top` against a server, as text and in a terminal.

mod pseudo_terminal;

use std::path::Path;
use std::time::Duration;

use quarterdeck_testkit::tree;
use rustix::termios::LocalModes;
use serde_json::json;

use crate::serve::{self, Server};
use crate::terminal::{command, quarterdeck};
use pseudo_terminal::PseudoTerminal;

fn chat(server: &Server) {
    let body = json!({ "message": "Is nansen@fram.no a valid address?" }).to_string();
    let (status, _, _) = server.ask("POST", "/api/chat", "content-type: application/json\r\n", &body);
    assert_eq!(status, 200);
}

fn serve_on(data: &Path, address: &str) -> Server {
    Server::begin(&mut serve::command(data, address))
}

#[test]
fn once_it_is_plain_text_and_needs_no_terminal() {
    let files = tree("");
    let server = Server::start(&files.join("data"), &[]);
    chat(&server);
    let address = server.address.to_string();
    for words in [&["top", "--once"][..], &["top"]] {
        let output = quarterdeck(files.path(), &[words, &["--server", &address]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.starts_with(&format!("quarterdeck top   {address}   ")), "{text}");
        for part in ["sessions  1 text, 0 voice; 1 since the start", "alarms    none", "kb_search", "P95 MS"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains('\u{1b}') && !text.contains("q ends"), "{text}");
    }
    drop(server);
    let gone = quarterdeck(files.path(), &["top", "--once", "--server", &address]);
    assert_eq!(gone.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&gone.stderr).contains("no server answers on"));
}

#[test]
fn in_a_terminal_it_resizes_outlives_the_server_and_leaves_the_terminal_as_it_was() {
    let files = tree("");
    let data = files.join("data");
    let server = Server::start(&data, &[]);
    let address = server.address.to_string();
    let mut terminal = PseudoTerminal::open(80, 24);
    let before = terminal.modes();
    let mut child = terminal.run(command(files.path()).args(["top", "--server", &address]));

    terminal.wait_for("the tools", |screen| screen.text().contains("kb_search"));
    terminal.wait_for("a rate", |screen| screen.text().contains("calls     0.0/s"));
    assert_eq!(terminal.screen.row(23), "q ends");
    assert!(!terminal.screen.is_overrun, "no line is longer than the window");
    assert!(!terminal.modes().contains(LocalModes::ICANON | LocalModes::ECHO), "keys need no Enter");

    terminal.resize(50, 12);
    terminal.wait_for("the small window", |screen| screen.row(11) == "q ends");
    assert!(terminal.screen.row(10).ends_with("more tools"), "{}", terminal.screen.text());
    assert!(terminal.screen.row(0).ends_with('…'), "{}", terminal.screen.text());

    drop(server);
    terminal.wait_for("the outage", |screen| screen.row(1).starts_with("NO ANSWER"));
    assert!(terminal.screen.text().contains("kb_search") || terminal.screen.text().contains("more tools"));
    let _server = serve_on(&data, &address);
    terminal.wait_for("the server again", |screen| !screen.text().contains("NO ANSWER"));
    assert!(!terminal.screen.is_overrun, "no line is longer than the small window");

    terminal.press("q");
    assert!(pseudo_terminal::wait(&mut child, Duration::from_secs(20)).success());
    terminal.wait_for("the first screen", |screen| !screen.is_alternate && screen.has_cursor);
    assert_eq!(terminal.modes(), before);
}

#[test]
fn ctrl_c_and_a_signal_end_it_and_leave_the_terminal_as_it_was() {
    let files = tree("");
    for how in ["a key", "a signal"] {
        let mut terminal = PseudoTerminal::open(80, 24);
        let before = terminal.modes();
        // No server is there; it waits for one.
        let mut child = terminal.run(command(files.path()).args(["top", "--server", "127.0.0.1:9"]));
        terminal.wait_for("the outage", |screen| screen.row(1).starts_with("NO ANSWER"));
        match how {
            "a key" => terminal.press("\u{3}"),
            _ => {
                let id = child.id().to_string();
                assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
            }
        }
        assert!(pseudo_terminal::wait(&mut child, Duration::from_secs(20)).success(), "{how}");
        terminal.wait_for("the first screen", |screen| !screen.is_alternate && screen.has_cursor);
        assert_eq!(terminal.modes(), before, "{how}");
    }
}
