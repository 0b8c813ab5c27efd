//! Telemetry of a server: begun with the log, before anything else, and sent to its end at the stop.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use quarterdeck_contracts::telemetry::Tracer;
use quarterdeck_runtime::{Clock, Orchestrator, SystemClock};
use quarterdeck_telemetry::{Counters, LogLayer, LogLines, Telemetry, TelemetrySettings, WallClock};

/// How long a stopping server waits for the collector.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
/// How old the counters in `/metrics` may be.
const COUNTER_INTERVAL: Duration = Duration::from_secs(1);

/// Telemetry that is configured, with the lines of the log since the start.
pub(crate) struct ConfiguredTelemetry {
    settings: TelemetrySettings,
    lines: LogLines,
}

impl ConfiguredTelemetry {
    /// The layer takes the lines of the log from now on, where they are sent.
    pub(crate) fn new(settings: &TelemetrySettings) -> (Self, Option<LogLayer>) {
        let (lines, layer) = LogLines::layer(settings, wall_clock());
        (Self { settings: settings.clone(), lines }, settings.logs.then_some(layer))
    }

    fn start(&self) -> anyhow::Result<Telemetry> {
        let endpoint = &self.settings.endpoint;
        Telemetry::start(&self.settings, wall_clock(), &self.lines)
            .with_context(|| format!("telemetry cannot be sent to {endpoint}; correct `telemetry.endpoint`"))
    }
}

/// Telemetry of a running server, or none.
pub(crate) struct RunningTelemetry(Option<Telemetry>);

impl RunningTelemetry {
    pub(crate) fn start(configured: Option<&ConfiguredTelemetry>) -> anyhow::Result<Self> {
        Ok(Self(configured.map(ConfiguredTelemetry::start).transpose()?))
    }

    pub(crate) fn tracer(&self) -> Tracer {
        self.0.as_ref().map(Telemetry::tracer).unwrap_or_default()
    }

    /// Keeps the counters of `/metrics` up to date.
    pub(crate) fn count(&self, orchestrator: &Orchestrator, tasks: &mut tokio::task::JoinSet<()>) {
        let Some(telemetry) = &self.0 else { return };
        let (counters, orchestrator) = (telemetry.counters().clone(), orchestrator.clone());
        tasks.spawn(async move {
            let mut interval = tokio::time::interval(COUNTER_INTERVAL);
            loop {
                interval.tick().await;
                set_counters(&counters, &orchestrator);
            }
        });
    }

    pub(crate) async fn shut_down(self) {
        if let Some(telemetry) = self.0 {
            telemetry.shut_down(SHUTDOWN_TIMEOUT).await;
        }
    }
}

fn set_counters(counters: &Counters, orchestrator: &Orchestrator) {
    let metrics = orchestrator.metrics();
    let help = "Spans that the collector has taken.";
    metrics.set_counter("quarterdeck_telemetry_spans_exported_total", help, counters.spans.exported.get());
    let help = "Spans dropped because too many waited, or the collector did not take them.";
    let dropped = counters.spans.overflowed.get() + counters.spans.failed.get();
    metrics.set_counter("quarterdeck_telemetry_spans_dropped_total", help, dropped);
    let help = "Spans of traces that sampling has left out.";
    metrics.set_counter("quarterdeck_telemetry_spans_sampled_out_total", help, counters.sampled_out.get());
    let help = "Lines of the log that the collector has taken.";
    metrics.set_counter("quarterdeck_telemetry_logs_exported_total", help, counters.logs.exported.get());
    let help = "Lines of the log dropped because too many waited, or the collector did not take them.";
    let dropped = counters.logs.overflowed.get() + counters.logs.failed.get();
    metrics.set_counter("quarterdeck_telemetry_logs_dropped_total", help, dropped);
    let help = "Exports of metrics that the collector did not take.";
    metrics.set_counter("quarterdeck_telemetry_metrics_failed_total", help, counters.metrics.failed.get());
}

fn wall_clock() -> WallClock {
    Arc::new(|| SystemClock.now())
}
