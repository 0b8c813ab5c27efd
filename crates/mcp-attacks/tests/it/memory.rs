//! How much memory this process has needed.

/// The peak of the resident memory so far, in bytes.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Measures the growth of the peak over something that must not need more than `limit_bytes`.
///
/// `cargo nextest` gives each test a process of its own, so that nothing else is measured.
pub(crate) async fn within<T>(limit_bytes: u64, work: impl Future<Output = T>) -> T {
    let before = peak_bytes();
    let result = work.await;
    let growth = peak_bytes() - before;
    assert!(growth < limit_bytes, "the process grew by {growth} bytes, {limit_bytes} are allowed");
    result
}
