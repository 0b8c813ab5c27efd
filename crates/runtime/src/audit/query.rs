//! Which lines match a filter.

use serde_json::Value;

/// Which lines are wanted. An absent field matches any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    pub event: Option<String>,
    pub client: Option<String>,
    pub session: Option<String>,
    pub tool: Option<String>,
    pub error: Option<String>,
    /// Not before this (RFC 3339, UTC; compared as text, as the lines are written).
    pub since: Option<String>,
    /// Before this.
    pub until: Option<String>,
}

pub fn matches_filter(line: &Value, filter: &Filter) -> bool {
    let is = |name: &str, wanted: &Option<String>| {
        wanted.as_deref().is_none_or(|wanted| line.get(name).and_then(Value::as_str) == Some(wanted))
    };
    let time = line.get("time").and_then(Value::as_str).unwrap_or_default();
    is("event", &filter.event)
        && is("clientId", &filter.client)
        && is("sessionId", &filter.session)
        && is("toolId", &filter.tool)
        && is("errorType", &filter.error)
        && filter.since.as_deref().is_none_or(|since| time >= since)
        && filter.until.as_deref().is_none_or(|until| time < until)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_must_match_everything_that_was_asked() {
        let line = json!({ "event": "tool_execution", "clientId": "c", "toolId": "t", "time": "2026-01-02T00:00:00.000Z" });
        let filter = |event: &str, since: &str| Filter {
            event: Some(event.into()),
            since: Some(since.into()),
            ..Filter::default()
        };
        assert!(matches_filter(&line, &Filter::default()));
        assert!(matches_filter(&line, &filter("tool_execution", "2026-01-01")));
        assert!(!matches_filter(&line, &filter("tool_execution", "2026-01-03")));
        assert!(!matches_filter(&line, &filter("session_start", "2026-01-01")));
    }
}
