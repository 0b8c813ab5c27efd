//! Writes what happens with MCP servers elsewhere to the audit log and the metrics, and to the log what their host does not
//! log itself: connections are its own to tell.

use std::sync::Arc;

use quarterdeck_contracts::{ToolDrift, UpstreamEvent, UpstreamServer, visible};
use serde_json::{Map, Value, json};

use crate::audit::AuditEvent;
use crate::audit_quota::AuditQuota;
use crate::shared::Shared;

/// A text of a foreign server in a record, such as why it was lost.
const MAX_TEXT_CHARS: usize = 500;
/// What changed in a tool. The deck and `quarterdeck mcp update` have it whole.
const MAX_DIFFERENCE_CHARS: usize = 4_000;

/// Records events of upstream servers.
pub(crate) struct UpstreamRecorder {
    shared: Arc<Shared>,
    quota: AuditQuota,
}

impl UpstreamRecorder {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, quota: AuditQuota::default() }
    }

    pub(crate) fn observe(&self, server: &str, event: UpstreamEvent) {
        match event {
            UpstreamEvent::Connected(identity) => {
                self.record(server, "upstream_connected", "", identity_fields(&identity));
            }
            UpstreamEvent::Lost { reason, retry_after } => {
                let retry_after_ms = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
                let reason = shown(&reason, MAX_TEXT_CHARS);
                let fields = json!({ "reason": reason, "retryAfterMs": retry_after_ms });
                self.record(server, "upstream_lost", "", fields);
            }
            UpstreamEvent::Restarted { server: identity, restarts } => {
                let mut fields = identity_fields(&identity);
                fields["restarts"] = json!(restarts);
                self.record(server, "upstream_restarted", "", fields);
            }
            UpstreamEvent::Drifted(drift) => self.record_drift(server, &drift),
            UpstreamEvent::Restored { tool_id } => {
                let is_recorded =
                    self.record(server, "upstream_restored", &tool_id, json!({ "toolId": tool_id }));
                if is_recorded {
                    tracing::info!(server, tool = tool_id, "upstream tool is published as imported again");
                }
            }
            UpstreamEvent::Refused(request) => {
                self.shared.metrics.record_refused_request(server, request);
                let kind = request.as_str();
                if self.record(server, "upstream_refused", kind, json!({ "request": kind })) {
                    tracing::warn!(server, request = kind, "request of an upstream server refused");
                }
            }
            UpstreamEvent::Called { outcome, duration } => {
                self.shared.metrics.record_upstream_call(server, outcome, duration);
            }
            _ => {}
        }
    }

    fn record_drift(&self, server: &str, drift: &ToolDrift) {
        let fields = json!({
            "toolId": drift.tool_id,
            "name": shown(&drift.name, MAX_TEXT_CHARS),
            "pinned": drift.pinned,
            "live": drift.live,
            "difference": drift.difference.as_deref().map(|text| shown(text, MAX_DIFFERENCE_CHARS)),
        });
        if self.record(server, "upstream_drifted", &drift.tool_id, fields) {
            tracing::error!(
                server,
                tool = drift.tool_id,
                pinned = drift.pinned,
                live = drift.live,
                "upstream tool is not what was imported; it is unavailable until the change is accepted"
            );
        }
    }

    /// Whether the record was written. A server that causes more than its quota is only counted.
    fn record(&self, server: &str, event: &str, about: &str, fields: Value) -> bool {
        let now = self.shared.clock.now();
        let Some(omitted) = self.quota.admit(&format!("{server}\n{event}\n{about}"), now) else {
            return false;
        };
        let mut all = Map::from_iter([("server".to_owned(), json!(server))]);
        if let Value::Object(fields) = fields {
            all.extend(fields);
        }
        if omitted > 0 {
            all.insert("omitted".to_owned(), json!(omitted));
        }
        self.shared.audit.record(AuditEvent { event: event.into(), time: now, fields: all });
        true
    }
}

fn identity_fields(server: &UpstreamServer) -> Value {
    json!({
        "serverName": shown(&server.name, MAX_TEXT_CHARS),
        "serverVersion": shown(&server.version, MAX_TEXT_CHARS),
        "protocolVersion": shown(&server.protocol_version, MAX_TEXT_CHARS),
    })
}

/// Foreign text for a record: nothing in it is hidden, and it is not long.
fn shown(text: &str, max_chars: usize) -> String {
    let text = visible(text);
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}
