//! How long and how often something is tried again.

use std::time::Duration;

use quarterdeck_contracts::StoreError;
use quarterdeck_postgres::{Database, DatabaseError, ErrorClass, Work};
use tokio::time::{Instant, sleep};
use tokio_postgres::Client;

/// Within this time a server restarts or a standby takes over, and callers still wait.
pub(super) const RETRY_TIMEOUT: Duration = Duration::from_secs(8);
pub(super) const MAX_RETRY_DELAY: Duration = Duration::from_millis(500);
const MIN_RETRY_DELAY: Duration = Duration::from_millis(10);
/// The last attempt of all gets at least so long.
const MIN_ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);

/// Counts attempts until the time is up.
pub(super) struct Retry {
    deadline: Instant,
    delay: Duration,
}

impl Retry {
    pub(super) fn new() -> Self {
        Self { deadline: Instant::now() + RETRY_TIMEOUT, delay: MIN_RETRY_DELAY }
    }

    /// Runs one attempt within the time that is left.
    pub(super) async fn attempt<T, W>(&self, database: &Database, work: W) -> Result<T, DatabaseError>
    where
        W: for<'c> FnOnce(&'c Client) -> Work<'c, T> + Send,
    {
        let left = self.deadline.saturating_duration_since(Instant::now()).max(MIN_ATTEMPT_TIMEOUT);
        database.call_within(left, left.min(database.settings().statement_timeout), work).await
    }

    /// Waits before the next attempt; `false` when there is no time for one.
    pub(super) async fn wait(&mut self) -> bool {
        if Instant::now() + self.delay >= self.deadline {
            return false;
        }
        // Those who were refused together do not come back together.
        sleep(self.delay.mul_f64(0.5 + random_fraction())).await;
        self.delay = (self.delay * 2).min(MAX_RETRY_DELAY);
        true
    }
}

fn random_fraction() -> f64 {
    let mut byte = [0];
    // Without randomness they come back together, which costs time and nothing else.
    let _ = getrandom::fill(&mut byte);
    f64::from(byte[0]) / 256.0
}

/// Runs a statement that may be repeated as often as one likes.
pub(super) async fn repeat<T, W>(database: &Database, mut work: W) -> Result<T, StoreError>
where
    W: for<'c> FnMut(&'c Client) -> Work<'c, T> + Send,
{
    let mut retry = Retry::new();
    loop {
        match retry.attempt(database, &mut work).await {
            Ok(result) => return Ok(result),
            Err(error) if error.class() == ErrorClass::Final || !retry.wait().await => {
                return Err(store_error(&error));
            }
            Err(_) => {}
        }
    }
}

/// What the caller is told of an error that was not to be mended.
pub(super) fn store_error(error: &DatabaseError) -> StoreError {
    match error.class() {
        ErrorClass::Final => StoreError::Failed(error.to_string()),
        _ => StoreError::Unavailable(error.to_string()),
    }
}
