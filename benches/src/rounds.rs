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

/// The same for work that uses up something of its own for each call, which is made while no time is taken.
pub(crate) async fn measure_given<T>(
    calls: usize,
    mut make: impl FnMut(usize) -> T,
    mut work: impl AsyncFnMut(usize, T),
) -> PerCall {
    /// Few enough that they are still in the processor's caches when they are used, as what was just parsed is.
    const AT_A_TIME: usize = 32;
    let (mut wall, mut cpu) = (Duration::ZERO, Duration::ZERO);
    let mut run = async |calls: std::ops::Range<usize>| {
        for start in calls.clone().step_by(AT_A_TIME) {
            let numbers = start..(start + AT_A_TIME).min(calls.end);
            let given: Vec<_> = numbers.clone().map(&mut make).collect();
            let (wall_start, cpu_start) = (Instant::now(), ProcessTime::now());
            for (call, given) in numbers.zip(given) {
                work(call, given).await;
            }
            wall += wall_start.elapsed();
            cpu += cpu_start.elapsed();
        }
        (std::mem::take(&mut wall), std::mem::take(&mut cpu))
    };
    run(0..calls / 10).await;
    let (wall, cpu) = run(0..calls).await;
    PerCall { wall: wall / calls as u32, cpu: cpu / calls as u32 }
}

/// Runs `work` for a tenth of the calls to warm up, then for all of them.
pub(crate) fn measure(calls: usize, mut work: impl FnMut(usize)) -> PerCall {
    (0..calls / 10).for_each(&mut work);
    let (wall, cpu) = (Instant::now(), ProcessTime::now());
    (0..calls).for_each(&mut work);
    PerCall { wall: wall.elapsed() / calls as u32, cpu: cpu.elapsed() / calls as u32 }
}
