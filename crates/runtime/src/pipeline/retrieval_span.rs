//! The span of a search in the knowledge base.

use quarterdeck_contracts::Capability;
use quarterdeck_contracts::handler::CapabilityError;
use quarterdeck_contracts::telemetry::names::{self, operation};
use quarterdeck_contracts::telemetry::{Span, SpanKind, TraceContext};
use serde_json::Value;

use crate::session::SessionCore;

/// The knowledge base, as a source of data.
const KNOWLEDGE: &str = "knowledge";

/// The methods of the capability that search: those of `context.kb`, and what Rust handlers use.
const SEARCH_METHODS: [&str; 3] = ["search", "query", "find"];

/// Opens a span if a use of a capability is a search.
pub(super) fn retrieval_span(
    core: &SessionCore,
    capability: &Capability,
    method: &str,
    parent: Option<TraceContext>,
) -> Span {
    let is_search = *capability == Capability::KB && SEARCH_METHODS.contains(&method);
    if !is_search || !core.shared.site.tracer.is_on() {
        return Span::none();
    }
    let name = || format!("{} {KNOWLEDGE}", operation::RETRIEVAL);
    let mut span = core.shared.site.tracer.begin(parent, SpanKind::Internal, name);
    span.set(names::OPERATION_NAME, operation::RETRIEVAL);
    span.set(names::DATA_SOURCE_ID, KNOWLEDGE);
    span.set(names::CONVERSATION_ID, core.id.to_string());
    span
}

pub(super) fn record_retrieval(span: &mut Span, answer: &Result<Value, CapabilityError>) {
    if !span.is_on() {
        return;
    }
    match answer {
        Ok(answer) => {
            let results = answer.get("results").and_then(Value::as_array).map(|results| results.len() as u64);
            span.set_some(names::RESULT_COUNT, results);
        }
        Err(error) => span.fail(error.code.as_str()),
    }
}
