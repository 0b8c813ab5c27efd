//! `[telemetry]`: the OpenTelemetry collector, and what it is sent.

use quarterdeck_telemetry::TelemetrySettings;

use super::kinds::{base_url, boolean, seconds, short_line, whole};
use super::origin::Origin;
use super::reader::{Reader, settings};

/// The variables that every OpenTelemetry program reads. Keys of our own win over them.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";

#[derive(Debug, Clone)]
pub(crate) struct TelemetryConfig {
    /// Absent: nothing is recorded.
    pub(crate) settings: Option<TelemetrySettings>,
}

pub(super) fn telemetry(from: &mut Reader) -> TelemetryConfig {
    from.table("telemetry", "Spans, metrics and logs to an OpenTelemetry collector.");
    let about = "The collector's base URL, for OTLP over HTTP, such as http://127.0.0.1:4318; the variable \
                 OTEL_EXPORTER_OTLP_ENDPOINT does as well. Without it nothing is recorded";
    let given = from.optional("endpoint", base_url(&["https", "http"]), about);
    let by_variable = from.variables.get(ENDPOINT).map(str::to_owned);
    let endpoint = given.or_else(|| {
        let url = by_variable?;
        from.set_effective("telemetry.endpoint", url.as_str(), Some(Origin::Variable(ENDPOINT.into())));
        Some(url)
    });
    let mut chosen = TelemetrySettings::new(endpoint.clone().unwrap_or_default());
    if let Some(name) = from.variables.get(SERVICE_NAME) {
        chosen.service_name = name.to_owned();
    }
    let mut percent = 100_u64;
    settings! { from;
        "service_name": short_line(100) => chosen.service_name,
            "The name of this service; the variable OTEL_SERVICE_NAME does as well";
        "sampling_percent": whole(0, 100) => percent,
            "How many of a hundred traces are kept; those with an error or a refusal are kept in any case";
        "content": boolean() => chosen.content,
            "Whether arguments and results of tools are in spans, and texts of handlers in logs; sensitive arguments are \
             hidden in any case, as in the audit trail";
        "accept_traceparent": boolean() => chosen.accepts_parents,
            "Whether requests with a `traceparent` go on with that trace. Switch it off where strangers can reach the server \
             without a proxy that removes the header";
        "traces": boolean() => chosen.traces, "Whether spans are sent";
        "metrics": boolean() => chosen.metrics, "Whether metrics are sent";
        "logs": boolean() => chosen.logs, "Whether the lines of the log are sent";
        "interval_seconds": seconds(1, 300) => chosen.interval, "How often spans and lines are sent";
        "metrics_interval_seconds": seconds(1, 3_600) => chosen.metrics_interval, "How often metrics are sent";
        "timeout_seconds": seconds(1, 60) => chosen.timeout, "How long the collector may take for a request";
    }
    chosen.sampling = percent as f64 / 100.0;
    TelemetryConfig { settings: endpoint.map(|_| chosen) }
}
