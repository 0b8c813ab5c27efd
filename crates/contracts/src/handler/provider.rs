//! What answers the requests of a capability.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;

use super::{BoxFuture, CapabilityError, CapabilityErrorCode};
use crate::{CapabilitySpec, Overlay};

/// Does the work of one capability. It is registered under the name of its spec, and nothing else knows it.
///
/// Whether the tool has declared the capability is checked before. A provider that changes something asks
/// [`CapabilityScope::require_writes`] first. What it writes to the overlay is committed with the record of the call or
/// not at all; what it changes elsewhere it reports with [`CapabilityScope::mark_outside_effect`], so that a call that
/// fails afterwards is not run again.
pub trait CapabilityProvider: Send + Sync {
    /// Its name, and the methods that handlers can call.
    fn spec(&self) -> CapabilitySpec;

    /// Answers one request. It never panics, whatever the method and the arguments are.
    fn call(&self, request: CapabilityRequest) -> BoxFuture<Result<Value, CapabilityError>>;
}

/// One request of a handler.
pub struct CapabilityRequest {
    /// A method of the capability, unless the handler made it up.
    pub method: String,
    /// Its arguments, unchecked.
    pub args: Vec<Value>,
    /// The call that makes the request.
    pub scope: Arc<dyn CapabilityScope>,
}

impl CapabilityRequest {
    /// The argument at an index, `null` if there is none.
    pub fn arg(&self, index: usize) -> Value {
        self.args.get(index).cloned().unwrap_or_default()
    }
}

/// A call as the providers of capabilities see it.
pub trait CapabilityScope: Send + Sync {
    /// The client whose call it is.
    fn client(&self) -> CapabilityClient;

    /// The conversation that it is part of.
    fn session_id(&self) -> Arc<str>;

    /// The tool that is called.
    fn tool_id(&self) -> Arc<str>;

    /// What tells this call from every other: its session and its idempotency key. Every attempt of the call has the same.
    fn call_key(&self) -> Arc<str>;

    /// The time, as the call sees it.
    fn now(&self) -> SystemTime;

    /// The call's view of the store.
    fn overlay(&self) -> Arc<Overlay>;

    /// Whether the tool declares that it writes.
    fn may_write(&self) -> bool;

    /// Says that something was changed that dropping the overlay does not undo.
    fn mark_outside_effect(&self);

    /// Refuses `method` of a tool that does not declare that it writes.
    fn require_writes(&self, method: &str) -> Result<(), CapabilityError> {
        if self.may_write() {
            return Ok(());
        }
        let message = format!("{method} needs \"sideEffects\": \"writes\" in schema.json");
        Err(CapabilityError::new(CapabilityErrorCode::InvalidArgument, message))
    }
}

/// Whose call it is.
#[derive(Debug, Clone, PartialEq)]
pub struct CapabilityClient {
    /// Stable across sessions.
    pub id: Arc<str>,
    /// Whether the client has signed in.
    pub is_authenticated: bool,
    /// The claims of its verified token.
    pub claims: BTreeMap<String, Value>,
}
