//! What has become of saved files while the server follows its folders.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::watch;

/// How many problems are reported, and how long the text of each may be. A terminal has all of them.
const MAX_PROBLEMS: usize = 20;
const MAX_TEXT_CHARS: usize = 4_000;

/// What is live, and what is not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WatchStatus {
    /// The version of the tools that new sessions get.
    pub registry: String,
    /// How many saves have become live since the server was started.
    pub reloads: u64,
    /// What the last of them has changed, in lines.
    pub changes: Vec<String>,
    /// Why saved files are not live; empty when all are. What was live before still is.
    pub problems: Vec<WatchProblem>,
}

/// Why a saved file is not live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct WatchProblem {
    /// What was saved: `tools`, `prompts`, `knowledge` or `configuration`.
    pub source: String,
    /// The text as the terminal shows it.
    pub text: String,
}

/// Tells the pages of this machine about saved files. Cheap to clone.
#[derive(Debug, Clone)]
pub struct WatchFeed {
    status: watch::Sender<Arc<WatchStatus>>,
}

impl WatchFeed {
    pub fn new(registry: &str) -> Self {
        let status = WatchStatus { registry: registry.to_owned(), ..WatchStatus::default() };
        Self { status: watch::Sender::new(Arc::new(status)) }
    }

    pub fn status(&self) -> Arc<WatchStatus> {
        self.status.borrow().clone()
    }

    /// Replaces what is told. Readers get the newest, not every one.
    pub fn publish(&self, mut status: WatchStatus) {
        status.problems.truncate(MAX_PROBLEMS);
        for text in status.problems.iter_mut().map(|problem| &mut problem.text).chain(&mut status.changes) {
            if let Some((end, _)) = text.char_indices().nth(MAX_TEXT_CHARS) {
                text.truncate(end);
                text.push('…');
            }
        }
        self.status.send_replace(Arc::new(status));
    }

    pub(crate) fn follow(&self) -> watch::Receiver<Arc<WatchStatus>> {
        let mut receiver = self.status.subscribe();
        receiver.mark_changed();
        receiver
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_limited_in_number_and_length() {
        let feed = WatchFeed::new("1.0.0");
        let problem = WatchProblem { source: "tools".into(), text: "ä".repeat(MAX_TEXT_CHARS + 1) };
        feed.publish(WatchStatus { problems: vec![problem; MAX_PROBLEMS + 1], ..WatchStatus::default() });
        let status = feed.status();
        assert_eq!(status.problems.len(), MAX_PROBLEMS);
        assert_eq!(status.problems[0].text.chars().count(), MAX_TEXT_CHARS + 1, "with an ellipsis");
    }
}
