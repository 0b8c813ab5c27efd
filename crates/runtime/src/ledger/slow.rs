//! Calls that took longer than they should, which the model is told of when the next turn begins.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// How many tools a note names.
const MAX_TOOLS: usize = 5;

/// The slowest call of each tool since the last turn began.
#[derive(Debug, Default)]
pub(crate) struct SlowCalls {
    slowest: Vec<SlowCall>,
}

#[derive(Debug)]
struct SlowCall {
    tool: Arc<str>,
    took: Duration,
    limit: Duration,
}

impl SlowCalls {
    pub(crate) fn add(&mut self, tool: &Arc<str>, took: Duration, limit: Duration) {
        if let Some(call) = self.slowest.iter_mut().find(|call| call.tool == *tool) {
            if took > call.took {
                (call.took, call.limit) = (took, limit);
            }
        } else if self.slowest.len() < MAX_TOOLS {
            self.slowest.push(SlowCall { tool: tool.clone(), took, limit });
        }
    }

    /// The note about them, if there are any.
    pub(crate) fn take_note(&mut self) -> Option<String> {
        let slowest = std::mem::take(&mut self.slowest);
        let mut note = String::new();
        for SlowCall { tool, took, limit } in &slowest {
            let before = if note.is_empty() { "Slow in the last turn:" } else { "," };
            let _ = write!(note, "{before} {tool} took {} ms of {} ms", took.as_millis(), limit.as_millis());
        }
        (!note.is_empty()).then(|| format!("{note}. Use fewer or narrower calls where you can."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_call_of_each_tool_is_told_once() {
        let mut slow = SlowCalls::default();
        assert_eq!(slow.take_note(), None);
        let ms = Duration::from_millis;
        for (tool, took) in [("look", 900), ("look", 1_200), ("look", 850), ("book", 4_000)] {
            slow.add(&tool.into(), ms(took), ms(800));
        }
        assert_eq!(
            slow.take_note().as_deref(),
            Some(
                "Slow in the last turn: look took 1200 ms of 800 ms, book took 4000 ms of 800 ms. Use fewer or narrower \
                 calls where you can."
            )
        );
        assert_eq!(slow.take_note(), None);
        for number in 0..100 {
            slow.add(&format!("tool_{number}").into(), ms(2), ms(1));
        }
        assert_eq!(slow.take_note().unwrap().matches("took").count(), MAX_TOOLS);
    }
}
