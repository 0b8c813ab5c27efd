//! What users think of answers, for the audit log and the metrics. What they write is kept elsewhere and not repeated
//! here.

use quarterdeck_contracts::Mode;
use serde_json::{Map, Value, json};

use crate::audit::AuditEvent;
use crate::orchestrator::Orchestrator;

/// A rating that was given, changed or taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedbackEvent<'a> {
    pub client_id: &'a str,
    pub session_id: &'a str,
    /// The version of the tools that the answer was given with.
    pub registry_version: &'a str,
    pub message_id: &'a str,
    /// The rating before, `up` or `down`.
    pub previous: Option<&'static str>,
    /// The rating now.
    pub rating: Option<&'static str>,
    pub has_comment: bool,
}

impl Orchestrator {
    /// Puts a rating on the record and counts it for the version.
    pub fn record_feedback(&self, event: &FeedbackEvent<'_>) {
        let shared = self.shared();
        shared.metrics.record_version_feedback(event.registry_version, event.previous, event.rating);
        if !shared.audit.is_enabled() {
            return;
        }
        let fields: Map<String, Value> = Map::from_iter([
            ("sessionId".to_owned(), json!(event.session_id)),
            ("clientId".to_owned(), json!(event.client_id)),
            ("mode".to_owned(), json!(Mode::Text)),
            ("registryVersion".to_owned(), json!(event.registry_version)),
            ("messageId".to_owned(), json!(event.message_id)),
            ("rating".to_owned(), json!(event.rating.unwrap_or("none"))),
            ("previous".to_owned(), json!(event.previous.unwrap_or("none"))),
            ("hasComment".to_owned(), json!(event.has_comment)),
        ]);
        shared.audit.record(AuditEvent { event: "feedback".into(), time: self.now(), fields });
    }
}
