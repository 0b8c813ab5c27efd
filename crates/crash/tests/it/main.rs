//! Processes that are killed while they write.
//!
//! This shows that nothing acknowledged waits in the process. That nothing waits in the system's memory either is the
//! work of `synchronous=FULL`, which only a power cut could test.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on has failed, and says what it saw"
)]

mod calls;
mod commits;
mod tasks;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use quarterdeck_testkit::{PostgresServer, PostgresVersion};

/// Does something with an empty database, where PostgreSQL is installed; otherwise it is said that it is not.
fn in_a_database(work: impl FnOnce(&str)) {
    if let Some(server) = PostgresServer::shared(PostgresVersion::V18) {
        work(&server.create_database());
    }
}

/// Whether there is a further round: until enough has happened to judge. On a busy machine a process is often killed
/// before it has done anything.
fn goes_on(round: u64, at_least: u64, happened: usize) -> bool {
    round < at_least || (round < 5 * at_least && happened <= at_least as usize)
}

/// When a process is killed.
enum Kill {
    AfterLines(usize),
    /// Counted from its first line.
    After(Duration),
}

/// Returns the lines that the process had written when it was killed.
fn run_and_kill(arguments: &[String], kill: &Kill) -> Vec<String> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_quarterdeck-crash"))
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = child.stdout.take().unwrap();
    let mut lines = Vec::new();
    let mut first = None;
    for line in BufReader::new(out).lines().map_while(Result::ok) {
        lines.push(line);
        let first = *first.get_or_insert_with(Instant::now);
        match kill {
            Kill::AfterLines(count) if lines.len() == *count => child.kill().unwrap(),
            Kill::After(time) if lines.len() == 1 => {
                std::thread::sleep(time.saturating_sub(first.elapsed()));
                child.kill().unwrap();
            }
            _ => {}
        }
    }
    child.wait().unwrap();
    lines
}
