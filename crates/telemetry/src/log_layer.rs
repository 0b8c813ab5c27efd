//! Lines of the log as records of OTLP.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::InstrumentationScope;
use opentelemetry::logs::{AnyValue, LogRecord, Logger, Severity};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{LogProcessor, SdkLogRecord, SdkLogger};
use quarterdeck_contracts::telemetry::names;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::counters::Counters;
use crate::export::LogLine;
use crate::queue::Queue;
use crate::telemetry::WallClock;

/// How many characters of a field are sent.
const MAX_FIELD_CHARS: usize = 1_000;
/// How many fields of a line are sent.
const MAX_FIELDS: usize = 32;
/// Fields that hold what handlers and users say.
const CONTENT_FIELDS: [&str; 3] = ["text", "transcript", "answer"];

/// Sends our own lines. Those of libraries are left out: the one that sends them would feed itself.
pub struct LogLayer {
    pub(crate) logger: SdkLogger,
    pub(crate) now: WallClock,
    pub(crate) captures_content: bool,
}

impl<S: Subscriber> Layer<S> for LogLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if !metadata.target().starts_with("quarterdeck")
            || metadata.target().starts_with("quarterdeck_telemetry")
        {
            return;
        }
        let mut record = self.logger.create_log_record();
        let (severity, name) = severity(*metadata.level());
        record.set_severity_number(severity);
        record.set_severity_text(name);
        record.set_target(metadata.target());
        record.set_timestamp((self.now)());
        let mut fields = Fields { record: &mut record, number: 0, captures_content: self.captures_content };
        event.record(&mut fields);
        self.logger.emit(record);
    }
}

fn severity(level: Level) -> (Severity, &'static str) {
    match level {
        Level::ERROR => (Severity::Error, "ERROR"),
        Level::WARN => (Severity::Warn, "WARN"),
        Level::INFO => (Severity::Info, "INFO"),
        Level::DEBUG => (Severity::Debug, "DEBUG"),
        Level::TRACE => (Severity::Trace, "TRACE"),
    }
}

struct Fields<'a> {
    record: &'a mut SdkLogRecord,
    number: usize,
    captures_content: bool,
}

impl Fields<'_> {
    fn add(&mut self, field: &Field, value: AnyValue) {
        let name = field.name();
        if name == "message" {
            return self.record.set_body(value);
        }
        if self.number >= MAX_FIELDS || (!self.captures_content && CONTENT_FIELDS.contains(&name)) {
            return;
        }
        self.number += 1;
        let name = match name {
            "session" => names::CONVERSATION_ID,
            "call" => names::TOOL_CALL_ID,
            "tool" => names::TOOL_NAME,
            "turn" => names::TURN,
            other => other,
        };
        self.record.add_attribute(name, value);
    }
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text: String = format!("{value:?}").chars().take(MAX_FIELD_CHARS).collect();
        self.add(field, AnyValue::String(text.into()));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let text: String = value.chars().take(MAX_FIELD_CHARS).collect();
        self.add(field, AnyValue::String(text.into()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, AnyValue::Int(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, AnyValue::Int(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, AnyValue::Double(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, AnyValue::Boolean(value));
    }
}

/// Puts records into the queue.
#[derive(Debug)]
pub(crate) struct QueueProcessor {
    pub(crate) queue: Arc<Queue<LogLine>>,
    pub(crate) counters: Arc<Counters>,
}

impl LogProcessor for QueueProcessor {
    fn emit(&self, record: &mut SdkLogRecord, scope: &InstrumentationScope) {
        if !self.queue.push((record.clone(), scope.clone())) {
            self.counters.logs.overflowed.add(1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}
