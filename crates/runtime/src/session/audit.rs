//! What a session writes to the audit log.

use quarterdeck_contracts::{Outcome, ToolResponse};
use serde_json::{Map, Value, json};

use super::SessionCore;
use crate::audit::AuditEvent;
use crate::gates::Trace;
use crate::ledger::Entry;
use crate::metrics::response_chars;
use crate::redact::redacted;
use crate::state::Transition;

/// One call, as it is recorded.
pub(crate) struct AuditRecord<'a> {
    pub(crate) call_id: &'a str,
    pub(crate) turn: u64,
    /// The entry that its answer belongs to, if there is one.
    pub(crate) entry: Option<&'a Entry>,
    pub(crate) tool: &'a str,
    pub(crate) args: &'a Value,
    pub(crate) trace: &'a Trace,
    pub(crate) response: &'a ToolResponse,
    /// How it differs from a plain execution: `replayed`, `refused`, `abandoned`.
    pub(crate) how: Option<&'static str>,
}

impl SessionCore {
    pub(crate) fn audit_call(&self, record: &AuditRecord<'_>) {
        if !self.shared.audit.is_enabled() {
            return;
        }
        let tool = self.snapshot.find(record.tool);
        let metadata = tool.map(|tool| tool.metadata());
        let meta = &record.response.meta;
        let error = match &record.response.outcome {
            Outcome::Success(_) => None,
            Outcome::Failure(error) => Some(error.kind),
        };
        let mut fields = self.session_fields();
        for (name, value) in [
            ("turnId", json!(record.turn)),
            ("callId", json!(record.call_id)),
            ("idempotencyKey", json!(record.entry.map(Entry::key))),
            ("toolId", json!(record.tool)),
            ("toolVersion", json!(meta.tool_version)),
            ("registryVersion", json!(meta.registry_version)),
            ("category", json!(metadata.map(|metadata| metadata.category))),
            ("duration", json!(meta.duration)),
            ("ok", json!(error.is_none())),
            ("errorType", json!(error)),
            ("how", json!(record.how)),
            ("gates", json!(record.trace)),
            ("size", json!(response_chars(record.response))),
            ("args", redacted(tool.map(|tool| tool.sensitive()), record.args)),
        ] {
            if !value.is_null() {
                fields.insert(name.into(), value);
            }
        }
        self.audit("tool_execution", fields);
    }

    /// One line for each attempt to change the state.
    pub(crate) fn audit_transitions(&self, transitions: Vec<Transition>) {
        for transition in transitions {
            if !transition.applied {
                tracing::warn!(session = %self.id, reason = transition.reason, "state transition refused");
            }
            let mut fields = self.session_fields();
            if let Value::Object(more) = json!(transition) {
                fields.extend(more);
            }
            self.audit("state_transition", fields);
        }
    }

    /// One line for a step of a confirmation, which is counted too. It never holds a token. Not to be called while the
    /// lock is held.
    pub(crate) fn audit_confirmation(&self, step: &'static str, call_id: Option<&str>, tool: Option<&str>) {
        self.audit_confirmation_step(step, call_id, tool, Map::new());
    }

    /// The same for a decision, with how it was given.
    pub(crate) fn audit_decision(
        &self,
        step: &'static str,
        call_id: &str,
        tool: &str,
        decided: Map<String, Value>,
    ) {
        self.audit_confirmation_step(step, Some(call_id), Some(tool), decided);
    }

    fn audit_confirmation_step(
        &self,
        step: &'static str,
        call_id: Option<&str>,
        tool: Option<&str>,
        more: Map<String, Value>,
    ) {
        self.shared.metrics.record_version_confirmation(self.snapshot.version(), step);
        let mut fields = self.session_fields();
        fields.insert("turnId".into(), json!(self.lock().ledger.turn_number()));
        fields.insert("step".into(), step.into());
        fields.insert("callId".into(), json!(call_id));
        fields.insert("toolId".into(), json!(tool));
        fields.extend(more);
        self.audit("confirmation", fields);
    }

    /// One line for anything else that happens to the session.
    pub(crate) fn audit_session(&self, event: &str, more: Value) {
        let mut fields = self.session_fields();
        if let Value::Object(more) = more {
            fields.extend(more);
        }
        self.audit(event, fields);
    }

    pub(crate) fn audit(&self, event: &str, fields: Map<String, Value>) {
        if self.shared.audit.is_enabled() {
            self.shared.audit.record(AuditEvent { event: event.into(), time: self.now(), fields });
        }
    }

    pub(crate) fn session_fields(&self) -> Map<String, Value> {
        Map::from_iter([
            ("sessionId".to_owned(), json!(self.id)),
            ("clientId".to_owned(), json!(self.client)),
            ("mode".to_owned(), json!(self.mode)),
            ("registryVersion".to_owned(), json!(self.snapshot.version())),
        ])
    }
}
