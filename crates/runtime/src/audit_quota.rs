//! Limits how many records a foreign party can cause.
//!
//! A server elsewhere decides how often it asks for what it may not have, and how often it changes what it publishes. What
//! comes first is written at once; of what follows within a minute only so much, and the next record says how many were
//! left out.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

const WINDOW: Duration = Duration::from_secs(60);
/// Records about one subject in a window.
const MAX_RECORDS: u32 = 10;
/// Subjects are named by the configuration; this holds whatever it has.
const MAX_SUBJECTS: usize = 1_024;

/// Counts records by their subject.
#[derive(Debug, Default)]
pub(crate) struct AuditQuota {
    subjects: Mutex<HashMap<String, Window>>,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    since: SystemTime,
    records: u32,
    omitted: u64,
}

impl AuditQuota {
    /// Whether another record about a subject may be written: `Some` with how many were left out before it.
    pub(crate) fn admit(&self, subject: &str, now: SystemTime) -> Option<u64> {
        let mut subjects = self.subjects.lock().unwrap_or_else(PoisonError::into_inner);
        if !subjects.contains_key(subject) {
            if subjects.len() >= MAX_SUBJECTS {
                // One that still has to say what was left out stays.
                subjects.retain(|_, window| window.omitted > 0 || !window.is_over(now));
            }
            if subjects.len() >= MAX_SUBJECTS {
                return None;
            }
        }
        let fresh = Window { since: now, records: 0, omitted: 0 };
        let window = subjects.entry(subject.to_owned()).or_insert(fresh);
        if window.is_over(now) {
            *window = Window { omitted: window.omitted, ..fresh };
        }
        if window.records >= MAX_RECORDS {
            window.omitted += 1;
            return None;
        }
        window.records += 1;
        Some(std::mem::take(&mut window.omitted))
    }
}

impl Window {
    /// A clock that was set back ends a window as well.
    fn is_over(&self, now: SystemTime) -> bool {
        now.duration_since(self.since).map_or(true, |age| age >= WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000 + seconds)
    }

    #[test]
    fn a_flood_is_cut_and_the_next_record_says_how_much_was_left_out() {
        let quota = AuditQuota::default();
        let admitted = (0..1_000).filter(|_| quota.admit("weather refused", at(0)).is_some()).count();
        assert_eq!(admitted, MAX_RECORDS as usize);
        assert_eq!(quota.admit("weather drifted", at(0)), Some(0), "other subjects are not held up");
        assert_eq!(quota.admit("weather refused", at(59)), None);
        assert_eq!(quota.admit("weather refused", at(60)), Some(991));
        assert_eq!(quota.admit("weather refused", at(60)), Some(0));
    }

    #[test]
    fn more_subjects_than_are_kept_take_no_memory() {
        let quota = AuditQuota::default();
        let admitted = (0..5_000).filter(|number| quota.admit(&number.to_string(), at(0)).is_some()).count();
        assert_eq!(admitted, MAX_SUBJECTS);
        assert_eq!(quota.admit("new", at(61)), Some(0), "old subjects make room");
    }
}
