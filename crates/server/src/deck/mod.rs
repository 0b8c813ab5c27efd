//! Data for the operators' deck: metrics over time, the live audit feed, and registry changes.

mod alarms;
mod change;
mod feed;
mod history;
mod log_levels;
mod remote_feed;
mod series;

use std::path::PathBuf;
use std::sync::Arc;

use quarterdeck_alerts::{AlarmMessenger, Alarms};
use quarterdeck_contracts::{UpstreamMonitor, UpstreamView};
use quarterdeck_runtime::{MetricsSnapshot, VersionAdmin};

use crate::watch_feed::WatchFeed;

use history::HistoryFile;

pub use change::{RegistryChange, ToolChange};
pub use feed::{AuditFeed, AuditLogHandle};
pub use log_levels::{LogFilter, LogLevels};

pub(crate) use feed::{FeedItem, next_item};
pub(crate) use log_levels::LevelView;
pub(crate) use remote_feed::RemoteFeed;
pub(crate) use series::{Columns, Range, RecentCalls, SAMPLE_INTERVAL, Series};

/// What only operators use.
#[derive(Default)]
pub struct Operations {
    /// The audit log, if one is kept.
    pub audit: Option<AuditLogHandle>,
    /// The changes since the previous registry, if there was one.
    pub change: Option<RegistryChange>,
    /// Changes the loaded versions of the registry; `None` for a server with one version.
    pub versions: Option<Arc<VersionAdmin>>,
    /// Reports saved files; `None` for a server that does not follow its folders.
    pub watch: Option<WatchFeed>,
    /// Lists the MCP servers whose tools are imported; `None` if there are none.
    pub upstreams: Option<Arc<dyn UpstreamMonitor>>,
    /// Evaluates the alert rules.
    pub alarms: Arc<Alarms>,
    /// Where the deck's charts are kept over a restart; `None` for charts that begin anew.
    pub history_file: Option<PathBuf>,
    /// Tells an operator of alarms; `None` if there is no way to.
    pub messenger: Option<Arc<dyn AlarmMessenger>>,
    /// Changes what is logged; `None` for a server whose log is another's.
    pub log_levels: Option<Arc<LogLevels>>,
}

/// The state of the deck.
pub(crate) struct Deck {
    pub(crate) charts: Charts,
    /// Held while the audit log is verified.
    pub(crate) verifying: tokio::sync::Mutex<()>,
}

impl Deck {
    /// Goes on with the charts that were saved. It blocks while it reads.
    pub(crate) fn open(history: Option<PathBuf>, now_ms: u64) -> Self {
        Self { charts: Charts::open(history, now_ms), verifying: tokio::sync::Mutex::default() }
    }
}

/// The deck's charts, and the file that keeps them over a restart.
#[derive(Default)]
pub(crate) struct Charts {
    pub(crate) series: Series,
    file: Option<Arc<HistoryFile>>,
}

impl Charts {
    fn open(path: Option<PathBuf>, now_ms: u64) -> Self {
        let charts = Self { series: Series::default(), file: path.map(HistoryFile::new).map(Arc::new) };
        if let Some(file) = &charts.file {
            charts.series.restore(file.load(), now_ms);
        }
        charts
    }

    /// Samples the metrics, and now and then has the samples saved on another thread.
    pub(crate) fn sample(&self, at_ms: u64, snapshot: &MetricsSnapshot) {
        self.series.sample(at_ms, snapshot);
        if self.series.is_coarse()
            && let (Some(file), Ok(runtime)) = (self.file.clone(), tokio::runtime::Handle::try_current())
        {
            let history = self.series.history();
            runtime.spawn_blocking(move || file.save(&history));
        }
    }

    /// Saves the samples at the end. It blocks.
    pub(crate) fn save(&self) {
        if let Some(file) = &self.file {
            file.save(&self.series.history());
        }
    }
}

impl Operations {
    pub(crate) fn upstreams(&self) -> Vec<UpstreamView> {
        self.upstreams.as_ref().map(|monitor| monitor.list()).unwrap_or_default()
    }
}
