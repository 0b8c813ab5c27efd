//! How time is taken.

use std::time::{Duration, Instant};

use cpu_time::ProcessTime;

/// What one call took.
pub(crate) struct PerCall {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
}

/// The same for work that waits.
pub(crate) async fn measure_async(calls: usize, mut work: impl AsyncFnMut(usize)) -> PerCall {
    for call in 0..calls / 10 {
        work(call).await;
    }
    let (wall, cpu) = (Instant::now(), ProcessTime::now());
    for call in 0..calls {
        work(call).await;
    }
    PerCall { wall: wall.elapsed() / calls as u32, cpu: cpu.elapsed() / calls as u32 }
}

/// Runs `work` for a tenth of the calls to warm up, then for all of them.
pub(crate) fn measure(calls: usize, mut work: impl FnMut(usize)) -> PerCall {
    (0..calls / 10).for_each(&mut work);
    let (wall, cpu) = (Instant::now(), ProcessTime::now());
    (0..calls).for_each(&mut work);
    PerCall { wall: wall.elapsed() / calls as u32, cpu: cpu.elapsed() / calls as u32 }
}
