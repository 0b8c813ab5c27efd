//! The level of the log while the server runs: what it is, changing it for a while, and going back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::task::AbortHandle;

use crate::app::App;

/// Installs what is logged. The server does not know how the log is written.
pub trait LogFilter: Send + Sync {
    /// Installs a level or a list of levels by target, and returns it as it is understood. An error says what is allowed,
    /// and changes nothing.
    fn install(&self, filter: &str) -> Result<String, String>;
}

/// The filter of the log, and until when it holds.
pub struct LogLevels {
    filter: Arc<dyn LogFilter>,
    state: Mutex<LevelState>,
}

struct LevelState {
    configured: String,
    /// What holds until it is changed: the configured one, or the last that was set without an end.
    lasting: String,
    current: String,
    temporary: Option<Temporary>,
}

struct Temporary {
    until_ms: u64,
    timer: AbortHandle,
}

/// What an operator sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LevelView {
    pub(crate) current: String,
    pub(crate) lasting: String,
    pub(crate) configured: String,
    pub(crate) until_ms: Option<u64>,
}

impl LogLevels {
    /// `configured` is what was installed at the start.
    pub fn new(filter: Arc<dyn LogFilter>, configured: String) -> Self {
        let state = LevelState {
            lasting: configured.clone(),
            current: configured.clone(),
            configured,
            temporary: None,
        };
        Self { filter, state: Mutex::new(state) }
    }

    pub(crate) fn view(&self) -> LevelView {
        self.lock().view()
    }

    fn lock(&self) -> MutexGuard<'_, LevelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Installs a filter, or the configured one, until it is changed or for a while.
    fn set(
        &self,
        filter: Option<&str>,
        temporary: impl FnOnce() -> Option<Temporary>,
    ) -> Result<LevelView, String> {
        let mut state = self.lock();
        let wanted = filter.unwrap_or(&state.configured);
        let installed = self.filter.install(wanted)?;
        if let Some(earlier) = state.temporary.take() {
            earlier.timer.abort();
        }
        state.temporary = temporary();
        if state.temporary.is_none() {
            state.lasting.clone_from(&installed);
        }
        state.current = installed;
        Ok(state.view())
    }

    /// Goes back to what lasts, if the time is over that ends at `until_ms`.
    fn revert(&self, until_ms: u64) -> Option<LevelView> {
        let mut state = self.lock();
        state.temporary.take_if(|temporary| temporary.until_ms == until_ms)?;
        // It was installed before.
        let installed = self.filter.install(&state.lasting).ok()?;
        state.current = installed;
        Some(state.view())
    }
}

impl LevelState {
    fn view(&self) -> LevelView {
        LevelView {
            current: self.current.clone(),
            lasting: self.lasting.clone(),
            configured: self.configured.clone(),
            until_ms: self.temporary.as_ref().map(|temporary| temporary.until_ms),
        }
    }
}

impl App {
    /// Changes the level of the log; `None` is the configured one.
    pub(crate) fn set_log_level(
        self: &Arc<Self>,
        levels: &Arc<LogLevels>,
        filter: Option<&str>,
        lifetime: Option<Duration>,
    ) -> Result<LevelView, String> {
        let start_timer = |lifetime: Duration| {
            let until_ms = self.orchestrator.now_ms() + lifetime.as_millis() as u64;
            let (app, levels) = (self.clone(), levels.clone());
            let timer = tokio::spawn(async move {
                tokio::time::sleep(lifetime).await;
                if let Some(view) = levels.revert(until_ms) {
                    app.record_reverted(&view);
                }
            });
            Temporary { until_ms, timer: timer.abort_handle() }
        };
        levels.set(filter, || lifetime.map(start_timer))
    }

    fn record_reverted(&self, view: &LevelView) {
        tracing::warn!(filter = view.current, "log level reverted");
        if let Some(log) = &self.operations.audit {
            let details = json!({ "filter": view.current });
            let now = self.orchestrator.now();
            log.feed.record_operator_action("log_level_reverted", "server", details, now);
        }
    }
}
