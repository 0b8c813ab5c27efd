//! Whether a request is retried, and after which delay.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::fmt::rfc2822;

use crate::{Fault, Limits};

/// For delays that the provider does not choose.
const MAX_BACKOFF: Duration = Duration::from_secs(8);

/// What the headers of an answer say about a retry.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Hints {
    /// `x-should-retry`, which overrules the status.
    pub(crate) should_retry: Option<bool>,
    /// `retry-after-ms` or `retry-after`.
    pub(crate) after: Option<Duration>,
}

impl Hints {
    /// Reads them by name, so that it does not depend on an HTTP library.
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

    pub(crate) fn apply(&self, mut fault: Fault) -> Fault {
        fault.retry_after = self.after.or(fault.retry_after);
        if let Some(should_retry) = self.should_retry {
            fault.is_retryable = should_retry && !fault.is_quota_exhausted;
        }
        fault
    }
}

/// The delay before attempt number `attempts + 1`, or `None` if there is none. `jitter` is in [0, 1).
pub(crate) fn retry_delay(fault: &Fault, attempts: u32, limits: &Limits, jitter: f64) -> Option<Duration> {
    if !fault.is_retryable || attempts > limits.retries {
        return None;
    }
    match fault.retry_after {
        Some(wanted) => (wanted <= limits.max_retry_delay).then_some(wanted),
        None => {
            let doubled = limits.backoff.saturating_mul(1 << attempts.saturating_sub(1).min(16));
            // Less a quarter at most, so that clients that failed together do not come back together.
            Some(doubled.min(MAX_BACKOFF).mul_f64(1.0 - jitter / 4.0))
        }
    }
}

/// `17s` or `0.5s`, as Google's `RetryInfo` has it.
pub(crate) fn parse_retry_delay(text: &str) -> Option<Duration> {
    seconds(text.strip_suffix('s')?, 1.0)
}

/// A number in [0, 1), for jitter.
pub(crate) fn jitter() -> f64 {
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
        let retryable = Fault::retryable(ChatErrorKind::Overloaded, "");
        let lasting = Fault::new(ChatErrorKind::Rejected, "");
        let (yes, no) = (hints(&[("x-should-retry", "true")]), hints(&[("x-should-retry", "false")]));
        assert!(!no.apply(retryable).is_retryable);
        assert!(yes.apply(lasting.clone()).is_retryable);
        assert!(!yes.apply(Fault { is_quota_exhausted: true, ..lasting }).is_retryable);
    }

    #[test]
    fn pauses_double_up_to_a_limit_and_are_a_little_random() {
        let limits = Limits { retries: 9, ..Limits::default() };
        let fault = Fault::retryable(ChatErrorKind::Overloaded, "");
        let pauses = |jitter| {
            (1..=7)
                .map(move |attempts| retry_delay(&fault.clone(), attempts, &limits, jitter))
                .collect::<Vec<_>>()
        };
        let millis = |all: [u64; 7]| all.map(|ms| Some(Duration::from_millis(ms))).to_vec();
        assert_eq!(pauses.clone()(0.0), millis([500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000]));
        assert_eq!(pauses(0.8), millis([400, 800, 1_600, 3_200, 6_400, 6_400, 6_400]));
        assert!((0.0..1.0).contains(&jitter()));
    }

    #[test]
    fn a_wish_is_obeyed_within_reason() {
        let limits = Limits::default();
        let wanting = |seconds| Fault {
            retry_after: Some(Duration::from_secs(seconds)),
            ..Fault::retryable(ChatErrorKind::RateLimited, "")
        };
        assert_eq!(retry_delay(&wanting(20), 1, &limits, 0.5), Some(Duration::from_secs(20)));
        assert_eq!(retry_delay(&wanting(21), 1, &limits, 0.5), None);
        assert_eq!(retry_delay(&wanting(1), 3, &limits, 0.5), None, "two tries after the first are enough");
        assert_eq!(retry_delay(&Fault::cut(""), 2, &Limits { retries: 1, ..limits }, 0.5), None);
    }
}
