//! Messages (standard error) and data (standard output). Nothing else prints.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use quarterdeck_compiler::Style;
use quarterdeck_contracts::{DiskError, visible, visible_line};

use crate::environment;

static ARE_LOGGED: AtomicBool = AtomicBool::new(false);

/// Makes messages events of the log from now on: where a program reads standard error as JSON lines, plain text would
/// be a fault.
pub(crate) fn log_messages() {
    ARE_LOGGED.store(true, Ordering::Relaxed);
}

pub(crate) fn are_messages_logged() -> bool {
    ARE_LOGGED.load(Ordering::Relaxed)
}

/// Writes to standard output. A reader that has gone away is an error that `main` understands.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes a line to standard error. A failure to do so cannot be reported anywhere.
pub(crate) fn info(text: &str) {
    if are_messages_logged() {
        return tracing::info!("{text}");
    }
    let _ = writeln!(io::stderr().lock(), "{text}");
}

pub(crate) fn warn(text: &str) {
    if are_messages_logged() {
        return tracing::warn!("{text}");
    }
    info(&format!("{} {text}", paint("warning:", "1;33", environment::style_of_stderr())));
}

/// Writes the error with every cause.
pub(crate) fn report_error(error: &anyhow::Error) {
    let causes: Vec<_> = error.chain().map(ToString::to_string).collect();
    let mut text = causes.join(": ");
    if let Some(fault) =
        disk_error(error).map(|fault| fault.to_string()).filter(|fault| !text.contains(fault))
    {
        text.push_str(&format!("\nhelp: {fault}"));
    }
    if are_messages_logged() {
        return tracing::error!("{text}");
    }
    info(&format!("{} {text}", paint("error:", "1;31", environment::style_of_stderr())));
}

/// The disk's error among the causes. A missing permission may concern something else, such as a port.
fn disk_error(error: &anyhow::Error) -> Option<DiskError> {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.find_map(DiskError::of).filter(|fault| *fault != DiskError::NotPermitted)
}

pub(crate) fn paint(text: &str, code: &str, style: Style) -> String {
    match style {
        Style::Coloured => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        Style::Plain => text.to_owned(),
    }
}

/// Columns of text, each as wide as its widest cell.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<_> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<_> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// `1 error`, `2 errors`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Columns under their names.
pub(crate) fn titled_table(columns: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let header = columns.iter().map(|name| name.to_string()).collect();
    let text = table(&std::iter::once(header).chain(rows).collect::<Vec<_>>());
    let (header, rest) = text.split_once('\n').unwrap_or((&text, ""));
    format!("{}\n{rest}", paint(header, "1", environment::style_of_stdout()))
}

/// Text of unknown origin on one line, with nothing in it that a terminal would obey or that could not be seen.
pub(crate) fn plain(text: &str) -> String {
    visible_line(text)
}

pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks at the terminal. Only `y` and `yes` confirm.
pub(crate) fn confirm(question: &str) -> io::Result<bool> {
    let mut err = io::stderr().lock();
    write!(err, "{} [y/N] ", visible(question))?;
    err.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
