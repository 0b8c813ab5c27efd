//! The agents over HTTP.
//!
//! The server receives built agents and never names a provider. It identifies clients, enforces limits, and encodes
//! events in each protocol: the AI SDK's UI message stream, the OpenAI API, a WebSocket for voice, and plain JSON.

mod admission;
mod app;
mod caller;
mod claims;
mod credential;
mod deck;
mod error;
mod file_link;
mod forwarded;
mod guard;
mod host;
mod identity;
mod input;
mod listen;
mod network;
mod origin;
mod quota;
mod rate_limit;
mod refusals;
mod routes;
mod stream;
mod surface;
mod voice;
mod web;

pub use app::{App, ServerParts, Settings};
pub use deck::{AuditFeed, AuditLogHandle, Operations, RegistryChange, ToolChange};
pub use forwarded::{MAX_HOP_BYTES, MAX_HOPS, Source, TrustedProxies};
pub use identity::{ApiKey, Identity, TokenError, TokenKey, TokenRules};
pub use listen::serve;
pub use network::{Network, NetworkError};
pub use routes::openapi::document as openapi_document;
pub use surface::RequiredCredentials;
pub use voice::answer_call;
