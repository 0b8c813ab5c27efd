//! The arithmetic of free time.

use jiff::Timestamp;
use proptest::collection::vec;
use proptest::prelude::*;

use super::conflict::{nearest_free, search_window};
use super::period::Period;

fn period(start: i64, length: i64) -> Period {
    let at = |minute: i64| Timestamp::from_second(1_768_294_800 + minute * 60).unwrap();
    Period { start: at(start), end: at(start + length) }
}

proptest! {
    #[test]
    fn offers_are_free_in_time_and_of_the_right_length(
        busy in vec((0..15_000_i64, 1..2_000_i64), 0..60),
        start in 0..5_000_i64,
        length in 1..1_440_i64,
    ) {
        let now = period(0, 1).start;
        let wanted = period(start, length);
        let around = search_window(wanted, now);
        let busy: Vec<Period> = busy.into_iter().map(|(start, length)| period(start, length)).collect();
        let offers = nearest_free(wanted, around, busy.clone());
        prop_assert!(offers.len() <= 3);
        for offer in &offers {
            prop_assert_eq!(offer.length(), wanted.length());
            prop_assert!(offer.start >= now && offer.start >= around.start && offer.end <= around.end);
            prop_assert!(busy.iter().all(|period| period.end <= offer.start || period.start >= offer.end));
        }
        let distance = |offer: &Period| offer.start.duration_since(wanted.start).abs();
        prop_assert!(offers.is_sorted_by_key(distance));
    }
}
