//! Writes events of handler hosts to the log and the audit log.

use std::sync::Arc;

use quarterdeck_contracts::handler::{HostEvent, HostObserver};
use serde_json::{Value, json};

use crate::audit::AuditEvent;
use crate::orchestrator::Orchestrator;
use crate::shared::Shared;
use crate::upstream_events::UpstreamRecorder;

impl Orchestrator {
    /// An observer that logs and audits what happens in hosts, for [`crate::Registry::observe_hosts`].
    pub fn host_observer(&self) -> Arc<dyn HostObserver> {
        let shared = self.shared().clone();
        Arc::new(HostEventRecorder { upstreams: UpstreamRecorder::new(shared.clone()), shared })
    }
}

struct HostEventRecorder {
    shared: Arc<Shared>,
    upstreams: UpstreamRecorder,
}

impl HostObserver for HostEventRecorder {
    fn observe(&self, event: HostEvent) {
        match event {
            HostEvent::Quarantined { quarantine, call } => {
                let (session, turn, id) = call
                    .as_ref()
                    .map_or(("", 0, ""), |call| (call.session_id.as_str(), call.turn, call.call_id.as_str()));
                tracing::error!(
                    session,
                    turn,
                    call = id,
                    tool = quarantine.tool_id,
                    strikes = quarantine.strikes,
                    stuck_threads = quarantine.stuck_threads,
                    retry_after_ms = quarantine.retry_after_ms,
                    "handler quarantined: a call did not end at its deadline"
                );
                let mut fields = json!(quarantine);
                if let Some(call) = call {
                    fields["sessionId"] = json!(call.session_id);
                    fields["turnId"] = json!(call.turn);
                    fields["callId"] = json!(call.call_id);
                }
                self.record("handler_quarantined", fields);
            }
            HostEvent::Released { tool_id } => {
                tracing::info!(tool = tool_id, "handler in service again: a call on trial ended in time");
                self.record("handler_released", json!({ "toolId": tool_id }));
            }
            HostEvent::Upstream { server, event } => self.upstreams.observe(&server, event),
            _ => {}
        }
    }
}

impl HostEventRecorder {
    fn record(&self, event: &str, fields: Value) {
        let Value::Object(fields) = fields else { return };
        let time = self.shared.clock.now();
        self.shared.audit.record(AuditEvent { event: event.into(), time, fields });
    }
}
