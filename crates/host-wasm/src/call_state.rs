//! What the host keeps of a call beside its instance: the requests that it has made, and its limits.

use std::collections::HashMap;
use std::sync::Arc;

use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode, Context, LogLevel};
use wasmtime::ResourceLimiter;

use crate::config::HostConfig;
use crate::fetch::FetchResponse;
use crate::input::fact_json;
use crate::interface::MAX_TABLE_ELEMENTS;
use crate::quota::{Quota, QuotaVerdict};
use crate::request::{Request, result_json};

/// The state of one call, which the host's functions see.
pub struct CallState {
    /// The limits of the host.
    pub config: Arc<HostConfig>,
    /// The call's side of the runtime.
    pub context: Arc<dyn Context>,
    /// What is ready for the module to be copied, in languages that ask for things at once.
    pub reply: Vec<u8>,
    pub(crate) limiter: Limiter,
    pub(crate) max_returned_bytes: usize,
    bodies: Bodies,
    next_id: u32,
    /// Requests whose results the module has not been given, with the size of their arguments.
    open: HashMap<u32, usize>,
    /// Requests of this step, which begin when it ends.
    begun: Vec<(u32, Request)>,
    cancelled: Vec<u32>,
    log: Quota,
    audit: Quota,
    progress: Quota,
    partial: Quota,
}

/// How a language differs from a plain module.
#[derive(Debug, Clone, Copy)]
pub struct Language {
    /// What `execute` is given.
    pub input: InputForm,
    /// What its modules return.
    pub returns: Returns,
    /// How they get the body of a response.
    pub bodies: BodyForm,
    /// Whether a call may wait for nothing but the signal of its own end.
    pub waits_for_signal: bool,
}

/// What `execute` is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputForm {
    /// The arguments, and everything that is known of the call.
    Call,
    /// The arguments alone. The facts of the call are asked for.
    Arguments,
}

/// What `execute` and `resume` return in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returns {
    /// The JSON of an answer, within its limit.
    Answer,
    /// An ending in a form of the language's own, which bounds the answer itself.
    Ending,
}

/// Where the body of a response is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyForm {
    /// In the result of the request.
    InResult,
    /// With the host, until it is asked for.
    Kept,
}

enum Bodies {
    InResults,
    Kept(HashMap<u32, Vec<u8>>),
}

/// Where output goes, each within a quota of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// The operator's log.
    Log,
    /// The audit trail.
    Audit,
    /// What the user is told meanwhile.
    Progress,
    /// Parts of the answer.
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
    pub(crate) fn new(language: Language, config: Arc<HostConfig>, context: Arc<dyn Context>) -> Self {
        let quota = || Quota::new(config.max_output_bytes);
        Self {
            context,
            reply: Vec::new(),
            max_returned_bytes: match language.returns {
                Returns::Answer => config.max_answer_bytes,
                Returns::Ending => config.memory_bytes,
            },
            bodies: match language.bodies {
                BodyForm::InResult => Bodies::InResults,
                BodyForm::Kept => Bodies::Kept(HashMap::new()),
            },
            cancelled: Vec::new(),
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

    /// Gives up something that was begun. Whether it was still open.
    pub fn cancel(&mut self, id: u32) -> bool {
        let is_open = self.open.remove(&id).is_some();
        if is_open {
            self.cancelled.push(id);
        }
        is_open
    }

    pub(crate) fn take_cancelled(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.cancelled)
    }

    pub(crate) fn is_open(&self, id: u32) -> bool {
        self.open.contains_key(&id)
    }

    /// The result of a fetch as JSON.
    pub(crate) fn present(&mut self, id: u32, response: FetchResponse) -> String {
        let max_bytes = self.config.memory_bytes;
        match &mut self.bodies {
            Bodies::InResults => result_json(Ok(response.to_json())),
            Bodies::Kept(bodies) => {
                // They lie outside of the instance's memory, and may take as much again.
                let kept: usize = bodies.values().map(Vec::len).sum();
                if kept + response.body.len() > max_bytes {
                    let message = "too many responses were left unread";
                    return result_json(Err(CapabilityError::new(
                        CapabilityErrorCode::NotAvailable,
                        message,
                    )));
                }
                let head = response.head();
                bodies.insert(id, response.body);
                result_json(Ok(head))
            }
        }
    }

    /// A fact of the call as JSON, by its name in the context of a handler.
    pub fn fact(&self, name: &str) -> Option<String> {
        fact_json(name, self.context.facts(), &self.config.capabilities)
    }

    /// The body of a response that was kept, once.
    pub fn take_body(&mut self, id: u32) -> Option<Vec<u8>> {
        match &mut self.bodies {
            Bodies::InResults => None,
            Bodies::Kept(bodies) => bodies.remove(&id),
        }
    }

    pub(crate) fn take_begun(&mut self) -> Vec<(u32, Request)> {
        std::mem::take(&mut self.begun)
    }

    /// The module is about to be given a result.
    pub(crate) fn close(&mut self, id: u32) {
        self.open.remove(&id);
    }

    /// Charges `bytes` to a channel. The first message that has to be dropped is reported in the log.
    pub fn charge(&mut self, channel: Channel, bytes: usize) -> Option<&dyn Context> {
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
