//! Handlers: how one is looked at, what runs it, and what it may do while it runs.

mod capabilities;
mod context;
mod host;
mod inspect;
mod native;
mod quarantine;

use std::future::Future;
use std::pin::Pin;

pub use capabilities::{calendar_create, calendar_events, kb_find, kb_get};
pub use context::{
    CallFacts, CapabilityCall, CapabilityError, CapabilityErrorCode, Context, LogLevel, SessionFacts,
    ToolFacts,
};
pub use host::{Handler, HandlerHost, HandlerToLoad, HostError, Limits};
pub use inspect::{Finding, FindingKind, HandlerSource, Inspection, Inspector, Position};
pub use native::NativeHandler;
pub use quarantine::{HostEvent, HostHealth, HostObserver, Quarantine, StuckCall};

/// A future that is boxed because implementations of many types stand in one table.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
