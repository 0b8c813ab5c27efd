//! What the host keeps of a call beside its instance: the requests that it has made, and its limits.

use std::collections::HashMap;
use std::sync::Arc;

use quarterdeck_contracts::handler::{Context, LogLevel};
use wasmtime::ResourceLimiter;

use crate::config::HostConfig;
use crate::interface::MAX_TABLE_ELEMENTS;
use crate::quota::{Quota, QuotaVerdict};
use crate::request::Request;

/// The state of one call, which the host's functions see.
pub(crate) struct CallState {
    pub(crate) config: Arc<HostConfig>,
    pub(crate) context: Arc<dyn Context>,
    pub(crate) limiter: Limiter,
    next_id: u32,
    /// Requests whose results the module has not been given, with the size of their arguments.
    open: HashMap<u32, usize>,
    /// Requests of this step, which begin when it ends.
    begun: Vec<(u32, Request)>,
    log: Quota,
    audit: Quota,
    progress: Quota,
    partial: Quota,
}

/// Where output goes, each within a quota of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    Log,
    Audit,
    Progress,
    Partial,
}

impl Channel {
    fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Audit => "audit",
            Self::Progress => "progress",
            Self::Partial => "partial",
        }
    }
}

impl CallState {
    pub(crate) fn new(config: Arc<HostConfig>, context: Arc<dyn Context>) -> Self {
        let quota = || Quota::new(config.max_output_bytes);
        Self {
            context,
            limiter: Limiter { memory_bytes: config.memory_bytes, has_refused_memory: false },
            next_id: 1,
            open: HashMap::new(),
            begun: Vec::new(),
            log: quota(),
            audit: quota(),
            progress: quota(),
            partial: quota(),
            config,
        }
    }

    /// Numbers a request with so many bytes of arguments. `None` if the call has too many open, or has made too many.
    pub(crate) fn allocate_id(&mut self, bytes: usize) -> Option<u32> {
        if self.open.len() >= self.config.max_open_requests || self.next_id > self.config.max_requests {
            return None;
        }
        // As values they take a multiple of their text, outside of the memory that is limited.
        let open_bytes: usize = self.open.values().sum();
        if open_bytes + bytes > self.config.max_open_request_bytes {
            return None;
        }
        let id = self.next_id;
        self.next_id += 1;
        self.open.insert(id, bytes);
        Some(id)
    }

    pub(crate) fn begin(&mut self, id: u32, request: Request) {
        self.begun.push((id, request));
    }

    pub(crate) fn take_begun(&mut self) -> Vec<(u32, Request)> {
        std::mem::take(&mut self.begun)
    }

    /// The module is about to be given a result.
    pub(crate) fn close(&mut self, id: u32) {
        self.open.remove(&id);
    }

    /// Charges `bytes` to a channel. The first message that has to be dropped is reported in the log.
    pub(crate) fn charge(&mut self, channel: Channel, bytes: usize) -> Option<&dyn Context> {
        let quota = match channel {
            Channel::Log => &mut self.log,
            Channel::Audit => &mut self.audit,
            Channel::Progress => &mut self.progress,
            Channel::Partial => &mut self.partial,
        };
        match quota.spend(bytes) {
            QuotaVerdict::Granted => Some(&*self.context),
            QuotaVerdict::Refused => None,
            QuotaVerdict::JustExhausted => {
                let name = channel.name();
                let line = format!("the call went over its limit for {name} output; the rest is dropped");
                self.context.log(LogLevel::Warn, &line);
                None
            }
        }
    }
}

/// How far memory and table of an instance may grow. A module is told that they do not, and may go on without.
pub(crate) struct Limiter {
    memory_bytes: usize,
    /// Whether the module has wanted more memory than it may have; what it fails with afterwards is that.
    pub(crate) has_refused_memory: bool,
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, _: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let fits = desired <= self.memory_bytes && maximum.is_none_or(|maximum| desired <= maximum);
        self.has_refused_memory |= !fits;
        Ok(fits)
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.has_refused_memory = true;
        Ok(())
    }

    fn table_growing(&mut self, _: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= MAX_TABLE_ELEMENTS && maximum.is_none_or(|maximum| desired <= maximum))
    }
}
