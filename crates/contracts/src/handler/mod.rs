//! Handlers: how one is looked at, what runs it, and what it may do while it runs.

mod cancellation;
mod capabilities;
mod context;
mod event;
mod fault;
mod host;
mod inspect;
mod native;
mod provider;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

pub use cancellation::{CancelReason, CancellationToken};
pub use capabilities::{
    calendar_cancel, calendar_create, calendar_event, calendar_events, calendar_list, calendar_move, kb_find,
    kb_get,
};
pub use context::{
    CallFacts, CapabilityCall, CapabilityError, CapabilityErrorCode, Context, LogLevel, SessionFacts,
    ToolFacts,
};
pub use event::{HostEvent, HostObserver};
pub use fault::{HandlerFault, SourceExcerpt, StackFrame};
pub use host::{Handler, HandlerHost, HandlerToLoad, HostError, Limits, Precheck, PrecheckAnswer};
pub use inspect::{FileType, Finding, FindingKind, HandlerSource, Inspection, Inspector, Position};
pub use native::{NATIVE_KIND, NativeHandler};
pub use provider::{CapabilityClient, CapabilityProvider, CapabilityRequest, CapabilityScope};

/// A future that is boxed because implementations of many types stand in one table.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The files of a handler, by path relative to the tools folder with forward slashes. Their content is any bytes: a host
/// whose handlers are text says so in its [`Inspector::file_types`].
pub type HandlerFiles = BTreeMap<String, Vec<u8>>;
