//! Spans, metrics and logs to an OpenTelemetry collector.
//!
//! The libraries report spans through [`quarterdeck_contracts::telemetry`]; this crate decides which are kept, derives
//! the metrics of the conventions from them, and sends them as OTLP over HTTP. Everything in between is bounded, in
//! number and in bytes. The reporting code never waits: what does not fit is dropped and counted, so that a collector that
//! is slow, full or dead costs a counter and nothing else.
//!
//! | step | file |
//! | --- | --- |
//! | a span begins and ends | `recorder.rs` |
//! | which traces are kept | `sampling.rs`, `open_traces.rs` |
//! | the metrics of it | `instruments.rs` |
//! | waiting to be sent | `queue.rs` |
//! | sent, retried, given up | `export.rs`, `http_client.rs` |
//! | lines of the log | `log_layer.rs` |

mod convert;
mod counters;
mod export;
mod http_client;
mod instruments;
mod log_layer;
mod open_traces;
mod queue;
mod recorder;
mod sampling;
mod settings;
mod telemetry;

pub use counters::{Count, Counters, SignalCounts};
pub use log_layer::LogLayer;
pub use settings::TelemetrySettings;
pub use telemetry::{LogLines, StartError, Telemetry, WallClock};
