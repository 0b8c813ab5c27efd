//! Rounds and medians.

use std::time::Duration;

use cpu_time::ProcessTime;

/// Runs `work` several times and gives the median of the CPU time it took.
pub(crate) fn median(rounds: usize, mut work: impl FnMut()) -> Duration {
    let mut times: Vec<_> = (0..rounds)
        .map(|_| {
            let start = ProcessTime::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}
