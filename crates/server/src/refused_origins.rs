//! Tells the operator which origins were refused, with the line that would allow them.
//!
//! Each is told of at once, and what follows within a minute is counted: a page tries again and again, and pages may be
//! many. However many there are, there are a few lines a minute and a few names in memory.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Origins that are told of by name within a minute. Further ones are only counted.
const MAX_ORIGINS: usize = 10;
const WINDOW: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(crate) struct RefusedOrigins {
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    origins: HashMap<String, Count>,
    /// Of origins that are not among those.
    others: Option<Count>,
}

#[derive(Debug, Clone, Copy)]
struct Count {
    since: Instant,
    /// Refusals that no line has told of.
    untold: u64,
}

/// A line to write.
#[derive(Debug, PartialEq, Eq)]
enum Report {
    First { origin: String },
    Repeated { origin: String, times: u64 },
    Others { times: u64 },
}

impl RefusedOrigins {
    /// Logs a refused origin, or counts it.
    pub(crate) fn report(&self, origin: &str, listed: &[String]) {
        if let Some(report) = self.count(origin, Instant::now()) {
            report.write(listed);
        }
    }

    /// Logs what was counted and is a minute old. Called every few seconds.
    pub(crate) fn report_repeated(&self, listed: &[String]) {
        for report in self.take_due(Instant::now()) {
            report.write(listed);
        }
    }

    fn count(&self, origin: &str, now: Instant) -> Option<Report> {
        let mut counts = self.lock();
        let Counts { origins, others } = &mut *counts;
        if let Some(count) = origins.get_mut(origin) {
            count.untold = count.untold.saturating_add(1);
            return None;
        }
        if origins.len() >= MAX_ORIGINS {
            let count = others.get_or_insert(Count { since: now, untold: 0 });
            count.untold = count.untold.saturating_add(1);
            return None;
        }
        origins.insert(origin.to_owned(), Count { since: now, untold: 0 });
        Some(Report::First { origin: origin.to_owned() })
    }

    fn take_due(&self, now: Instant) -> Vec<Report> {
        let mut counts = self.lock();
        let is_due = |count: &Count| now.saturating_duration_since(count.since) >= WINDOW;
        let due = counts.origins.extract_if(|_, count| is_due(count));
        let mut reports: Vec<Report> = due
            .filter(|(_, count)| count.untold > 0)
            .map(|(origin, count)| Report::Repeated { origin, times: count.untold })
            .collect();
        let others = counts.others.take_if(|count| is_due(count));
        reports.extend(others.map(|count| Report::Others { times: count.untold }));
        reports
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Report {
    fn write(&self, listed: &[String]) {
        match self {
            Self::First { origin } => match line_to_add(origin, listed) {
                Some(line) => tracing::warn!(origin, add = %line, "origin refused"),
                None => tracing::warn!(
                    origin,
                    "origin refused; it cannot be listed, serve the page over http or https"
                ),
            },
            Self::Repeated { origin, times } => {
                let line = line_to_add(origin, listed);
                tracing::warn!(origin, times, add = line, "origin refused again");
            }
            Self::Others { times } => tracing::warn!(times, "further origins refused"),
        }
    }
}

/// The line of the configuration with which the origin would be allowed; none for what is no web origin.
fn line_to_add(origin: &str, listed: &[String]) -> Option<String> {
    let url = url::Url::parse(origin).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let written = url.origin().ascii_serialization();
    let all: Vec<&str> = listed.iter().map(String::as_str).chain([&*written]).collect();
    Some(format!("[server] origins = {}", serde_json::json!(all)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_origin_is_named_with_the_whole_line_to_write() {
        let listed = vec!["https://a.example".to_owned()];
        assert_eq!(
            line_to_add("https://shop.example:8443", &listed).as_deref(),
            Some(r#"[server] origins = ["https://a.example","https://shop.example:8443"]"#)
        );
        for none in ["null", "file://", "chrome-extension://abc", "invalid", ""] {
            assert_eq!(line_to_add(none, &listed), None, "{none}");
        }
    }

    #[test]
    fn a_refused_origin_is_told_of_once_and_then_counted() {
        let refused = RefusedOrigins::default();
        let (origin, now) = ("https://a.example".to_owned(), Instant::now());
        assert_eq!(refused.count(&origin, now), Some(Report::First { origin: origin.clone() }));
        for _ in 0..1_000 {
            assert_eq!(refused.count(&origin, now), None);
        }
        assert_eq!(refused.take_due(now + WINDOW / 2), []);
        let repeated = Report::Repeated { origin: origin.clone(), times: 1_000 };
        assert_eq!(refused.take_due(now + WINDOW), [repeated]);
        assert_eq!(refused.take_due(now + 2 * WINDOW), [], "each refusal is counted once");
        assert_eq!(refused.count(&origin, now + WINDOW), Some(Report::First { origin }));
        assert_eq!(refused.take_due(now + 2 * WINDOW), [], "it was not refused again");
    }

    #[test]
    fn a_flood_of_origins_is_a_few_lines_a_count_and_a_few_names() {
        let refused = RefusedOrigins::default();
        let now = Instant::now();
        let told = |number: &u32| refused.count(&format!("https://{number}.example"), now).is_some();
        assert_eq!((0..100_000).filter(told).count(), MAX_ORIGINS);
        assert_eq!(refused.lock().origins.len(), MAX_ORIGINS);
        let times = 100_000 - MAX_ORIGINS as u64;
        assert_eq!(refused.take_due(now + WINDOW), [Report::Others { times }]);
        assert!(refused.lock().origins.is_empty(), "new origins are told of again");
    }
}
