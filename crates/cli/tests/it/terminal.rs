//! A terminal for the tests.

use std::path::Path;
use std::process::{Command, Output};

use expect_test::Expect;

pub(crate) fn quarterdeck(folder: &Path, arguments: &[&str]) -> Output {
    command(folder).args(arguments).output().unwrap()
}

pub(crate) fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quarterdeck"));
    // A commit and a time that do not change from run to run.
    command.current_dir(folder).env("SOURCE_DATE_EPOCH", "1768294800").env("GIT_CEILING_DIRECTORIES", "/");
    command
}

/// Exit code, standard output and standard error.
pub(crate) fn check(folder: &Path, arguments: &[&str], expected: Expect) {
    let output = quarterdeck(folder, arguments);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let seen = format!(
        "exit {}\n--- stdout\n{}--- stderr\n{}",
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr)
    );
    expected.assert_eq(&seen);
}

pub(crate) fn stdout_json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap()
}
