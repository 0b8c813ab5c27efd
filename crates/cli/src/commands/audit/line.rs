//! A line of the trail, for people.

use serde_json::Value;

use crate::arguments::operating::LineFormat;
use crate::terminal::plain;

/// A name that a model made up may have any length.
const WIDEST: usize = 64;

/// The line in the form that was asked for, with its end.
pub(super) fn show(line: &str, value: &Value, format: LineFormat) -> String {
    match format {
        LineFormat::Json => format!("{line}\n"),
        LineFormat::Text => format!("{}\n", text(value).trim_end()),
    }
}

/// Time, event, tool, how it went, duration, session, client. Columns have fixed widths: the lines to come are not
/// known yet.
fn text(line: &Value) -> String {
    let word = |name: &str| line[name].as_str().map_or_else(|| "-".to_owned(), short);
    let duration = line["duration"].as_u64().map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms"));
    format!(
        "{:24}  {:18}  {:18}  {:18}  {duration:>8}  {:20}  {}",
        word("time"),
        word("event"),
        word("toolId"),
        how_it_went(line),
        word("sessionId"),
        word("clientId"),
    )
}

fn how_it_went(line: &Value) -> String {
    let word = |name: &str| line[name].as_str().map(short);
    match line["ok"].as_bool().or(line["applied"].as_bool()) {
        Some(true) => word("how").map_or_else(|| "ok".into(), |how| format!("ok, {how}")),
        Some(false) => word("errorType").unwrap_or_else(|| "refused".into()),
        None => word("step").or_else(|| word("action")).unwrap_or_else(|| "-".into()),
    }
}

fn short(text: &str) -> String {
    plain(text).chars().take(WIDEST).collect()
}
