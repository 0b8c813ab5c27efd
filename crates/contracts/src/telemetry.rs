//! Spans, as the parts report them: plain data with the names of OpenTelemetry's conventions.
//!
//! The libraries open a [`Span`] where something begins, say what they know about it, and drop it where it ends. Who
//! takes spans is behind [`SpanRecorder`]; where there is none, a span is an empty pointer and nothing is computed for
//! it. Nothing here samples, stores or sends.

mod model_span;
pub mod names;
mod span;
mod trace_context;

pub use model_span::{ConversationTracer, ModelSpan};
pub use span::{
    Attribute, AttributeValue, MAX_ATTRIBUTES, MAX_EVENTS, MAX_TEXT_BYTES, Span, SpanData, SpanEvent,
    SpanKind, SpanOrigin, SpanRecorder, SpanStamp, SpanStatus, Tracer,
};
pub use trace_context::TraceContext;
