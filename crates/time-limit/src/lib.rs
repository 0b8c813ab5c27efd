//! A time limit that does not run while the process is stopped.
//!
//! A process that was stopped for a while, by a debugger, a hypervisor or a laptop's lid, finds every time-out over when it
//! goes on, though the answers that it waited for have long arrived and only have to be read. To give up on them then makes
//! the outcome of a commit unknown that is known.

use std::pin::pin;
use std::time::Duration;

use tokio::time::timeout;

/// A limit is waited for in so many parts. One of them at most is lost to a time in which the process did not run.
const PARTS: u32 = 10;

/// The limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitReached;

/// Waits for some work, but not longer than the limit, in which time that the process could not use counts for little.
pub async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Result<T, LimitReached> {
    let mut work = pin!(work);
    for _ in 0..PARTS {
        if let Ok(done) = timeout(limit / PARTS, work.as_mut()).await {
            return Ok(done);
        }
    }
    Err(LimitReached)
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::{Instant, advance, sleep};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn work_gets_the_whole_limit_and_no_more() {
        let begin = Instant::now();
        assert_eq!(within(LIMIT, sleep(LIMIT * 9 / 10)).await, Ok(()));
        assert_eq!(within(LIMIT, pending::<()>()).await, Err(LimitReached));
        assert!((begin.elapsed().as_secs_f64() - 9.5).abs() < 0.1, "{:?}", begin.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_arrived_while_the_process_was_stopped_is_taken() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let waiting = tokio::spawn(within(LIMIT, receiver));
        tokio::task::yield_now().await;
        // The clock jumps far beyond the limit, as it does for a process that was stopped. What brings the answer gets its
        // turn only afterwards.
        advance(LIMIT * 4).await;
        sleep(LIMIT / 10).await;
        sender.send("committed").unwrap();
        assert_eq!(waiting.await.unwrap(), Ok(Ok("committed")));
    }
}
