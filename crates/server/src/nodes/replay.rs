//! Accepts every number of a sender once, without a clock: a window over the latest ones, as IPsec has it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// How far a request may be overtaken by later ones of the same sender.
const WINDOW: u64 = 4_096;
const WORDS: usize = (WINDOW / 64) as usize;
/// Processes that have sent something lately.
const MAX_SENDERS: usize = 1_024;

/// The numbers that were seen, by sender.
#[derive(Debug)]
pub(super) struct ReplayGuard {
    /// After this time without a request a sender is forgotten. What it sent before is too old by then.
    forget_after_ms: u64,
    senders: Mutex<HashMap<String, Window>>,
}

#[derive(Debug)]
struct Window {
    highest: u64,
    /// One bit for each of the latest numbers, at its remainder.
    seen: Box<[u64; WORDS]>,
    used_ms: u64,
}

impl ReplayGuard {
    pub(super) fn new(forget_after_ms: u64) -> Self {
        Self { forget_after_ms, senders: Mutex::default() }
    }

    /// Whether a number of a sender is new. It is not from then on. A sender must have proved who it is before.
    pub(super) fn accept(&self, sender: &str, number: u64, now_ms: u64) -> bool {
        let mut senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        if senders.len() >= MAX_SENDERS && !senders.contains_key(sender) {
            senders.retain(|_, window| now_ms.saturating_sub(window.used_ms) < self.forget_after_ms);
            if senders.len() >= MAX_SENDERS {
                return false;
            }
        }
        let new = || Window { highest: number, seen: Box::new([0; WORDS]), used_ms: now_ms };
        let window = senders.entry(sender.to_owned()).or_insert_with(new);
        window.used_ms = now_ms;
        window.accept(number)
    }
}

impl Window {
    fn accept(&mut self, number: u64) -> bool {
        if number > self.highest {
            if number - self.highest >= WINDOW {
                self.seen.fill(0);
            } else {
                // The places between belong to numbers that have left the window.
                (self.highest + 1..=number).for_each(|skipped| self.clear(skipped));
            }
            self.highest = number;
        } else if self.highest - number >= WINDOW {
            return false;
        }
        let (word, bit) = place(number);
        let is_new = self.seen[word] & bit == 0;
        self.seen[word] |= bit;
        is_new
    }

    fn clear(&mut self, number: u64) {
        let (word, bit) = place(number);
        self.seen[word] &= !bit;
    }
}

fn place(number: u64) -> (usize, u64) {
    let place = number % WINDOW;
    ((place / 64) as usize, 1 << (place % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_number_is_accepted_once_and_the_latest_always(
            steps in prop::collection::vec((0_u64..3 * WINDOW, 0_u64..2 * WINDOW), 1..300),
        ) {
            let guard = ReplayGuard::new(1_000);
            // The first number that is seen is the highest so far, whatever it is.
            let (mut highest, mut accepted) = (None, HashSet::new());
            for (forward, back) in steps {
                let number = (highest.unwrap_or(WINDOW) + forward).saturating_sub(back);
                let is_old = highest.is_some_and(|highest| highest >= number + WINDOW);
                let is_new = !is_old && !accepted.contains(&number);
                prop_assert_eq!(guard.accept("a", number, 0), is_new, "{} after {:?}", number, highest);
                if is_new {
                    accepted.insert(number);
                }
                highest = highest.max(Some(number));
            }
        }
    }

    #[test]
    fn senders_are_bounded_and_forgotten_when_what_they_sent_is_too_old() {
        let guard = ReplayGuard::new(1_000);
        for sender in 0..MAX_SENDERS {
            assert!(guard.accept(&sender.to_string(), 1, 0));
        }
        assert!(!guard.accept("one more", 1, 999));
        assert!(guard.accept("7", 2, 999), "a known one goes on");
        assert!(guard.accept("one more", 1, 1_000));
        assert_eq!(guard.senders.lock().unwrap().len(), 2);
    }
}
