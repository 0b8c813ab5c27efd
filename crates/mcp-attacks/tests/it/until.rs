//! Waits for the thing itself.

use std::time::{Duration, Instant};

/// Far longer than anything here takes, also on a machine that is busy with other work.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until something holds; `what` is what the test says when it never does.
pub(crate) async fn until<T>(what: &str, mut holds: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = holds() {
            return value;
        }
        assert!(start.elapsed() < TIMEOUT, "timed out: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
