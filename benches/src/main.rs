//! Our side of `make bench`. Each run prints one JSON line with `ns` and `cpu_ns` per call, as the peers' programs do.
//!
//! usage: `quarterdeck-benches build|validate|obj|text|session|disk|idle|js|js-rest|js-turns|js-json|js-compute [FIXTURES] [CALLS]`
//!
//! `js-parked` tells the memory of a call that waits, `js-loops` how ordinary calls fare beside endless ones.
//! `load PORT STREAMS TOKENS PID [PATH]` is the client of `scripts/bench-server`.
//! `relay PORT UPSTREAM_PORT` is the voice agent for the load generator of `scripts/bench-voice`, without an ear of its own;
//! `relay-with-ear` is the same with one, as calls have it by default.
//! `pipeline-load PORT ENGINES_PORT CALLS TURNS` is the client of `scripts/bench-pipeline`, and the engines that it measures without.
//! `mcp PORT FIXTURES` is the MCP server for the load generator of `scripts/bench-mcp`.
//! `quarterdeck-benches knowledge [RECORDS]` measures the knowledge base with so many made-up records, and prints many
//! figures at once.
//! `commits URL_OR_FOLDER WRITERS SECONDS` measures durable commits on PostgreSQL or SQLite.
//! `cluster-load PORTS CLIENTS SECONDS TURNS_PER_CHAT` is the client of `scripts/bench-cluster`.
//! `scale [COSTS] [PLOT]` simulates many nodes and databases from what turns and calls were measured to cost.
//!
//! FIXTURES is a folder with `kb_search.schema.json`, `kb_search.args.json` and `handler.mjs`; without it, our own in
//! `benches/fixtures` are used.

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

mod build;
mod cluster_load;
mod commits;
mod dispatch;
mod engine;
mod fixtures;
mod knowledge;
mod load;
mod mcp;
mod pipeline_load;
mod relay;
mod rounds;
mod scale;
mod sessions;

use std::path::Path;

use serde_json::json;

use crate::rounds::PerCall;

/// The same as the product's.
#[global_allocator]
static ALLOCATOR: quarterdeck_allocator::Allocator = quarterdeck_allocator::Allocator;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let what = arguments.first().map_or("build", String::as_str);
    match (what, arguments.get(1)) {
        ("load", _) => return load(&arguments[1..]),
        ("knowledge", records) => {
            let records = records.and_then(|records| records.parse().ok()).unwrap_or(10_000);
            return println!("{}", knowledge::measure(records));
        }
        ("commits", Some(place)) => {
            let number = |at: usize| arguments.get(at).and_then(|text| text.parse().ok());
            let (writers, seconds) = (number(2).unwrap_or(16.0), number(3).unwrap_or(5.0));
            return println!("{}", commits::run(place, writers as usize, seconds));
        }
        ("pipeline-load", _) => {
            let number = |place: usize| -> usize {
                let number = arguments.get(place).and_then(|text| text.parse().ok());
                number.expect("PORT ENGINES_PORT CALLS TURNS")
            };
            let (port, engines) = (number(1) as u16, number(2) as u16);
            return println!("{}", pipeline_load::run(port, engines, number(3), number(4)));
        }
        ("js-parked", _) => return println!("{}", engine::parked()),
        ("js-loops", _) => return println!("{}", engine::beside_loops()),
        ("cluster-load", Some(ports)) => return cluster_load(ports, &arguments[2..]),
        ("scale", costs) => {
            let told = scale::run(costs.map(String::as_str), arguments.get(2).map(String::as_str));
            return print!("{}", told.unwrap_or_else(|problem| panic!("{problem}")));
        }
        ("knowledge-opened", Some(file)) => {
            return println!("{}", knowledge::measure_search(Path::new(file)));
        }
        _ => {}
    }
    let folder = arguments.get(1).map_or(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"), String::as_str);
    let port = |place: usize| -> u16 {
        arguments.get(place).and_then(|text| text.parse().ok()).expect("a port is a number")
    };
    if what == "mcp" {
        let folder = arguments.get(2).expect("the folder of the peers' fixtures");
        let registry = dispatch::World::native(&fixtures::read(Path::new(folder))).registry;
        return mcp::run(registry, port(1));
    }
    if what == "relay" || what == "relay-with-ear" {
        let fixtures = fixtures::read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures")));
        let registry = dispatch::World::native(&fixtures).registry;
        return relay::run(registry, port(1), port(2), what == "relay-with-ear");
    }
    let calls = arguments.get(2).and_then(|calls| calls.parse().ok());
    let fixtures = fixtures::read(Path::new(folder));
    if what == "idle" {
        let bytes = sessions::idle(&fixtures, calls.unwrap_or(10_000));
        println!("{}", json!({ "name": what, "ns": bytes, "cpu_ns": bytes }));
        return;
    }
    let PerCall { wall, cpu } = match what {
        "build" => build::run(),
        "validate" => dispatch::validate(&fixtures, calls.unwrap_or(500_000)),
        "obj" => dispatch::objects(&fixtures, calls.unwrap_or(200_000)),
        "session" => sessions::orchestrated(&fixtures, calls.unwrap_or(200_000)),
        "disk" => sessions::on_disk(&fixtures, calls.unwrap_or(5_000)),
        "text" => dispatch::texts(&fixtures, calls.unwrap_or(200_000)),
        "js" => dispatch::javascript(&fixtures, "execute", calls.unwrap_or(1_000)),
        "js-rest" => dispatch::javascript_after_rest(&fixtures, calls.unwrap_or(1_000)),
        "js-turns" => dispatch::javascript_in_turn(&fixtures, calls.unwrap_or(5_000)),
        "js-json" => dispatch::javascript(&fixtures, "executeJson", calls.unwrap_or(500)),
        "js-compute" => dispatch::javascript(&fixtures, "executeCompute", calls.unwrap_or(500)),
        other => panic!("{other} is not a measurement"),
    };
    println!("{}", json!({ "name": what, "ns": wall.as_nanos() as u64, "cpu_ns": cpu.as_nanos() as u64 }));
}

/// Chats with the nodes on these ports, separated by commas.
fn cluster_load(ports: &str, arguments: &[String]) {
    let ports: Vec<u16> = ports.split(',').map(|port| port.parse().expect("a port is a number")).collect();
    let number = |place: usize| -> f64 {
        arguments.get(place).and_then(|text| text.parse().ok()).expect("PORTS CLIENTS SECONDS TURNS_PER_CHAT")
    };
    println!("{}", cluster_load::run(&ports, number(0) as usize, number(1), number(2) as usize));
}

/// Follows streams: ours, or a peer's when there is a path.
fn load(arguments: &[String]) {
    let number = |place: usize| -> usize {
        arguments.get(place).and_then(|text| text.parse().ok()).expect("PORT STREAMS TOKENS PID [PATH]")
    };
    let endpoint = arguments.get(4).map_or(load::Endpoint::Ours, |path| load::Endpoint::Peer(path.clone()));
    println!("{}", load::run(number(0) as u16, number(1), number(2), number(3) as u32, &endpoint));
}
