//! A line of the audit log as text.

use serde_json::Value;

use crate::arguments::operator::LineFormat;
use crate::terminal::plain;

/// A name that comes from a model may have any length.
const MAX_CELL_CHARS: usize = 64;

pub(super) fn show(line: &str, value: &Value, format: LineFormat) -> String {
    match format {
        LineFormat::Json => format!("{line}\n"),
        LineFormat::Text => format!("{}\n", text(value).trim_end()),
    }
}

/// Time, event, tool, result, duration, session, client. Columns have fixed widths, because later lines are not known.
fn text(line: &Value) -> String {
    let word = |name: &str| line[name].as_str().map_or_else(|| "-".to_owned(), cell);
    let duration = line["duration"].as_u64().map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms"));
    format!(
        "{:24}  {:18}  {:18}  {:18}  {duration:>8}  {:20}  {}",
        word("time"),
        word("event"),
        word("toolId"),
        result(line),
        word("sessionId"),
        word("clientId"),
    )
}

fn result(line: &Value) -> String {
    let word = |name: &str| line[name].as_str().map(cell);
    match line["ok"].as_bool().or(line["applied"].as_bool()) {
        Some(true) => word("how").map_or_else(|| "ok".into(), |how| format!("ok, {how}")),
        Some(false) => word("errorType").unwrap_or_else(|| "refused".into()),
        None => word("step").or_else(|| word("action")).unwrap_or_else(|| "-".into()),
    }
}

fn cell(text: &str) -> String {
    plain(text).chars().take(MAX_CELL_CHARS).collect()
}
