//! An MCP server that does one thing wrong: `hostile-mcp-server BEHAVIOUR NOTES`, or with HTTP
//! `hostile-mcp-server http BEHAVIOUR NOTES [URL STATUS]`, which prints its port.
//!
//! It writes down everything that it receives in the file NOTES, one JSON object per line, so that a test can count.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "it is a test, in a process of its own")]

mod calls;
mod grandchild;
mod http;
mod lists;
mod notes;
mod stdio;

use quarterdeck_mcp_attacks::{BEHAVIOURS, HTTP_BEHAVIOURS};

use crate::notes::Notes;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["linger"] => grandchild::linger(),
        ["http", behaviour, notes, more @ ..] => {
            known(HTTP_BEHAVIOURS, behaviour);
            http::serve(behaviour, Notes::open(notes), more);
        }
        [behaviour, notes, more @ ..] => {
            known(BEHAVIOURS, behaviour);
            stdio::serve(behaviour, notes, more);
        }
        _ => panic!("hostile-mcp-server [http] BEHAVIOUR NOTES"),
    }
}

fn known(behaviours: &[(&str, &str)], name: &str) {
    assert!(behaviours.iter().any(|(known, _)| known == &name), "there is no behaviour {name}");
}
