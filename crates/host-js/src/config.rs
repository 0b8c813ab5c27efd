//! The limits of a host.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{BUILT_IN_CAPABILITIES, CapabilitySpec};
use quarterdeck_outbound::Addresses;

use crate::fetch::{FetchStandIn, ToolGrants};

/// How much a [`crate::JsHost`] may use, in all and for one call.
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// Threads that run handlers. One that computes holds a thread; one that waits holds none.
    pub threads: usize,
    /// How far the threads may grow while all of them compute and a call waits, so that endless loops share the
    /// processor with the other handlers until their deadline. A handler that holds none gets one all the same.
    pub max_threads: usize,
    /// Threads that one handler may hold, so that it never takes all of them. Also how many threads it can leave
    /// stuck inside the engine: it is called again only when they have returned.
    pub max_threads_per_handler: usize,
    /// Stuck threads, of all handlers, that are replaced. Each holds an engine's memory until it returns.
    pub max_stuck_threads: usize,
    /// How long a handler that left a thread stuck is out of service, the first time; twice as long each time after,
    /// up to an hour.
    pub first_quarantine: Duration,
    /// Calls that may be in progress at once, waiting ones included: each holds an engine.
    pub max_calls: usize,
    /// Calls that may wait for a thread before they have started.
    pub max_queue: usize,
    /// Engines kept ready for a handler in use.
    pub pooled_per_handler: usize,
    /// Engines kept ready in all.
    pub max_pooled_engines: usize,
    /// How long a handler goes unused before its engines are dropped.
    pub engine_idle_timeout: Duration,
    /// Memory of one engine, in bytes.
    pub memory_bytes: usize,
    /// JavaScript stack of one engine, in bytes.
    pub stack_bytes: usize,
    /// Size of an answer's JSON, and of the arguments of one request, in bytes.
    pub max_answer_bytes: usize,
    /// What one call may send to each of log, audit and progress, in bytes.
    pub max_output_bytes: usize,
    /// Requests and timers that one call may have open.
    pub max_open_requests: usize,
    /// How long the top level of a handler's modules may take.
    pub load_timeout: Duration,
    /// What `fetch` may reach, and how much it may read.
    pub fetch: FetchConfig,
    /// The capabilities that handlers find in their context. Whether one may be used is the context's decision.
    pub capabilities: Vec<CapabilitySpec>,
}

impl Default for HostConfig {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(2, usize::from).max(2);
        let max_threads = (threads * 4).max(16);
        Self {
            threads,
            max_threads,
            max_threads_per_handler: max_threads / 4,
            max_stuck_threads: 32,
            first_quarantine: Duration::from_secs(30),
            max_calls: 1_024,
            max_queue: 512,
            pooled_per_handler: 4,
            max_pooled_engines: 128,
            engine_idle_timeout: Duration::from_secs(60),
            memory_bytes: 64 << 20,
            stack_bytes: 512 << 10,
            max_answer_bytes: 1 << 20,
            max_output_bytes: 64 << 10,
            max_open_requests: 256,
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
