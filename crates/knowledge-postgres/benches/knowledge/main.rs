//! The knowledge base in a real database: quality on a judged set, and the time of searches at a size.
//!
//! `knowledge quality SET MODEL VECTORS` and `knowledge scale SET MODEL VECTORS COUNT`, with the folder of a set in BEIR's
//! form, the folder of an embedding model, and a file that keeps the vectors of the set for the next time. Reports are
//! JSON on standard output. `scripts/bench-knowledge` runs it.
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "the report")]

mod quality;
mod scale;
mod world;

use std::path::Path;

use crate::world::Set;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let report = match arguments[..] {
        ["quality", set, model, vectors] => {
            let set = Set::load(Path::new(set), Path::new(model), Path::new(vectors));
            runtime.block_on(quality::measure(&set))
        }
        ["scale", set, model, vectors, count] => {
            let set = Set::load(Path::new(set), Path::new(model), Path::new(vectors));
            runtime.block_on(scale::measure(&set, count.parse().unwrap()))
        }
        // `cargo test --benches` runs it with nothing to measure.
        _ => return println!("{{}}"),
    };
    println!("{report:#}");
}
