//! The log: text at a terminal, JSON lines elsewhere.

use std::io::{IsTerminal, stderr};

use crate::config::{LogFormat, Logs};
use crate::terminal;

/// Sends the log to standard error from now on.
pub(crate) fn start(logs: Logs) {
    let is_human = match logs.format {
        LogFormat::Human => true,
        LogFormat::Json => false,
        LogFormat::Auto => stderr().is_terminal(),
    };
    // Only where JSON was asked for: messages that are merely redirected stay text.
    if logs.format == LogFormat::Json {
        terminal::log_messages();
    }
    let builder = tracing_subscriber::fmt().with_max_level(logs.level).with_writer(stderr);
    // A second start in one process changes nothing, which only tests could notice.
    let _ = if is_human {
        builder.with_target(false).with_ansi(stderr().is_terminal()).try_init()
    } else {
        builder.json().flatten_event(true).with_current_span(false).try_init()
    };
}
