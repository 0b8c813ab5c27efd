//! Puts the parts together, and takes them apart at the end.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use opentelemetry::InstrumentationScope;
use opentelemetry::logs::LoggerProvider;
use opentelemetry::metrics::MeterProvider;
use opentelemetry_otlp::{
    ExporterBuildError, LogExporter, MetricExporter, Protocol, RetryPolicy, SpanExporter, WithExportConfig,
    WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{LogExporter as _, SdkLoggerProvider};
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider, Temporality};
use opentelemetry_sdk::trace::SpanExporter as _;
use quarterdeck_contracts::telemetry::Tracer;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::counters::Counters;
use crate::export::{LogLine, LogSender, SpanSender, run};
use crate::http_client::CollectorClient;
use crate::instruments::Instruments;
use crate::log_layer::{LogLayer, QueueProcessor};
use crate::queue::Queue;
use crate::recorder::Recorder;
use crate::sampling::Ratio;
use crate::settings::TelemetrySettings;

/// The instrumentation scope of everything that is sent.
const SCOPE: &str = "quarterdeck";

/// The time of day.
pub type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Telemetry that runs. Dropping it leaves what waits unsent.
pub struct Telemetry {
    tracer: Tracer,
    counters: Arc<Counters>,
    spans: Arc<Queue<quarterdeck_contracts::telemetry::SpanData>>,
    lines: Arc<Queue<LogLine>>,
    senders: Vec<JoinHandle<()>>,
    meters: Option<SdkMeterProvider>,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    #[error("no HTTP client for the telemetry collector can be made")]
    Client(#[from] reqwest::Error),
    #[error("the telemetry collector cannot be used")]
    Exporter(#[from] ExporterBuildError),
}

impl Telemetry {
    /// Starts sending, on the runtime that it is called on.
    pub fn start(settings: &TelemetrySettings, now: WallClock, lines: &LogLines) -> Result<Self, StartError> {
        let client = Arc::new(CollectorClient::new(settings.timeout, Handle::current())?);
        let resource = resource(settings);
        let scope =
            InstrumentationScope::builder(SCOPE).with_version(settings.service_version.clone()).build();
        let counters = lines.counters.clone();
        let spans = Arc::new(Queue::default());
        let mut senders = Vec::new();
        if settings.traces {
            let mut exporter =
                configured(SpanExporter::builder().with_http(), settings, "traces", &client).build()?;
            exporter.set_resource(&resource);
            let sender = SpanSender { exporter, scope };
            let (queue, counters) = (spans.clone(), counters.clone());
            senders.push(tokio::spawn(run(sender, queue, counters, |all| &all.spans, settings.interval)));
        }
        if settings.logs {
            let mut exporter =
                configured(LogExporter::builder().with_http(), settings, "logs", &client).build()?;
            exporter.set_resource(&resource);
            let (queue, counters) = (lines.queue.clone(), counters.clone());
            senders.push(tokio::spawn(run(
                LogSender(exporter),
                queue,
                counters,
                |all| &all.logs,
                settings.interval,
            )));
        }
        let meters = match settings.metrics {
            true => Some(meters(settings, &client, resource, &counters)?),
            false => None,
        };
        let instruments = meters.as_ref().map(|meters| Instruments::new(&meters.meter(SCOPE)));
        let recorder = Recorder {
            now,
            ratio: Ratio::new(settings.sampling),
            captures_content: settings.content,
            accepts_parents: settings.accepts_parents,
            sends_spans: settings.traces,
            traces: Mutex::default(),
            queue: spans.clone(),
            instruments,
            counters: counters.clone(),
        };
        let tracer = Tracer::new(Arc::new(recorder));
        Ok(Self { tracer, counters, spans, lines: lines.queue.clone(), senders, meters })
    }

    pub fn tracer(&self) -> Tracer {
        self.tracer.clone()
    }

    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Sends what waits, for as long as this at most.
    pub async fn shut_down(self, timeout: Duration) {
        self.spans.close();
        self.lines.close();
        let meters = self.meters;
        // It waits for a thread of its own.
        let metrics = tokio::task::spawn_blocking(move || {
            if let Some(meters) = meters {
                let _ = meters.shutdown_with_timeout(timeout);
            }
        });
        let sent = async {
            for sender in self.senders {
                let _ = sender.await;
            }
            let _ = metrics.await;
        };
        let _ = tokio::time::timeout(timeout, sent).await;
    }
}

/// Lines of the log, which are there before anything can be sent.
pub struct LogLines {
    queue: Arc<Queue<LogLine>>,
    counters: Arc<Counters>,
}

impl LogLines {
    /// The layer that takes lines, and what [`Telemetry::start`] sends them from.
    pub fn layer(settings: &TelemetrySettings, now: WallClock) -> (Self, LogLayer) {
        let lines = Self { queue: Arc::default(), counters: Arc::default() };
        let processor = QueueProcessor { queue: lines.queue.clone(), counters: lines.counters.clone() };
        let provider = SdkLoggerProvider::builder().with_log_processor(processor).build();
        let logger = provider.logger(SCOPE);
        (lines, LogLayer { logger, now, captures_content: settings.content })
    }
}

fn resource(settings: &TelemetrySettings) -> Resource {
    // `OTEL_RESOURCE_ATTRIBUTES` is read by the builder.
    Resource::builder()
        .with_service_name(settings.service_name.clone())
        .with_attribute(opentelemetry::KeyValue::new("service.version", settings.service_version.clone()))
        .build()
}

fn configured<B: WithExportConfig + WithHttpConfig>(
    builder: B,
    settings: &TelemetrySettings,
    signal: &str,
    client: &Arc<CollectorClient>,
) -> B {
    builder
        .with_endpoint(settings.url(signal))
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(settings.timeout)
        .with_headers(settings.headers.clone())
        // Retries are ours, because those of the exporter sleep on the thread that asks.
        .with_retry_policy(RetryPolicy::disabled())
        .with_shared_http_client(client.clone())
}

fn meters(
    settings: &TelemetrySettings,
    client: &Arc<CollectorClient>,
    resource: Resource,
    counters: &Arc<Counters>,
) -> Result<SdkMeterProvider, StartError> {
    let exporter = configured(MetricExporter::builder().with_http(), settings, "metrics", client).build()?;
    let exporter = CountedExporter { exporter, counters: counters.clone() };
    let reader = PeriodicReader::builder(exporter).with_interval(settings.metrics_interval).build();
    Ok(SdkMeterProvider::builder().with_reader(reader).with_resource(resource).build())
}

/// Counts what becomes of each export.
struct CountedExporter {
    exporter: MetricExporter,
    counters: Arc<Counters>,
}

impl PushMetricExporter for CountedExporter {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let result = self.exporter.export(metrics).await;
        let counts = &self.counters.metrics;
        if result.is_ok() { &counts.exported } else { &counts.failed }.add(1);
        result
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.exporter.temporality()
    }
}
