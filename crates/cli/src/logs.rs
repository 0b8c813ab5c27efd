//! The log: text at a terminal, JSON lines elsewhere. What is logged can be changed while the server runs.

mod filter;

use std::io::{IsTerminal, stderr};
use std::sync::Arc;

use quarterdeck_server::{LogFilter, LogLevels};
use quarterdeck_telemetry::LogLayer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt, reload};

use crate::config::{LogFormat, Logs};
use crate::terminal;
use filter::Filter;

/// The filter of the log that was started.
pub(crate) struct StartedLog {
    installed: reload::Handle<Targets, Registry>,
    configured: Filter,
}

/// Sends the log to standard error from now on, and to the telemetry collector if it takes lines.
pub(crate) fn start(logs: Logs, collector: Option<LogLayer>) -> StartedLog {
    let is_human = match logs.format {
        LogFormat::Human => true,
        LogFormat::Json => false,
        LogFormat::Auto => stderr().is_terminal(),
    };
    // Only where JSON was asked for: messages that are merely redirected stay text.
    if logs.format == LogFormat::Json {
        terminal::log_messages();
    }
    let configured = Filter::new(logs.level);
    let (filter, installed) = reload::Layer::new(configured.targets());
    let lines = fmt::layer().with_writer(stderr);
    let lines = match is_human {
        true => lines.with_target(false).with_ansi(stderr().is_terminal()).boxed(),
        false => lines.json().flatten_event(true).with_current_span(false).boxed(),
    };
    // A second start in one process changes nothing, which only tests could notice.
    let _ = tracing_subscriber::registry().with(filter).with(lines).with(collector).try_init();
    StartedLog { installed, configured }
}

impl StartedLog {
    /// For operators, who change it while the server runs.
    pub(crate) fn levels(self) -> Arc<LogLevels> {
        let configured = self.configured.to_string();
        Arc::new(LogLevels::new(Arc::new(self), configured))
    }
}

impl LogFilter for StartedLog {
    fn install(&self, text: &str) -> Result<String, String> {
        let filter = Filter::parse(text, self.configured.level())?;
        let installed = self.installed.reload(filter.targets());
        installed.map_err(|error| format!("The log could not be changed: {error}."))?;
        Ok(filter.to_string())
    }
}
