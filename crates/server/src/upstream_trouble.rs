//! What the readiness probe tells of MCP servers elsewhere.

use jiff::Timestamp;
use quarterdeck_contracts::UpstreamView;

/// Why tools of a server cannot be used, one sentence for each reason. The probe is open to all, so nothing that the server
/// said is in them.
pub(crate) fn reasons(server: &UpstreamView) -> Vec<String> {
    let name = &server.name;
    let mut reasons = Vec::new();
    if server.is_missed() {
        let since = i64::try_from(server.since_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let since = since.unwrap_or(Timestamp::MAX);
        let tools = counted(server.tools.len());
        reasons.push(format!("MCP server {name} disconnected since {since}; {tools} unavailable"));
    }
    let drifted = server.drifted().count();
    if drifted > 0 {
        let tools = counted(drifted);
        reasons.push(format!("MCP server {name} has changed what was imported; {tools} unavailable"));
    }
    reasons
}

fn counted(tools: usize) -> String {
    if tools == 1 { "1 tool is".to_owned() } else { format!("{tools} tools are") }
}
