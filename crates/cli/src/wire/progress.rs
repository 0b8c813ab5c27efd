//! The progress of a build of the knowledge base, as lines.

use std::sync::{Arc, Mutex, PoisonError};

use quarterdeck_knowledge::Progress;

use crate::terminal::{are_messages_logged, count, info};

/// Prints progress at every tenth, until it is stopped: a build on a blocking thread cannot be aborted, and must not
/// print after a server has said its last line.
#[derive(Clone, Default)]
pub(crate) struct ProgressLines {
    is_stopped: Arc<Mutex<bool>>,
}

impl ProgressLines {
    /// Nothing is printed after this returns.
    pub(crate) fn stop(&self) {
        *self.is_stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    pub(crate) fn follow(&self) -> impl FnMut(Progress) + use<> {
        self.follow_with(|line| {
            if !are_messages_logged() {
                info(line);
            }
        })
    }

    fn follow_with<P: FnMut(&str)>(&self, mut print: P) -> impl FnMut(Progress) + use<P> {
        let is_stopped = self.is_stopped.clone();
        let mut printed = None;
        move |Progress { done, total }| {
            let tenth = (done * 10).checked_div(total).unwrap_or(10);
            // Held while it prints, so that stopping waits for the line.
            let is_stopped = is_stopped.lock().unwrap_or_else(PoisonError::into_inner);
            // Not for an empty build.
            if printed.is_some_and(|printed| tenth > printed) && !*is_stopped {
                print(&format!("{done} of {}", count(total, "passage")));
            }
            printed = Some(tenth);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tenth_is_printed_and_nothing_after_the_stop() {
        let lines = ProgressLines::default();
        let mut printed = Vec::new();
        let mut follow = lines.follow_with(|line| printed.push(line.to_owned()));
        for done in [0, 1, 20, 25] {
            follow(Progress { done, total: 100 });
        }
        lines.stop();
        follow(Progress { done: 90, total: 100 });
        drop(follow);
        assert_eq!(printed, ["20 of 100 passages"]);
    }
}
