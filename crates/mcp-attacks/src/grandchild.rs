//! Processes that do not go away by themselves.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Stays, for as long as a test could last.
pub(crate) fn linger() {
    std::thread::sleep(Duration::from_secs(600));
}

/// Starts a process that stays when this one is gone, and returns its id.
#[expect(clippy::zombie_processes, reason = "that nothing waits for it is the point")]
pub(crate) fn start() -> u32 {
    let program = std::env::current_exe().unwrap();
    let child = Command::new(program)
        .arg("linger")
        .stdin(Stdio::null())
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    child.id()
}

/// Becomes the same program with SIGTERM, SIGINT and SIGHUP ignored, and one more argument: a shell's `trap` survives `exec`.
pub(crate) fn ignore_signals(argument: &str) {
    let error = Command::new("/bin/sh")
        .args(["-c", "trap '' TERM INT HUP; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(std::env::args_os().skip(1))
        .arg(argument)
        .exec();
    panic!("the shell did not start: {error}");
}
