//! The limits of a host.

use std::time::Duration;

use quarterdeck_contracts::{BUILT_IN_CAPABILITIES, CapabilitySpec};

use crate::interface::MAX_MEMORY_BYTES;

/// How much a [`crate::WasmHost`] may use, in all and for one call. Where JavaScript handlers have the same limit, it is the same.
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// Calls that may be in progress at once, waiting ones included. Each holds an instance, and a slot of
    /// `memory_bytes` is reserved for it: addresses, and no memory until it is used.
    pub max_calls: usize,
    /// Threads that calls may compute on at once, beyond their first moments.
    pub max_threads: usize,
    /// Threads that one handler may hold, so that it never takes all of them.
    pub max_threads_per_handler: usize,
    /// How long a call computes before it looks whether it should stop, and how long it may hold up the task that makes it.
    pub time_slice: Duration,
    /// Memory of one instance, in bytes; at most 64 MiB.
    pub memory_bytes: usize,
    /// Stack of one instance, in bytes.
    pub stack_bytes: usize,
    /// Memory of a slot that is cleared by hand and kept when a call has ended, in bytes. What a call used beyond it is given back.
    pub keep_resident_bytes: usize,
    /// Slots that keep such memory while no call uses them.
    pub max_warm_slots: u32,
    /// Size of an answer, and of the arguments of one request, in bytes.
    pub max_answer_bytes: usize,
    /// What one call may send to each of log, audit, progress and partial results, in bytes.
    pub max_output_bytes: usize,
    /// Requests that one call may have open.
    pub max_open_requests: usize,
    /// Size of the arguments of all open requests of one call, in bytes.
    pub max_open_request_bytes: usize,
    /// Requests that one call may make.
    pub max_requests: u32,
    /// The capabilities that handlers can name. Whether one may be used is the context's decision.
    pub capabilities: Vec<CapabilitySpec>,
}

impl Default for HostConfig {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(2, usize::from).max(2);
        let max_threads = (threads * 4).max(16);
        Self {
            max_calls: 1_024,
            max_threads,
            max_threads_per_handler: max_threads / 4,
            time_slice: Duration::from_millis(2),
            memory_bytes: MAX_MEMORY_BYTES,
            stack_bytes: 512 << 10,
            keep_resident_bytes: 1 << 20,
            max_warm_slots: 64,
            max_answer_bytes: 1 << 20,
            max_output_bytes: 64 << 10,
            max_open_requests: 256,
            max_open_request_bytes: 4 << 20,
            max_requests: 10_000,
            capabilities: BUILT_IN_CAPABILITIES.to_vec(),
        }
    }
}
