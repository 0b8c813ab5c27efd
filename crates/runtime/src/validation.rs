//! Checks values against schemas away from the threads that others wait for.
//!
//! A schema checks any value within a bounded number of steps, but that bound is long enough for a hundred other
//! requests. What is not known to be quick is checked on a thread that may block, a few at a time and within a deadline.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_schema::{Schema, Violation};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// How long checking one value may take, the wait for a thread included.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// Values that are checked at the same time. More would take the processors from everything else.
const MAX_CONCURRENT_CHECKS: usize = 4;

static CHECKS: Semaphore = Semaphore::const_new(MAX_CONCURRENT_CHECKS);

/// Arguments that were checked before their call is admitted.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedArguments {
    pub given: Value,
    /// The same with their defaults, or everything that is wrong.
    pub outcome: Result<Value, Vec<Violation>>,
}

/// Checks arguments and fills in their defaults.
pub(crate) async fn check_arguments(schema: &Arc<Schema>, given: Value) -> CheckedArguments {
    let (schema, mut filled) = (schema.clone(), given.clone());
    let judged = run_blocking(move || schema.admit(&mut filled).map(|_| filled)).await;
    CheckedArguments { given, outcome: judged.unwrap_or_else(|| Err(vec![Violation::too_complex()])) }
}

/// Runs work that may take a while. `None` if it did not end in time; it then goes on to its own bound, in vain.
pub(crate) async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let done = async {
        let permit = CHECKS.acquire().await.ok()?;
        let work = move || {
            // Held until the work has ended, also when it is no longer waited for.
            let _permit = permit;
            work()
        };
        tokio::task::spawn_blocking(work).await.ok()
    };
    timeout(CHECK_TIMEOUT, done).await.ok().flatten()
}
