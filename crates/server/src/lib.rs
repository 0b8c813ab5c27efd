//! The agents over HTTP.
//!
//! The server receives built agents and never names a provider. It identifies clients, enforces limits, and encodes
//! events in each protocol: the AI SDK's UI message stream, the OpenAI API, a WebSocket for voice, and plain JSON.

mod admission;
mod app;
mod approval_page;
mod caller;
mod citations;
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
mod local_servers;
mod model_trouble;
mod network;
mod nodes;
mod origin;
mod page_dress;
mod page_settings;
mod quota;
mod rate_limit;
mod refusals;
mod refused_origins;
mod request_log;
mod routes;
mod session_token;
mod shared_limits;
mod stream;
mod surface;
mod upstream_trouble;
mod voice;
mod watch_feed;
mod web;

pub use app::{App, ServerParts, Settings};
pub use deck::{AuditFeed, AuditLogHandle, LogFilter, LogLevels, Operations, RegistryChange, ToolChange};
pub use forwarded::{MAX_HOP_BYTES, MAX_HOPS, Source, TrustedProxies};
pub use identity::{ApiKey, Identity, TokenError, TokenKey, TokenRules};
pub use listen::serve;
pub use local_servers::LocalServer;
pub use network::{Network, NetworkError};
pub use nodes::shared_secret;
pub use page_settings::{
    Colour, ColourError, Colours, Logo, LogoError, LogoFile, MAX_LOGO_BYTES, PageLink, PageLinkError,
    PageSettings, PageSettingsHandle, Shown,
};
pub use routes::openapi::document as openapi_document;
pub use session_token::{SessionToken, SessionTokenError};
pub use surface::RequiredCredentials;
pub use voice::answer_call;
pub use watch_feed::{WatchFeed, WatchProblem, WatchStatus};
