//! What tools and models cost in time and in tokens.

mod counters;
mod mcp;
mod model;
mod node;
mod prometheus;
mod recent;
mod response_chars;
mod tool;
mod upstreams;
mod version;
mod voice;
mod window;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use quarterdeck_contracts::{ErrorType, Mode};
use serde_json::{Map, Value, json};

pub use counters::{Counters, MetricsSnapshot, Percentiles, ToolCounters};
pub use mcp::McpOutcome;
use mcp::McpRequests;
pub use model::ModelEvent;
use model::ModelMetrics;
use node::NodeCounts;
pub use node::{ForwardOutcome, LeaseEvent};
use prometheus::Exporter;
pub(crate) use response_chars::response_chars;
use tool::ToolMetrics;
pub use upstreams::UpstreamLatency;
use upstreams::UpstreamMetrics;
pub use version::VersionCounters;
use version::VersionMetrics;
pub use voice::FirstAudioLatency;
use voice::VoiceMetrics;

use crate::audit::LostLines;

/// Counters of all calls and sessions. Cheap enough for every call, and bounded: one window per tool that exists.
#[derive(Debug, Default)]
pub struct Metrics {
    counts: Mutex<Counts>,
    tracked_turns: TrackedTurns,
    mcp_requests: McpRequests,
    node_counts: NodeCounts,
    commits: OnceLock<metrics::Histogram>,
    lost_audit_lines: OnceLock<LostLines>,
    exporter: Exporter,
}

#[derive(Debug, Default)]
struct Counts {
    tools: BTreeMap<Arc<str>, ToolMetrics>,
    models: ModelMetrics,
    voice_models: VoiceMetrics,
    upstreams: UpstreamMetrics,
    versions: VersionMetrics,
    text: u64,
    voice: u64,
    total: u64,
    turns: u64,
    context: Context,
}

/// Counts the turns that loop detection holds of all sessions.
pub(crate) type TrackedTurns = Arc<AtomicU64>;

/// Use of the model's context window, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Context {
    /// The system prompt of the last session.
    system_prompt: u64,
    declarations: u64,
    /// The most that any session has used.
    peak: u64,
}

/// One answer of a handler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) size: usize,
    pub(crate) duration: Duration,
    pub(crate) error: Option<ErrorType>,
    /// Whether it took longer than its soft limit.
    pub(crate) slow: bool,
    /// When it came, in milliseconds since 1970.
    pub(crate) ended_ms: u64,
}

impl Metrics {
    pub(crate) fn record_execution(&self, tool: &Arc<str>, sample: Sample) {
        let warns = self.tool(tool, |metrics| metrics.record_execution(sample));
        if let Some(p95) = warns {
            tracing::warn!(tool = %tool, p95, "responses of a tool are large");
        }
    }

    pub(crate) fn record_replay(&self, tool: &Arc<str>) {
        self.tool(tool, |metrics| metrics.cache_hits += 1);
    }

    pub(crate) fn record_refusal(&self, tool: &Arc<str>, gate: &str) {
        self.tool(tool, |metrics| metrics.record_refusal(gate));
    }

    pub(crate) fn session_opened(&self, mode: Mode) {
        let mut counts = self.lock();
        counts.total += 1;
        *counts.open(mode) += 1;
    }

    pub(crate) fn session_ended(&self, mode: Mode) {
        let mut counts = self.lock();
        let open = counts.open(mode);
        *open = open.saturating_sub(1);
    }

    pub(crate) fn turn_started(&self) {
        self.lock().turns += 1;
    }

    /// What a session's ledger counts its turns in.
    pub(crate) fn tracked_turns(&self) -> TrackedTurns {
        self.tracked_turns.clone()
    }

    /// Records the tokens that a session starts with, and warns when the model's window is nearly full.
    pub fn context(&self, system_prompt: u64, declarations: u64, used: u64, window: u64) {
        let mut counts = self.lock();
        let peak = counts.context.peak.max(used);
        counts.context = Context { system_prompt, declarations, peak };
        drop(counts);
        if window > 0 && used * 10 > window * 9 {
            tracing::warn!(used, window, "more than 90 % of the model's window is used");
        }
    }

    /// Has the lines that an audit log could not write counted here as well.
    pub(crate) fn follow_audit(&self, lost: LostLines) {
        // Those who share metrics share the log.
        let _ = self.lost_audit_lines.set(lost);
    }

    fn lost_audit_lines(&self) -> u64 {
        self.lost_audit_lines.get().map_or(0, LostLines::total)
    }

    /// Has every series carry the name of this node. To be called before anything is counted.
    pub(crate) fn name_node(&self, name: &str) {
        self.exporter.name_node(name);
    }

    /// As JSON, for operators and scripts.
    pub fn json(&self) -> Value {
        let counts = self.lock();
        let each = |value: fn(&ToolMetrics) -> Value| -> Map<String, Value> {
            counts.tools.iter().map(|(tool, metrics)| (tool.to_string(), value(metrics))).collect()
        };
        json!({
            "responseSizes": each(ToolMetrics::sizes),
            "responseTokens": each(ToolMetrics::tokens),
            "latency": each(ToolMetrics::latency),
            "context": {
                "sessionInitTokens": counts.context.system_prompt + counts.context.declarations,
                "systemPromptTokens": counts.context.system_prompt,
                "toolDeclTokens": counts.context.declarations,
                "peakTokens": counts.context.peak,
            },
            "loopDetection": {
                "activeSessions": counts.text + counts.voice,
                "totalTurnsTracked": self.tracked_turns.load(Ordering::Relaxed),
            },
            "tools": each(ToolMetrics::totals),
            "models": counts.models.json(),
            "voice": counts.voice_models.json(),
            "versions": counts.versions.json(),
            "mcp": self.mcp_requests.json(),
            "sessions": {
                "active": counts.text + counts.voice, "text": counts.text, "voice": counts.voice, "total": counts.total,
            },
            "audit": { "lostLines": self.lost_audit_lines() },
        })
    }

    /// In the text format of Prometheus.
    pub fn prometheus(&self) -> String {
        prometheus::export(&self.lock(), &self.exporter);
        let help = "Audit lines that could not be kept.";
        self.set_counter("quarterdeck_audit_lost_lines_total", help, self.lost_audit_lines());
        self.mcp_requests.export(&self.exporter);
        self.exporter.render()
    }

    /// Sets a counter that is kept elsewhere, for [`Metrics::prometheus`].
    pub fn set_counter(&self, name: &'static str, help: &'static str, value: u64) {
        self.exporter.counter(name, help, &[], value);
    }

    /// Sets a gauge that is kept elsewhere, for [`Metrics::prometheus`].
    pub fn set_gauge(&self, name: &'static str, help: &'static str, value: f64) {
        self.exporter.gauge(name, help, &[], value);
    }

    /// Says how long the certificate of a file is still good.
    pub fn set_certificate_days_left(&self, file: &str, days: f64) {
        let help = "Days until a certificate is over.";
        self.exporter.gauge("quarterdeck_certificate_days_left", help, &[("file", file)], days);
    }

    /// To be called now and then: what histograms have not put into buckets yet takes memory.
    pub(crate) fn run_upkeep(&self) {
        self.exporter.run_upkeep();
    }

    fn tool<T>(&self, tool: &Arc<str>, update: impl FnOnce(&mut ToolMetrics) -> T) -> T {
        let mut counts = self.lock();
        match counts.tools.get_mut(tool) {
            Some(metrics) => update(metrics),
            None => update(
                counts.tools.entry(tool.clone()).or_insert_with(|| ToolMetrics::new(&self.exporter, tool)),
            ),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn open(&mut self, mode: Mode) -> &mut u64 {
        match mode {
            Mode::Text => &mut self.text,
            Mode::Voice => &mut self.voice,
        }
    }
}

#[cfg(test)]
mod tests;
