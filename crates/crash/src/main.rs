//! A process for crash tests: they start it, kill it, and check what is left.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "it is a test, in a process of its own")]

mod calls;
mod commits;
mod tasks;

use quarterdeck_contracts::Store;
use quarterdeck_runtime::NodeParts;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["commits", store, round] => commits::run(store, round),
        ["calls", folder, store, calls @ ..] => calls::run(folder, store, calls),
        ["tasks", folder, store, round] => tasks::run(folder, store, round, false),
        ["tasks-end", folder, store, round] => tasks::run(folder, store, round, true),
        _ => {
            panic!(
                "crash commits STORE ROUND, crash calls FOLDER STORE CALL…, or crash tasks FOLDER STORE ROUND"
            )
        }
    }
}

/// On a database a process is a node: what its predecessor has sent may still arrive there after its death.
fn node_on(store: &dyn Store) -> Option<NodeParts> {
    let node = || NodeParts { name: "killed".into(), address: "http://killed.test".into() };
    store.is_shared().then(node)
}
