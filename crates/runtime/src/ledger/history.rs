//! The last turns of a session, which loop detection and budgets count in.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use super::turn::Turn;
use crate::metrics::TrackedTurns;

/// How many turns are remembered, the present one included.
const MAX_TURNS: usize = 5;

/// Turns in their order, the present one last. There always is one; before the first it has the number zero.
pub(super) struct TurnHistory {
    past: VecDeque<Turn>,
    present: Turn,
    /// What the turns of all sessions are counted in, until this session has ended.
    tracked: Option<TrackedTurns>,
    /// How many of them are this session's.
    counted: u64,
}

impl TurnHistory {
    pub(super) fn new(present: Turn, tracked: TrackedTurns) -> Self {
        let mut turns = Self { past: VecDeque::new(), present, tracked: Some(tracked), counted: 0 };
        turns.count();
        turns
    }

    pub(super) fn present(&mut self) -> &mut Turn {
        &mut self.present
    }

    pub(super) fn present_number(&self) -> u64 {
        self.present.number
    }

    /// Begins a turn. The oldest is forgotten.
    pub(super) fn push(&mut self, turn: Turn) {
        let before = std::mem::replace(&mut self.present, turn);
        // Zero stands for the time before the first turn.
        if before.number > 0 {
            self.past.push_back(before);
        }
        while self.past.len() >= MAX_TURNS {
            self.past.pop_front();
        }
        self.count();
    }

    pub(super) fn stop_tracking(&mut self) {
        self.set_count(0);
        self.tracked = None;
    }

    fn count(&mut self) {
        self.set_count(self.past.len() as u64 + u64::from(self.present.number > 0));
    }

    fn set_count(&mut self, count: u64) {
        let Some(tracked) = &self.tracked else { return };
        tracked.fetch_add(count, Ordering::Relaxed);
        tracked.fetch_sub(self.counted, Ordering::Relaxed);
        self.counted = count;
    }
}

impl Drop for TurnHistory {
    fn drop(&mut self) {
        self.stop_tracking();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_turns_are_kept_and_counted_with_those_of_other_sessions() {
        let tracked = TrackedTurns::default();
        let mut turns = TurnHistory::new(Turn::new(0), tracked.clone());
        let count = || tracked.load(Ordering::Relaxed);
        assert_eq!(count(), 0, "no turn has begun");
        for number in 1..=9 {
            turns.push(Turn::new(number));
            assert_eq!(count(), number.min(5));
        }
        let kept: Vec<_> = turns.past.iter().map(|turn| turn.number).collect();
        assert_eq!((kept, turns.present_number()), (vec![5, 6, 7, 8], 9));

        let resumed = TurnHistory::new(Turn::new(7), tracked.clone());
        assert_eq!(count(), 6);
        drop(resumed);
        assert_eq!(count(), 5);
        turns.stop_tracking();
        turns.push(Turn::new(10));
        assert_eq!(count(), 0, "the session has ended");
        drop(turns);
        assert_eq!(count(), 0);
    }
}
