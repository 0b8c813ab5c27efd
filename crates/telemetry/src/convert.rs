//! Spans as the exporter takes them.

use opentelemetry::trace::{
    Event, Link, SpanContext, SpanId, SpanKind as Kind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue, Value};
use opentelemetry_sdk::trace::{SpanData as ExportedSpan, SpanEvents, SpanLinks};
use quarterdeck_contracts::telemetry::{
    Attribute, AttributeValue, SpanData, SpanEvent, SpanKind, SpanStatus, TraceContext,
};

use crate::queue::Measured;

impl Measured for SpanData {
    fn bytes(&self) -> usize {
        size(self)
    }
}

/// About how many bytes a span takes.
pub(crate) fn size(span: &SpanData) -> usize {
    let of_attributes = |attributes: &[Attribute]| -> usize {
        attributes.iter().map(|(name, value)| name.len() + value_size(value)).sum()
    };
    let of_events: usize = span.events.iter().map(|event| 64 + of_attributes(&event.attributes)).sum();
    size_of::<SpanData>() + span.name.len() + of_attributes(&span.attributes) + of_events
}

fn value_size(value: &AttributeValue) -> usize {
    size_of::<AttributeValue>()
        + match value {
            AttributeValue::Text(text) => text.len(),
            AttributeValue::Texts(texts) => texts.iter().map(|text| 24 + text.len()).sum(),
            AttributeValue::Integer(_) | AttributeValue::Float(_) | AttributeValue::Bool(_) => 0,
        }
}

pub(crate) fn exported(span: SpanData, scope: &InstrumentationScope) -> ExportedSpan {
    let mut events = SpanEvents::default();
    events.events = span.events.into_iter().map(event).collect();
    let mut links = SpanLinks::default();
    links.links = span.links.into_iter().map(|link| Link::new(span_context(link), Vec::new(), 0)).collect();
    ExportedSpan {
        span_context: span_context(span.context),
        parent_span_id: span.parent.map_or(SpanId::INVALID, |parent| SpanId::from_bytes(parent.span_id)),
        parent_span_is_remote: span.parent.is_some_and(|parent| parent.is_remote),
        span_kind: match span.kind {
            SpanKind::Internal => Kind::Internal,
            SpanKind::Server => Kind::Server,
            SpanKind::Client => Kind::Client,
        },
        name: span.name.into(),
        start_time: span.began,
        end_time: span.ended,
        attributes: attributes(span.attributes),
        dropped_attributes_count: span.dropped,
        events,
        links,
        status: match span.status {
            SpanStatus::Unset => Status::Unset,
            SpanStatus::Error => Status::error(""),
        },
        instrumentation_scope: scope.clone(),
    }
}

fn event(event: SpanEvent) -> Event {
    Event::new(event.name, event.at, attributes(event.attributes), 0)
}

pub(crate) fn span_context(context: TraceContext) -> SpanContext {
    // What is sent is kept, whatever sampling had said at its beginning.
    SpanContext::new(
        TraceId::from_bytes(context.trace_id),
        SpanId::from_bytes(context.span_id),
        TraceFlags::SAMPLED,
        context.is_remote,
        TraceState::NONE,
    )
}

fn attributes(attributes: Vec<Attribute>) -> Vec<KeyValue> {
    attributes.into_iter().map(|(name, value)| KeyValue::new(name, to_value(value))).collect()
}

pub(crate) fn to_value(value: AttributeValue) -> Value {
    match value {
        AttributeValue::Text(text) => Value::String(text.into()),
        AttributeValue::Texts(texts) => {
            Value::Array(Array::String(texts.into_iter().map(StringValue::from).collect()))
        }
        AttributeValue::Integer(number) => Value::I64(number),
        AttributeValue::Float(number) => Value::F64(number),
        AttributeValue::Bool(value) => Value::Bool(value),
    }
}
