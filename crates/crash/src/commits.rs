//! Commits as fast as it can, and prints the acknowledged keys.

use std::thread;

use quarterdeck_contracts::{Commit, Table};
use quarterdeck_testkit::{block_on, open_store};
use serde_json::json;

const WRITERS: usize = 8;

pub(crate) fn run(store: &str, round: &str) {
    let store = open_store(store);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let store = &store;
            scope.spawn(move || {
                for n in 0..100_000 {
                    let key = format!("{round}/{writer}/{n}");
                    let value = json!("x".repeat(n % 2000));
                    let commit = Commit::default().put(Table::Calls, key.as_str(), value.clone()).put(
                        Table::Values,
                        key.as_str(),
                        value,
                    );
                    block_on(store.commit(commit)).unwrap();
                    println!("{key}");
                }
            });
        }
    });
}
