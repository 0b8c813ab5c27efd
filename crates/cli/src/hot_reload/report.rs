//! Says what has become of saved files, in the terminal and to the page.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quarterdeck_runtime::Registry;
use quarterdeck_server::{WatchFeed, WatchProblem, WatchStatus};

use super::Problem;
use crate::terminal::{are_messages_logged, info, warn};

/// What is said of all sources together. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Report {
    /// Tells the page; `None` where nothing listens.
    feed: Option<WatchFeed>,
    registry: Arc<Registry>,
    problems: Arc<Mutex<BTreeMap<&'static str, Vec<String>>>>,
}

impl Report {
    pub(crate) fn new(feed: Option<WatchFeed>, registry: Arc<Registry>) -> Self {
        Self { feed, registry, problems: Arc::default() }
    }

    /// What was saved is not live.
    pub(super) fn failed(&self, source: &'static str, problems: &[Problem]) {
        for problem in problems {
            if are_messages_logged() {
                tracing::error!(source, "{}", problem.plain);
            } else {
                info(&format!("{}\n", problem.styled));
            }
        }
        warn(&format!("{source}: not live; what was there before stays until this is corrected"));
        let mut known = self.lock();
        known.insert(source, problems.iter().map(|problem| problem.plain.clone()).collect());
        self.publish(&known, None);
    }

    /// What was saved is live.
    pub(super) fn live(&self, source: &'static str, changes: Vec<String>) {
        let mut known = self.lock();
        let had_problems = known.remove(source).is_some();
        if changes.is_empty() && !had_problems {
            return;
        }
        let (registry, lines) = (self.registry.snapshot(), changes.join("\n"));
        let what = if changes.is_empty() { "as before, without problems" } else { &lines };
        info(&format!("live ({source}, registry {}):\n{what}", registry.version()));
        self.publish(&known, Some(changes));
    }

    /// Tells the page. The lock is held, so that what is told last is the newest.
    fn publish(&self, problems: &BTreeMap<&'static str, Vec<String>>, changes: Option<Vec<String>>) {
        let Some(feed) = &self.feed else { return };
        let before = feed.status();
        let of_source = |(source, texts): (&&'static str, &Vec<String>)| {
            let source = (*source).to_owned();
            texts.iter().map(|text| WatchProblem { source: source.clone(), text: text.clone() }).collect()
        };
        let problems = problems.iter().flat_map(|entry| -> Vec<WatchProblem> { of_source(entry) });
        feed.publish(WatchStatus {
            registry: self.registry.snapshot().version().to_owned(),
            reloads: before.reloads + u64::from(changes.is_some()),
            changes: changes.unwrap_or_default(),
            problems: problems.collect(),
        });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, Vec<String>>> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
