//! Follows the folders of a server that was started with `--watch`: what was saved is live for the next turn, or the
//! reason why not is in the terminal and on the page. What was live before stays until then.

mod configuration;
mod knowledge;
mod prompts;
mod report;
mod tools;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::folder_watcher::FolderWatcher;

pub(crate) use configuration::ConfigurationSource;
pub(crate) use knowledge::{KnowledgeHome, KnowledgeSource};
pub(crate) use prompts::PromptsSource;
pub(crate) use report::Report;
pub(crate) use tools::ToolsSource;

/// An editor may be between two steps of a save: what has problems is looked at again after this time.
const SECOND_LOOK: Duration = Duration::from_millis(200);

/// Files that are followed.
pub(crate) trait Source: Send {
    /// The word for it in reports.
    fn name(&self) -> &'static str;

    /// Differs when a file does. It only looks at names, sizes and times.
    fn fingerprint(&self) -> String;

    /// Makes live what was saved, whole or not at all; what has changed by that, in lines.
    fn reload(&mut self) -> Result<Vec<String>, NotLive>;
}

/// Why what was saved is not live.
pub(crate) enum NotLive {
    /// A file changed while it was read.
    Changing,
    Problems(Vec<Problem>),
}

/// A problem of a saved file.
pub(crate) struct Problem {
    pub(crate) plain: String,
    /// The same for a terminal that may show colours.
    pub(crate) styled: String,
}

impl Problem {
    pub(crate) fn new(text: String) -> Self {
        Self { plain: text.clone(), styled: text }
    }
}

impl NotLive {
    pub(crate) fn because(text: impl ToString) -> Self {
        Self::Problems(vec![Problem::new(text.to_string())])
    }
}

/// A source, and what was last seen of it.
pub(crate) struct Followed {
    source: Box<dyn Source>,
    seen: String,
}

impl Followed {
    /// Follows files whose present state is live already.
    pub(crate) fn from_now(source: impl Source + 'static) -> Self {
        let seen = source.fingerprint();
        Self { source: Box::new(source), seen }
    }

    /// Follows files that are to be read at once.
    pub(crate) fn from_nothing(source: impl Source + 'static) -> Self {
        Self { source: Box::new(source), seen: String::new() }
    }

    fn look(&mut self, report: &Report, is_stopped: &AtomicBool) {
        let mut now = self.source.fingerprint();
        while now != self.seen && !is_stopped.load(Ordering::Acquire) {
            let outcome = self.source.reload();
            if outcome.is_err() {
                std::thread::sleep(SECOND_LOOK);
            }
            let then = std::mem::replace(&mut now, self.source.fingerprint());
            match outcome {
                // The next round has the rest of the save.
                Err(NotLive::Changing) => continue,
                Err(NotLive::Problems(_)) if now != then => continue,
                Err(NotLive::Problems(problems)) => report.failed(self.source.name(), &problems),
                Ok(changes) => report.live(self.source.name(), changes),
            }
            self.seen = then;
        }
    }
}

/// Stops the threads that follow files.
#[derive(Clone, Default)]
pub(crate) struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    pub(crate) fn stop(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Follows sources in a thread of their own, until the process ends. A source that takes long holds up no other thread's.
pub(crate) fn follow(
    mut sources: Vec<Followed>,
    watcher: FolderWatcher,
    report: Report,
    stop: StopFlag,
) -> anyhow::Result<()> {
    let run = move || {
        while !stop.0.load(Ordering::Acquire) {
            sources.iter_mut().for_each(|source| source.look(&report, &stop.0));
            watcher.wait();
        }
    };
    std::thread::Builder::new().name("watch".into()).spawn(run)?;
    Ok(())
}
