//! What runs handlers.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::{BoxFuture, Context, HandlerFault, HandlerFiles, HostObserver};
use crate::{AnswerError, HandlerAnswer, Metadata, ToolError, UpstreamMonitor};

/// Runs handlers of one kind. The registry does not know which host it is calling.
///
/// A host may rely on the sources being those that were compiled. It must not let one handler see, slow down or
/// break another.
pub trait HandlerHost: Send + Sync {
    /// Gets a handler ready to run, once for each registry that is loaded.
    fn load(&self, handler: HandlerToLoad<'_>) -> Result<Arc<dyn Handler>, HostError>;

    /// Lists the servers that run its handlers elsewhere. A host that runs them itself has none.
    fn upstreams(&self) -> Option<&dyn UpstreamMonitor> {
        None
    }

    /// Sends events to this observer from now on, instead of the one before.
    fn observe(&self, _observer: Arc<dyn HostObserver>) {}
}

/// What a host is given to load.
#[derive(Debug, Clone, Copy)]
pub struct HandlerToLoad<'a> {
    /// The tool's definition but for its parameters.
    pub metadata: &'a Metadata,
    /// The entry file, relative to the tools folder.
    pub entry: &'a str,
    /// Every file that the handler is made of. Hashes have been checked.
    pub files: &'a HandlerFiles,
}

/// A handler that is ready to run.
pub trait Handler: Send + Sync {
    /// Runs one call with arguments that the tool's schema has accepted.
    ///
    /// The future ends by the deadline of `limits` whatever the handler does, and may be dropped at any time; what
    /// the handler does after that has no effect.
    fn run(
        &self,
        args: Value,
        context: Arc<dyn Context>,
        limits: Limits,
    ) -> BoxFuture<Result<HandlerAnswer, HostError>>;

    /// Whether its answers hold text that neither the user nor this server wrote, whatever the definition says.
    fn has_foreign_text(&self) -> bool {
        false
    }

    /// Looks at a call before the user is asked to approve it, so that what cannot be done is refused and not approved. It changes
    /// nothing: its context refuses every capability that writes. `None` if the handler has nothing to look at.
    fn precheck(
        &self,
        _args: Value,
        _context: Arc<dyn Context>,
        _limits: Limits,
    ) -> Option<BoxFuture<Result<PrecheckAnswer, HostError>>> {
        None
    }
}

/// What a handler says about a call before the user is asked: ask, or refuse the call.
pub type PrecheckAnswer = Result<Precheck, ToolError>;

/// What the user is asked, and what the handler wants to know again once they have approved.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Precheck {
    /// The sentence that the user sees, in the place of the definition's `preview`.
    pub preview: Option<String>,
    /// What the handler saw, such as the version of what it will change: [`CallFacts::seen`](super::CallFacts::seen) of the
    /// approved call.
    pub seen: Value,
}

/// What one execution may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Wall time until the hard stop.
    pub timeout: Duration,
}

/// Why a host could not produce a handler's answer. The operator reads it in the log; the model never does.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The handler cannot be made ready.
    #[error("the handler cannot be loaded: {0}")]
    Unloadable(String),
    /// The handler threw before there was a call: at the top level of its files.
    #[error("the handler cannot be loaded: {0}")]
    FailedToLoad(Box<HandlerFault>),
    /// It ran past its time.
    #[error("the handler ran past its deadline of {limit_ms} ms")]
    TimedOut {
        /// What it was allowed.
        limit_ms: u64,
        /// Whether it was computing when it was stopped, rather than waiting for something.
        computing: bool,
    },
    /// It needed more memory or stack than it may have.
    #[error("the handler went over its limit of {0}")]
    OverLimit(&'static str),
    /// It panicked or threw something that is not a `ToolError`.
    #[error("the handler failed: {0}")]
    Crashed(String),
    /// What it returned is not an answer.
    #[error("the handler's answer is malformed: {0}")]
    BadAnswer(#[from] AnswerError),
    /// The host has no room; nothing was run.
    #[error("too many calls are waiting")]
    Busy {
        /// When there may be room again.
        retry_after_ms: u64,
    },
}

impl HostError {
    /// What an operator is told of it. `None` where the handler was not run and is not to blame.
    pub fn to_fault(&self) -> Option<HandlerFault> {
        match self {
            Self::Busy { .. } => None,
            Self::FailedToLoad(fault) => Some((**fault).clone()),
            Self::TimedOut { .. } => Some(HandlerFault::new(self.to_string()).with_hint(
                "`timeoutMs` in schema.json is the hard stop; a handler that takes longer goes on in the background \
                 with \"execution\": \"background\"",
            )),
            Self::Unloadable(_) | Self::OverLimit(_) | Self::Crashed(_) | Self::BadAnswer(_) => {
                Some(HandlerFault::new(self.to_string()))
            }
        }
    }
}
