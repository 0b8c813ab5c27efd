//! When a request is worth another try, and how long to wait for it.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::fmt::rfc2822;

use crate::{Fault, Limits};

/// The longest pause that we choose ourselves.
const LONGEST_BACKOFF: Duration = Duration::from_secs(8);

/// What the headers of an answer say about another try.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Hints {
    /// `x-should-retry`, which overrules the status.
    pub(crate) should_retry: Option<bool>,
    /// `retry-after-ms` or `retry-after`.
    pub(crate) after: Option<Duration>,
}

impl Hints {
    /// Reads them by name, since headers are the business of whoever has them.
    pub(crate) fn read<'a>(header: impl Fn(&str) -> Option<&'a str>, now: SystemTime) -> Self {
        let should_retry = match header("x-should-retry") {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        };
        let millis = || header("retry-after-ms").and_then(|text| seconds(text, 1_000.0));
        let after = || header("retry-after").and_then(|text| seconds(text, 1.0).or_else(|| until(text, now)));
        Self { should_retry, after: millis().or_else(after) }
    }

    /// What a fault looks like in their light.
    pub(crate) fn apply(&self, mut fault: Fault) -> Fault {
        fault.retry_after = self.after.or(fault.retry_after);
        if let Some(should_retry) = self.should_retry {
            fault.again = should_retry && !fault.spent;
        }
        fault
    }
}

/// How long to wait before try number `tried + 1`, or `None` when there shall be none. `chance` is in [0, 1).
pub(crate) fn pause(fault: &Fault, tried: u32, limits: &Limits, chance: f64) -> Option<Duration> {
    if !fault.again || tried > limits.retries {
        return None;
    }
    match fault.retry_after {
        Some(wanted) => (wanted <= limits.max_retry_delay).then_some(wanted),
        None => {
            let doubled = limits.backoff.saturating_mul(1 << tried.saturating_sub(1).min(16));
            // Less a quarter at most, so that clients that failed together do not come back together.
            Some(doubled.min(LONGEST_BACKOFF).mul_f64(1.0 - chance / 4.0))
        }
    }
}

/// `17s` or `0.5s`, as Google's `RetryInfo` has it.
pub(crate) fn parse_retry_delay(text: &str) -> Option<Duration> {
    seconds(text.strip_suffix('s')?, 1.0)
}

/// A number in [0, 1), for jitter.
pub(crate) fn chance() -> f64 {
    // Without randomness there is no jitter, which is no reason to fail.
    let random = getrandom::u32().unwrap_or(0);
    f64::from(random) / (f64::from(u32::MAX) + 1.0)
}

fn seconds(text: &str, per_second: f64) -> Option<Duration> {
    let number: f64 = text.trim().parse().ok()?;
    Duration::try_from_secs_f64(number / per_second).ok()
}

fn until(date: &str, now: SystemTime) -> Option<Duration> {
    let at = rfc2822::DateTimeParser::new().parse_timestamp(date.trim()).ok()?;
    let now = Timestamp::try_from(now).ok()?;
    // A date that has passed means now.
    Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::ChatErrorKind;

    use super::*;

    fn hints(headers: &[(&str, &'static str)]) -> Hints {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_445_412_480);
        Hints::read(|name| headers.iter().find(|(header, _)| *header == name).map(|(_, value)| *value), now)
    }

    #[test]
    fn a_provider_says_in_four_ways_when_to_come_back() {
        for (headers, after) in [
            (&[("retry-after-ms", "40")][..], Some(Duration::from_millis(40))),
            (&[("retry-after-ms", "40"), ("retry-after", "9")], Some(Duration::from_millis(40))),
            (&[("retry-after-ms", "soon"), ("retry-after", "9")], Some(Duration::from_secs(9))),
            (&[("retry-after", "1.5")], Some(Duration::from_millis(1_500))),
            // The clock of this test stands at 07:28:00.
            (&[("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT")], Some(Duration::from_secs(30))),
            (&[("retry-after", "Wed, 21 Oct 2015 07:00:00 GMT")], Some(Duration::ZERO)),
            (&[("retry-after", "-1")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "1e400")], None),
            (&[("retry-after", "tomorrow")], None),
            (&[], None),
        ] {
            assert_eq!(hints(headers).after, after, "{headers:?}");
        }
        assert_eq!(parse_retry_delay("17s"), Some(Duration::from_secs(17)));
        assert_eq!(parse_retry_delay("0.25s"), Some(Duration::from_millis(250)));
        assert_eq!(parse_retry_delay("17"), None);
    }

    #[test]
    fn a_header_overrules_the_status_but_not_a_spent_quota() {
        let passing = Fault::passing(ChatErrorKind::Overloaded, "");
        let lasting = Fault::new(ChatErrorKind::Rejected, "");
        let (yes, no) = (hints(&[("x-should-retry", "true")]), hints(&[("x-should-retry", "false")]));
        assert!(!no.apply(passing).again);
        assert!(yes.apply(lasting.clone()).again);
        assert!(!yes.apply(Fault { spent: true, ..lasting }).again);
    }

    #[test]
    fn pauses_double_up_to_a_limit_and_are_a_little_random() {
        let limits = Limits { retries: 9, ..Limits::default() };
        let fault = Fault::passing(ChatErrorKind::Overloaded, "");
        let pauses = |chance| {
            (1..=7).map(move |tried| pause(&fault.clone(), tried, &limits, chance)).collect::<Vec<_>>()
        };
        let millis = |all: [u64; 7]| all.map(|ms| Some(Duration::from_millis(ms))).to_vec();
        assert_eq!(pauses.clone()(0.0), millis([500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000]));
        assert_eq!(pauses(0.8), millis([400, 800, 1_600, 3_200, 6_400, 6_400, 6_400]));
        assert!((0.0..1.0).contains(&chance()));
    }

    #[test]
    fn a_wish_is_obeyed_within_reason() {
        let limits = Limits::default();
        let wanting = |seconds| Fault {
            retry_after: Some(Duration::from_secs(seconds)),
            ..Fault::passing(ChatErrorKind::RateLimited, "")
        };
        assert_eq!(pause(&wanting(20), 1, &limits, 0.5), Some(Duration::from_secs(20)));
        assert_eq!(pause(&wanting(21), 1, &limits, 0.5), None);
        assert_eq!(pause(&wanting(1), 3, &limits, 0.5), None, "two tries after the first are enough");
        assert_eq!(pause(&Fault::cut(""), 2, &Limits { retries: 1, ..limits }, 0.5), None);
    }
}
