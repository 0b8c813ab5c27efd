//! Sends what waits in a queue, batch by batch.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::InstrumentationScope;
use opentelemetry_otlp::{LogExporter, SpanExporter};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{LogBatch, LogExporter as _, SdkLogRecord};
use opentelemetry_sdk::trace::SpanExporter as _;
use quarterdeck_contracts::telemetry::SpanData;

use crate::convert::exported;
use crate::counters::{Counters, SignalCounts};
use crate::queue::{Measured, Queue};

/// How often a batch is tried before it is given up.
const MAX_ATTEMPTS: u32 = 3;
/// The pause after the first failure in a row; it doubles with each further one.
const RETRY_BACKOFF: Duration = Duration::from_secs(1);
const MAX_RETRY_BACKOFF: Duration = Duration::from_secs(30);

impl Measured for LogLine {
    fn bytes(&self) -> usize {
        // Lines are cut before they are made records.
        size_of::<Self>() + 512
    }
}

/// What a line of the log is while it waits.
pub(crate) type LogLine = (SdkLogRecord, InstrumentationScope);

/// Sends batches of one signal.
pub(crate) trait Sender: Send + Sync + 'static {
    type Item: Measured + Clone + Send + Sync + 'static;

    fn send(&self, batch: Vec<Self::Item>) -> impl Future<Output = OTelSdkResult> + Send;

    fn signal(&self) -> &'static str;
}

pub(crate) struct SpanSender {
    pub(crate) exporter: SpanExporter,
    pub(crate) scope: InstrumentationScope,
}

impl Sender for SpanSender {
    type Item = SpanData;

    async fn send(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.exporter.export(batch.into_iter().map(|span| exported(span, &self.scope)).collect()).await
    }

    fn signal(&self) -> &'static str {
        "spans"
    }
}

pub(crate) struct LogSender(pub(crate) LogExporter);

impl Sender for LogSender {
    type Item = LogLine;

    async fn send(&self, batch: Vec<LogLine>) -> OTelSdkResult {
        let lines: Vec<_> = batch.iter().map(|(record, scope)| (record, scope)).collect();
        self.0.export(LogBatch::new(&lines)).await
    }

    fn signal(&self) -> &'static str {
        "logs"
    }
}

/// Sends until the queue is closed and empty. After a failure the queue fills meanwhile, and drops what does not fit.
pub(crate) async fn run<S: Sender>(
    sender: S,
    queue: Arc<Queue<S::Item>>,
    counters: Arc<Counters>,
    counts: fn(&Counters) -> &SignalCounts,
    interval: Duration,
) {
    let counts = counts(&counters);
    let mut failures = 0_u32;
    loop {
        let batch = queue.take_batch();
        if batch.is_empty() {
            if queue.is_closed() {
                return;
            }
            let _ = tokio::time::timeout(interval, queue.wait_for_batch()).await;
            continue;
        }
        send_batch(&sender, &queue, batch, counts, &mut failures).await;
    }
}

async fn send_batch<S: Sender>(
    sender: &S,
    queue: &Queue<S::Item>,
    batch: Vec<S::Item>,
    counts: &SignalCounts,
    failures: &mut u32,
) {
    let number = batch.len();
    for attempt in 1..=MAX_ATTEMPTS {
        let Err(error) = sender.send(batch.clone()).await else {
            counts.exported.add(number);
            if std::mem::take(failures) > 0 {
                tracing::info!(signal = sender.signal(), "telemetry collector answers again");
            }
            return;
        };
        *failures = failures.saturating_add(1);
        if *failures == 1 {
            let signal = sender.signal();
            tracing::warn!(signal, error = %error, "telemetry collector did not take a batch");
        }
        // Nothing more will come, and the operator who stops the server waits.
        if queue.is_closed() || attempt == MAX_ATTEMPTS {
            break;
        }
        let pause = RETRY_BACKOFF.saturating_mul(1 << (*failures - 1).min(5)).min(MAX_RETRY_BACKOFF);
        let _ = tokio::time::timeout(pause, queue.wait_for_close()).await;
    }
    counts.failed.add(number);
}
