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
