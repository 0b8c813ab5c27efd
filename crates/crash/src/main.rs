//! A process for crash tests: they start it, kill it, and check what is left.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "it is a test, in a process of its own")]

mod calls;
mod commits;
mod tasks;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["commits", path, round] => commits::run(path, round),
        ["calls", folder, calls @ ..] => calls::run(folder, calls),
        ["tasks", folder, round] => tasks::run(folder, round, false),
        ["tasks-end", folder, round] => tasks::run(folder, round, true),
        _ => panic!("crash commits STORE ROUND, crash calls FOLDER CALL…, or crash tasks FOLDER ROUND"),
    }
}
