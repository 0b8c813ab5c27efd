//! What the deck's API says of a server at one moment.

use serde_json::Value;

use crate::admin_client::AdminClient;
use crate::terminal::plain;

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Reading {
    /// The server's clock, in milliseconds since 1970.
    pub(super) now_ms: u64,
    pub(super) registry: String,
    pub(super) sessions: Sessions,
    pub(super) model: String,
    /// What is wrong with the text model, if anything is.
    pub(super) trouble: Option<String>,
    pub(super) fallback: Option<String>,
    pub(super) voice: Option<String>,
    pub(super) first_audio: Option<FirstAudio>,
    pub(super) lost_audit_lines: u64,
    pub(super) alarms: Vec<AlarmRow>,
    pub(super) tools: Vec<ToolRow>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sessions {
    pub(super) text: u64,
    pub(super) voice: u64,
    pub(super) total: u64,
    pub(super) turns: u64,
}

/// Milliseconds from the end of the user's speech to the first audio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FirstAudio {
    pub(super) p50: f64,
    pub(super) p95: f64,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct AlarmRow {
    pub(super) id: String,
    pub(super) severity: String,
    pub(super) state: String,
    pub(super) summary: String,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ToolRow {
    pub(super) id: String,
    pub(super) health: String,
    /// Since the start, and within the last hour.
    pub(super) calls: u64,
    pub(super) recent_calls: u64,
    pub(super) errors: u64,
    pub(super) refused: u64,
    /// Milliseconds, of the last thousand answers.
    pub(super) p50: f64,
    pub(super) p95: f64,
}

impl Reading {
    pub(super) fn take(client: &AdminClient) -> anyhow::Result<Self> {
        let overview = client.request("GET", "/api/deck/overview")?.success()?;
        let alarms = client.request("GET", "/api/deck/alarms")?.success()?;
        Ok(Self::new(&overview, &alarms))
    }

    /// A server of another version may leave something out, which is then zero or empty.
    fn new(overview: &Value, alarms: &Value) -> Self {
        let (sessions, models) = (&overview["sessions"], &overview["models"]);
        let each = |list: &Value| list.as_array().cloned().unwrap_or_default();
        let mut tools: Vec<ToolRow> = each(&overview["tools"]).iter().map(ToolRow::new).collect();
        tools.sort_by(|one, other| {
            let rank = |tool: &ToolRow| (std::cmp::Reverse(tool.recent_calls), std::cmp::Reverse(tool.calls));
            rank(one).cmp(&rank(other)).then_with(|| one.id.cmp(&other.id))
        });
        let audio = &models["firstAudio"];
        Self {
            now_ms: number(overview, "now"),
            registry: text(&overview["registry"], "version"),
            sessions: Sessions {
                text: number(sessions, "text"),
                voice: number(sessions, "voice"),
                total: number(sessions, "total"),
                turns: number(sessions, "turns"),
            },
            model: text(models, "text"),
            trouble: models["trouble"].is_object().then(|| describe_trouble(&models["trouble"])),
            fallback: optional(models, "fallback"),
            voice: optional(models, "voice"),
            first_audio: audio
                .is_object()
                .then(|| FirstAudio { p50: decimal(audio, "p50"), p95: decimal(audio, "p95") }),
            lost_audit_lines: number(&overview["audit"], "lostLines"),
            alarms: each(&alarms["alarms"]).iter().map(AlarmRow::new).collect(),
            tools,
        }
    }

    pub(super) fn calls(&self) -> u64 {
        self.tools.iter().map(|tool| tool.calls).sum()
    }

    /// Calls a second since another reading; `None` if the server was started in between, or has no clock.
    pub(super) fn calls_per_second(&self, before: &Self) -> Option<f64> {
        per_second(self, before, self.calls(), before.calls())
    }

    pub(super) fn tool_calls_per_second(&self, before: &Self, tool: &ToolRow) -> Option<f64> {
        let earlier = before.tools.iter().find(|known| known.id == tool.id)?;
        per_second(self, before, tool.calls, earlier.calls)
    }
}

fn per_second(now: &Reading, before: &Reading, calls: u64, earlier: u64) -> Option<f64> {
    let ms = now.now_ms.checked_sub(before.now_ms).filter(|ms| *ms > 0)?;
    Some(calls.checked_sub(earlier)? as f64 * 1_000.0 / ms as f64)
}

impl ToolRow {
    fn new(tool: &Value) -> Self {
        let figures = &tool["figures"];
        Self {
            id: text(tool, "id"),
            health: text(tool, "health"),
            calls: number(figures, "calls"),
            recent_calls: number(&tool["lately"], "calls"),
            errors: number(figures, "errors"),
            refused: number(figures, "refused"),
            p50: decimal(figures, "p50"),
            p95: decimal(figures, "p95"),
        }
    }
}

impl AlarmRow {
    fn new(alarm: &Value) -> Self {
        Self {
            id: text(alarm, "id"),
            severity: text(alarm, "severity"),
            state: text(alarm, "state"),
            summary: text(alarm, "summary"),
        }
    }
}

fn describe_trouble(trouble: &Value) -> String {
    let instead = match optional(trouble, "fallback") {
        Some(fallback) => format!("{fallback} answers instead"),
        None => "no model answers".to_owned(),
    };
    format!("{}, {} in a row; {instead}", text(trouble, "kind"), number(trouble, "failures"))
}

/// What a server says is shown in a terminal, which obeys some characters.
fn text(value: &Value, name: &str) -> String {
    plain(value[name].as_str().unwrap_or_default())
}

fn optional(value: &Value, name: &str) -> Option<String> {
    value[name].as_str().map(plain)
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_default()
}

fn decimal(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn overview(now: u64, calls: u64) -> Value {
        json!({ "now": now, "tools": [
            { "id": "quiet", "lately": { "calls": 0 }, "figures": { "calls": 90 } },
            { "id": "busy", "lately": { "calls": 4 }, "figures": { "calls": calls } },
        ] })
    }

    #[test]
    fn rates_are_differences_between_readings_and_unknown_after_a_restart() {
        let read = |now, calls| Reading::new(&overview(now, calls), &json!({}));
        let (first, second) = (read(1_000, 10), read(3_000, 15));
        assert_eq!(second.tools[0].id, "busy", "what was called lately comes first");
        assert_eq!(second.calls_per_second(&first), Some(2.5));
        assert_eq!(second.tool_calls_per_second(&first, &second.tools[1]), Some(0.0));
        assert_eq!(read(5_000, 2).calls_per_second(&second), None, "its counters began again");
        assert_eq!(read(3_000, 15).calls_per_second(&second), None, "no time has passed");
    }

    #[test]
    fn an_answer_of_another_version_and_odd_characters_do_no_harm() {
        assert_eq!(Reading::new(&Value::Null, &Value::Null), Reading::default());
        let hostile = json!({ "alarms": [{ "id": "a\u{1b}[2J\nb", "summary": 7 }] });
        let reading = Reading::new(&json!({ "tools": {} }), &hostile);
        assert!(!reading.alarms[0].id.contains(['\u{1b}', '\n']), "{:?}", reading.alarms[0]);
    }
}
