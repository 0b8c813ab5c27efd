//! The log: text at a terminal, JSON lines elsewhere.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

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
    let filter = filter(logs.level);
    // A second start in one process changes nothing, which only tests could notice.
    let _ = if is_human {
        let builder = builder.with_target(false).with_ansi(stderr().is_terminal());
        builder.finish().with(filter).try_init()
    } else {
        let builder = builder.json().flatten_event(true).with_current_span(false);
        builder.finish().with(filter).try_init()
    };
}

/// The SDK of MCP prints whole messages into its lines: arguments, results, and what a server elsewhere wrote. Only its
/// errors are logged, at every level.
fn filter(level: LevelFilter) -> Targets {
    Targets::new().with_default(level).with_target("rmcp", LevelFilter::ERROR.min(level))
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn messages_of_mcp_are_not_logged_at_any_level() {
        for level in [LevelFilter::INFO, LevelFilter::TRACE] {
            assert!(filter(level).would_enable("quarterdeck_host_mcp::upstream", &Level::INFO));
            assert!(filter(level).would_enable("rmcp::service", &Level::ERROR));
            assert!(!filter(level).would_enable("rmcp::service", &Level::WARN));
            assert!(!filter(level).would_enable("rmcp::transport::streamable_http_client", &Level::INFO));
        }
        assert!(!filter(LevelFilter::OFF).would_enable("rmcp::service", &Level::ERROR));
    }
}
