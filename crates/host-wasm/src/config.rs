//! The limits of a host.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{BUILT_IN_CAPABILITIES, CapabilitySpec};
use quarterdeck_outbound::Addresses;

use crate::fetch::{FetchStandIn, ToolGrants};
use crate::interface::MAX_MEMORY_BYTES;

/// How much a host may use, in all and for one call.
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
    /// Slots that keep such memory while no call uses them. The runtime shares them out between the processors, so that on two of them
    /// half as many handlers find their memory as they left it.
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
    /// How long the top level of a handler's modules may take, in languages that have one.
    pub load_timeout: Duration,
    /// What `fetch` may reach, and how much it may read.
    pub fetch: FetchConfig,
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
            max_warm_slots: 128,
            max_answer_bytes: 1 << 20,
            max_output_bytes: 64 << 10,
            max_open_requests: 256,
            max_open_request_bytes: 4 << 20,
            max_requests: 10_000,
            load_timeout: Duration::from_millis(500),
            fetch: FetchConfig::default(),
            capabilities: BUILT_IN_CAPABILITIES.to_vec(),
        }
    }
}

/// What `fetch` may do for any handler. Which hosts it reaches is declared by each tool.
#[derive(Debug, Clone)]
pub struct FetchConfig {
    /// Which addresses may be dialled once a name has been looked up.
    pub addresses: Addresses,
    /// Size of a response's body, in bytes.
    pub max_response_bytes: usize,
    /// Secrets and private hosts, by the id of the tool that an operator grants them to.
    pub grants: BTreeMap<String, ToolGrants>,
    /// What answers in place of the network, in tests of tools.
    pub stand_in: Option<Arc<dyn FetchStandIn>>,
}

impl Default for FetchConfig {
    fn default() -> Self {
        Self {
            addresses: Addresses::Public,
            max_response_bytes: 1 << 20,
            grants: BTreeMap::new(),
            stand_in: None,
        }
    }
}
