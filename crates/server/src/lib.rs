//! The agents over HTTP.
//!
//! The server receives built agents and never names a provider. It knows who asks, holds limits, and puts what happens
//! into the words of each protocol: the AI SDK's UI message stream, the OpenAI API, a WebSocket that is spoken on, and plain JSON.

mod app;
mod caller;
mod deck;
mod error;
mod guard;
mod identity;
mod input;
mod listen;
mod origin;
mod places;
mod rates;
mod routes;
mod stream;
mod voice;
mod web;

pub use app::{App, Deck, Settings};
pub use deck::{Change, Feed, Operations, RegistryChange, Trail};
pub use identity::{ApiKey, Identity, TokenError, TokenKey, TokenRules};
pub use listen::serve;
pub use routes::openapi::document as openapi_document;
pub use voice::answer_call;
