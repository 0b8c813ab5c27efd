//! What goes on the record.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{Category, Metadata, Outcome, ToolResponse};
use serde_json::{Map, Value, json};

use super::SessionCore;
use crate::audit::AuditEvent;
use crate::gates::Trace;
use crate::ledger::Entry;
use crate::metrics::Sample;
use crate::redact::redacted;
use crate::state::Transition;

/// One call, for the record.
pub(super) struct AuditRecord<'a> {
    pub(super) call_id: &'a str,
    pub(super) turn: u64,
    /// Where it stands in the ledger, if it does.
    pub(super) entry: Option<&'a Entry>,
    pub(super) tool: &'a str,
    pub(super) args: &'a Value,
    pub(super) trace: &'a Trace,
    pub(super) response: &'a ToolResponse,
    /// How it differs from a plain execution: `replayed`, `refused`, `abandoned`.
    pub(super) how: Option<&'static str>,
}

impl SessionCore {
    /// One line for a call.
    pub(super) fn audit_call(&self, told: &AuditRecord<'_>) {
        if !self.shared.audit.is_enabled() {
            return;
        }
        let tool = self.snapshot.find(told.tool);
        let metadata = tool.map(|tool| tool.metadata());
        let meta = &told.response.meta;
        let error = match &told.response.outcome {
            Outcome::Success(_) => None,
            Outcome::Failure(error) => Some(error.kind),
        };
        let mut fields = self.session_fields();
        for (name, value) in [
            ("turnId", json!(told.turn)),
            ("callId", json!(told.call_id)),
            ("idempotencyKey", json!(told.entry.map(Entry::key))),
            ("toolId", json!(told.tool)),
            ("toolVersion", json!(meta.tool_version)),
            ("registryVersion", json!(meta.registry_version)),
            ("category", json!(metadata.map(|metadata| metadata.category))),
            ("duration", json!(meta.duration)),
            ("ok", json!(error.is_none())),
            ("errorType", json!(error)),
            ("how", json!(told.how)),
            ("gates", json!(told.trace)),
            ("size", json!(size(told.response))),
            ("args", redacted(tool.map(|tool| tool.sensitive()), told.args)),
        ] {
            if !value.is_null() {
                fields.insert(name.into(), value);
            }
        }
        self.record("tool_execution", fields);
    }

    /// One line for each attempt to change the state.
    pub(super) fn audit_transitions(&self, transitions: Vec<Transition>) {
        for transition in transitions {
            if !transition.applied {
                tracing::warn!(session = %self.id, reason = transition.reason, "a change of state was refused");
            }
            let mut fields = self.session_fields();
            if let Value::Object(more) = json!(transition) {
                fields.extend(more);
            }
            self.record("state_transition", fields);
        }
    }

    /// One line for a step of a confirmation. It never holds a token. Not to be called while the lock is held.
    pub(super) fn audit_confirmation(&self, step: &'static str, call_id: Option<&str>, tool: Option<&str>) {
        let mut fields = self.session_fields();
        fields.insert("turnId".into(), json!(self.lock().ledger.turn_number()));
        fields.insert("step".into(), step.into());
        fields.insert("callId".into(), json!(call_id));
        fields.insert("toolId".into(), json!(tool));
        self.record("confirmation", fields);
    }

    /// One line for anything else in the life of the session.
    pub(crate) fn audit_session(&self, event: &str, more: Value) {
        let mut fields = self.session_fields();
        if let Value::Object(more) = more {
            fields.extend(more);
        }
        self.record(event, fields);
    }

    pub(super) fn record(&self, event: &str, fields: Map<String, Value>) {
        if self.shared.audit.is_enabled() {
            self.shared.audit.record(AuditEvent { event: event.into(), time: self.now(), fields });
        }
    }

    pub(super) fn session_fields(&self) -> Map<String, Value> {
        Map::from_iter([
            ("sessionId".to_owned(), json!(self.id)),
            ("clientId".to_owned(), json!(self.client)),
            ("mode".to_owned(), json!(self.mode)),
        ])
    }

    /// Counts an execution, and warns when it was slow. Soft limits never block.
    pub(super) fn measure(
        &self,
        entry: &Arc<Entry>,
        metadata: &Metadata,
        response: &ToolResponse,
        took: Duration,
    ) {
        let budgets = self.shared.policy.budgets(self.mode);
        let for_retrieval = budgets.retrieval_ms.filter(|_| metadata.category == Category::Retrieval);
        let limits = [Some(metadata.latency_budget_ms), budgets.call_ms, for_retrieval];
        let limit_ms = limits.into_iter().flatten().min();
        let slow = limit_ms.is_some_and(|limit| took.as_millis() as u64 > limit);
        if slow {
            tracing::warn!(
                session = %self.id, turn = entry.turn, call = %entry.call_id, tool = %entry.tool,
                took_ms = took.as_millis() as u64, limit_ms, "a tool was slow"
            );
        }
        let error = match &response.outcome {
            Outcome::Success(_) => None,
            Outcome::Failure(error) => Some(error.kind),
        };
        self.shared
            .metrics
            .record_execution(&entry.tool, Sample { size: size(response), duration: took, error, slow });
    }
}

/// How many characters a model would read.
fn size(response: &ToolResponse) -> usize {
    match &response.outcome {
        Outcome::Success(data) => characters(data),
        Outcome::Failure(error) => characters(&json!(error)),
    }
}

/// How many characters a value has as JSON, without writing it.
fn characters(value: &Value) -> usize {
    /// Brackets and a comma after each item but the last.
    fn around(items: usize) -> usize {
        2 + items.saturating_sub(1)
    }
    match value {
        Value::Null | Value::Bool(true) => 4,
        Value::Bool(false) => 5,
        Value::Number(number) => match number.as_u64() {
            Some(whole) => whole.checked_ilog10().unwrap_or(0) as usize + 1,
            None => number.to_string().len(),
        },
        Value::String(text) => quoted(text),
        Value::Array(items) => around(items.len()) + items.iter().map(characters).sum::<usize>(),
        Value::Object(fields) => {
            let each = fields.iter().map(|(name, field)| quoted(name) + 1 + characters(field));
            around(fields.len()) + each.sum::<usize>()
        }
    }
}

/// The characters of a string with its quotes and escapes.
fn quoted(text: &str) -> usize {
    // Counted with sums over all bytes, which the compiler does many at a time; hardly any string has an escape.
    let count = |is: fn(u8) -> bool| text.bytes().map(|byte| usize::from(is(byte))).sum::<usize>();
    let continues = count(|byte| (0x80..0xc0).contains(&byte));
    let escaped = count(|byte| (byte < b' ') | (byte == b'"') | (byte == b'\\'));
    let escapes = if escaped == 0 { 0 } else { text.bytes().map(longer_by).sum() };
    2 + text.len() - continues + escapes
}

/// By how much an escape is longer than its character.
fn longer_by(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        0..=0x1f => 5,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop, prop_oneof, proptest};

    use super::*;

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<Option<bool>>().prop_map(|value| json!(value)),
            any::<i64>().prop_map(|value| json!(value)),
            any::<u64>().prop_map(|value| json!(value)),
            any::<f64>().prop_map(|value| json!(value)),
            any::<String>().prop_map(|value| json!(value)),
        ];
        leaf.prop_recursive(3, 20, 5, |core| {
            prop_oneof![
                prop::collection::vec(core.clone(), 0..5).prop_map(|items| json!(items)),
                prop::collection::btree_map(any::<String>(), core, 0..5).prop_map(|fields| json!(fields)),
            ]
        })
    }

    proptest! {
        #[test]
        fn characters_are_counted_as_they_would_be_written(value in json()) {
            assert_eq!(characters(&value), value.to_string().chars().count());
        }
    }
}
