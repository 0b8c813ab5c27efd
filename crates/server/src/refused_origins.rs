//! Tells the operator which origins were refused, with the line that would allow them.

use std::time::Instant;

use crate::rate_limit::RateLimiter;

/// A page tries again and again, and pages may be many.
const MAX_REPORTS_PER_MINUTE: u32 = 10;
/// Longer ones are no origins.
const MAX_ORIGIN_BYTES: usize = 260;

pub(crate) struct RefusedOrigins {
    of_origin: RateLimiter,
    of_all: RateLimiter,
}

impl Default for RefusedOrigins {
    fn default() -> Self {
        let of_all = RateLimiter::per_minute(MAX_REPORTS_PER_MINUTE);
        Self { of_origin: RateLimiter::per_minute(1), of_all }
    }
}

impl RefusedOrigins {
    /// Logs a refused origin, once in a minute.
    pub(crate) fn report(&self, origin: &str, listed: &[String]) {
        if !self.is_due(origin, Instant::now()) {
            return;
        }
        match line_to_add(origin, listed) {
            Some(line) => tracing::warn!(origin, add = %line, "origin refused"),
            None => tracing::warn!(
                origin,
                "origin refused; it cannot be listed, serve the page over http or https"
            ),
        }
    }

    fn is_due(&self, origin: &str, now: Instant) -> bool {
        origin.len() <= MAX_ORIGIN_BYTES
            && self.of_origin.acquire(origin, now).is_ok()
            && self.of_all.acquire("", now).is_ok()
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
        for none in ["null", "file://", "chrome-extension://abc", "evil", ""] {
            assert_eq!(line_to_add(none, &listed), None, "{none}");
        }
    }

    #[test]
    fn refused_origins_are_reported_once_in_a_minute_and_a_few_of_all() {
        let refused = RefusedOrigins::default();
        let now = Instant::now();
        assert!(refused.is_due("https://a.example", now));
        assert!(!refused.is_due("https://a.example", now));
        let due = (0..100).filter(|number| refused.is_due(&format!("https://{number}.example"), now)).count();
        assert_eq!(due, MAX_REPORTS_PER_MINUTE as usize - 1);
        assert!(refused.is_due("https://a.example", now + std::time::Duration::from_secs(61)));
        assert!(!RefusedOrigins::default().is_due(&"a".repeat(MAX_ORIGIN_BYTES + 1), now));
    }
}
