//! Draws a reading as lines of text. It knows no terminal.

use super::reading::{Reading, ToolRow};
use crate::times::show_ms;

/// Rows of alarms at most, so that the tools keep their place.
const MAX_ALARM_ROWS: usize = 5;
/// Columns beside the tool's name.
const FIGURES_WIDTH: usize = 57;
const MIN_NAME_WIDTH: usize = 10;

/// Columns and rows of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// What is shown.
pub(super) struct View {
    server: String,
    reading: Option<Reading>,
    /// For rates.
    previous: Option<Reading>,
    outage: Option<Outage>,
}

/// The server does not answer.
struct Outage {
    attempts: u64,
    reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Title,
    Dim,
    Warning,
    Alarm,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) tone: Tone,
}

impl View {
    pub(super) fn new(server: String) -> Self {
        Self { server, reading: None, previous: None, outage: None }
    }

    /// Takes what the server has said, or why it has not.
    pub(super) fn update(&mut self, reading: anyhow::Result<Reading>) {
        match reading {
            Ok(reading) => {
                let previous = self.reading.replace(reading);
                // A rate over an outage would be no rate of now.
                self.previous = previous.filter(|_| self.outage.is_none());
                self.outage = None;
            }
            Err(error) => {
                let attempts = self.outage.as_ref().map_or(0, |outage| outage.attempts) + 1;
                // The rest of it is help for a command that has ended.
                let reason = error.to_string().lines().next().unwrap_or_default().to_owned();
                self.outage = Some(Outage { attempts, reason });
            }
        }
    }

    fn rate(&self, of: impl Fn(&Reading, &Reading) -> Option<f64>) -> String {
        let rate = self.reading.as_ref().zip(self.previous.as_ref());
        let rate = rate.filter(|_| self.outage.is_none()).and_then(|(now, before)| of(now, before));
        rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}"))
    }
}

/// The lines for a terminal, which they fit; without a size, all there is.
pub(super) fn render(view: &View, size: Option<Size>) -> Vec<Line> {
    let mut lines = head(view);
    if let Some(reading) = &view.reading {
        lines.extend(figures(view, reading));
        lines.extend(alarms(reading));
        let rest = size.map(|size| size.rows.saturating_sub(lines.len() + 1));
        let columns = size.map_or(80, |size| size.columns);
        lines.extend(tools(view, reading, columns, rest));
    }
    let Some(size) = size else { return lines };
    lines.truncate(size.rows.saturating_sub(1));
    if lines.len() < size.rows {
        lines.push(line(Tone::Dim, "q ends".to_owned()));
    }
    for line in &mut lines {
        line.text = cut(&line.text, size.columns);
        // Figures that are not of now.
        if view.outage.is_some() && line.tone == Tone::Plain {
            line.tone = Tone::Dim;
        }
    }
    lines
}

pub(super) fn to_text(lines: &[Line]) -> String {
    lines.iter().map(|line| format!("{}\n", line.text.trim_end())).collect()
}

fn head(view: &View) -> Vec<Line> {
    let mut title = format!("quarterdeck top   {}", view.server);
    if let Some(reading) = &view.reading {
        let tools = reading.tools.len();
        title += &format!("   {}   registry {}, {tools} tools", show_ms(reading.now_ms), reading.registry);
    }
    let mut lines = vec![line(Tone::Title, title)];
    match (&view.outage, &view.reading) {
        (Some(outage), reading) => {
            let Outage { attempts, reason } = outage;
            let tried = if *attempts == 1 { "once".to_owned() } else { format!("{attempts} times") };
            let shown = if reading.is_some() { "; below is what it said last" } else { "" };
            lines.push(line(Tone::Alarm, format!("NO ANSWER ({tried}): {reason}{shown}")));
        }
        (None, None) => lines.push(line(Tone::Dim, "asking the server".to_owned())),
        (None, Some(_)) => {}
    }
    lines
}

fn figures(view: &View, reading: &Reading) -> Vec<Line> {
    let sessions = reading.sessions;
    let (errors, refused) = (sum(reading, |tool| tool.errors), sum(reading, |tool| tool.refused));
    let mut lines = vec![
        line(
            Tone::Plain,
            format!(
                "sessions  {} text, {} voice; {} since the start, {} turns",
                sessions.text,
                sessions.voice,
                short(sessions.total),
                short(sessions.turns)
            ),
        ),
        line(
            Tone::Plain,
            format!(
                "calls     {}/s; {} since the start, {} failed, {} refused",
                view.rate(Reading::calls_per_second),
                short(reading.calls()),
                short(errors),
                short(refused)
            ),
        ),
        model(reading),
        voice(reading),
    ];
    if reading.lost_audit_lines > 0 {
        let lost = format!("audit     {} lines lost", short(reading.lost_audit_lines));
        lines.push(line(Tone::Alarm, lost));
    }
    lines
}

fn model(reading: &Reading) -> Line {
    let model = &reading.model;
    match (&reading.trouble, &reading.fallback) {
        (Some(trouble), _) => line(Tone::Alarm, format!("model     {model}: FAILING ({trouble})")),
        (None, Some(fallback)) => line(Tone::Plain, format!("model     {model}; fallback {fallback}")),
        (None, None) => line(Tone::Plain, format!("model     {model}")),
    }
}

fn voice(reading: &Reading) -> Line {
    let text = match (&reading.voice, reading.first_audio) {
        (None, _) => "off".to_owned(),
        (Some(model), None) => format!("{model}; no answer yet"),
        (Some(model), Some(audio)) => {
            format!("{model}; first audio p50 {} ms, p95 {} ms", ms(audio.p50), ms(audio.p95))
        }
    };
    line(Tone::Plain, format!("voice     {text}"))
}

fn alarms(reading: &Reading) -> Vec<Line> {
    if reading.alarms.is_empty() {
        return vec![line(Tone::Plain, "alarms    none".to_owned()), line(Tone::Plain, String::new())];
    }
    let mut lines: Vec<Line> = reading
        .alarms
        .iter()
        .take(MAX_ALARM_ROWS)
        .map(|alarm| {
            let tone = match (&*alarm.state, &*alarm.severity) {
                ("firing", "critical") => Tone::Alarm,
                ("firing", _) => Tone::Warning,
                _ => Tone::Dim,
            };
            let text = format!(
                "alarm     {} {} {}: {}",
                alarm.severity.to_uppercase(),
                alarm.state,
                alarm.id,
                alarm.summary
            );
            line(tone, text)
        })
        .collect();
    if reading.alarms.len() > MAX_ALARM_ROWS {
        let more = reading.alarms.len() - MAX_ALARM_ROWS;
        lines.push(line(Tone::Warning, format!("          {more} more; `quarterdeck alerts` lists them")));
    }
    lines.push(line(Tone::Plain, String::new()));
    lines
}

fn tools(view: &View, reading: &Reading, columns: usize, rows: Option<usize>) -> Vec<Line> {
    let width = columns.saturating_sub(FIGURES_WIDTH).max(MIN_NAME_WIDTH);
    let title = format!(
        "{:<width$} {:<8}{:>7} {:>7}{:>8}{:>8}{:>8}{:>8}",
        "TOOL", "HEALTH", "CALLS", "/S", "FAILED", "REFUSED", "P50 MS", "P95 MS"
    );
    let mut lines = vec![line(Tone::Title, title)];
    // One row for the title, and one to say how many there is no room for.
    let room = rows.map_or(usize::MAX, |rows| rows.saturating_sub(1));
    let shown = if reading.tools.len() <= room { reading.tools.len() } else { room.saturating_sub(1) };
    for tool in &reading.tools[..shown] {
        let rate = view.rate(|now, before| now.tool_calls_per_second(before, tool));
        let text = format!(
            "{:<width$} {:<8}{:>7} {:>7}{:>8}{:>8}{:>8}{:>8}",
            cut(&tool.id, width),
            tool.health,
            short(tool.calls),
            rate,
            short(tool.errors),
            short(tool.refused),
            ms(tool.p50),
            ms(tool.p95)
        );
        let tone = match &*tool.health {
            "failing" => Tone::Alarm,
            "slow" => Tone::Warning,
            "idle" => Tone::Dim,
            _ => Tone::Plain,
        };
        lines.push(line(tone, text));
    }
    if shown < reading.tools.len() {
        lines.push(line(Tone::Dim, format!("{} more tools", reading.tools.len() - shown)));
    }
    lines
}

fn line(tone: Tone, text: String) -> Line {
    Line { text, tone }
}

fn sum(reading: &Reading, of: impl Fn(&ToolRow) -> u64) -> u64 {
    reading.tools.iter().map(of).sum()
}

/// A count in at most six characters, up to a billion.
fn short(number: u64) -> String {
    match number {
        0..100_000 => number.to_string(),
        100_000..10_000_000 => format!("{}k", number / 1_000),
        _ => format!("{}M", number / 1_000_000),
    }
}

fn ms(value: f64) -> String {
    if value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// At most so many characters; what is cut ends with an ellipsis.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    if width == 0 { kept } else { kept + "…" }
}

#[cfg(test)]
mod tests;
