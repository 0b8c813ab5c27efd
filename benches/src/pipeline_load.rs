//! Many calls at once with a server whose voice is a pipeline, and the engines of that pipeline.
//!
//! usage: `quarterdeck-benches pipeline-load PORT ENGINES_PORT CALLS TURNS`
//!
//! Every engine answers after a time that is known, so what is measured beyond that is the server's own. A transcript carries
//! the number of its request, by which a call finds out when the engine was asked.

mod call;
mod engines;

use std::time::Duration;

use serde_json::{Value, json};

/// How long each engine takes for its first, and only, piece.
const TRANSCRIPTION_DELAY: Duration = Duration::from_millis(200);
const REPLY_DELAY: Duration = Duration::from_millis(200);
const SPEECH_DELAY: Duration = Duration::from_millis(100);

/// One answer, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Measured {
    /// From the last frame of speech to the request for its transcript: what the ear waits for is in it.
    end_of_turn_ms: f64,
    /// From that request to the first audio, without what the engines take.
    added_ms: f64,
}

/// Holds so many calls of so many turns each.
pub(crate) fn run(port: u16, engines: u16, calls: usize, turns: usize) -> Value {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let measured: Vec<Measured> = runtime.block_on(async {
        let log = engines::listen(engines).await;
        let tasks: Vec<_> =
            (0..calls).map(|number| tokio::spawn(call::hold(port, log.clone(), number, turns))).collect();
        let mut measured = Vec::new();
        for task in tasks {
            measured.extend(task.await.expect("a call"));
        }
        measured
    });
    let percentiles = |of: fn(&Measured) -> f64| {
        let mut values: Vec<f64> = measured.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        let at = |part: usize| values[(values.len() - 1) * part / 100];
        (at(50), at(95))
    };
    let (added_p50, added_p95) = percentiles(|measured| measured.added_ms);
    let (end_p50, end_p95) = percentiles(|measured| measured.end_of_turn_ms);
    json!({
        "answers": measured.len(), "added_p50_ms": added_p50, "added_p95_ms": added_p95,
        "end_of_turn_p50_ms": end_p50, "end_of_turn_p95_ms": end_p95,
    })
}
