//! OpenAI Realtime, over a WebSocket.

mod calls;
mod config;
mod connection;
mod messages;
mod playback;
mod server_events;
mod transcript;
mod turn_taking;

use std::sync::Arc;

use quarterdeck_contracts::{LiveConnecting, LiveModel, LiveSetup, Provider};
use serde_json::Value;

use self::connection::Connection;
use super::{PROVIDER, declare};
use crate::ConfigError;
use crate::live::{Dialer, LiveEndpoint, LiveEndpointSettings, connect_within};

pub use self::config::{OpenAiRealtimeConfig, ServerVad, TurnDetection};
pub use self::messages::session_update;
pub use self::server_events::ServerEvents;

/// OpenAI Realtime as a live model.
#[derive(Debug)]
pub struct OpenAiRealtime {
    config: OpenAiRealtimeConfig,
    endpoint: LiveEndpoint,
}

impl OpenAiRealtime {
    /// Checks the settings. Nothing is sent before the first request.
    pub fn new(config: OpenAiRealtimeConfig) -> Result<Self, ConfigError> {
        // The name stands in the query, where these would mean something else.
        if config.model.contains(['?', '#', '%', '&', '+', '=']) {
            return Err(ConfigError::Model { provider: PROVIDER });
        }
        let endpoint = LiveEndpoint::new(&LiveEndpointSettings {
            provider: PROVIDER,
            model: &config.model,
            base_url: &config.base_url,
            path: &format!("realtime?model={}", config.model),
            key: &config.api_key,
            header: ("authorization", "Bearer "),
        })?;
        Ok(Self { config, endpoint })
    }

    /// The same model over other streams.
    pub fn with_dialer(self, dialer: Arc<dyn Dialer>) -> Self {
        Self { endpoint: self.endpoint.with_dialer(dialer), ..self }
    }
}

impl LiveModel for OpenAiRealtime {
    fn declarations(&self) -> Provider {
        Provider::Openai
    }

    fn declare(&self, name: &str, description: &str, parameters: &Value) -> Value {
        declare(name, description, parameters)
    }

    fn name(&self) -> &str {
        &self.endpoint.errors.model
    }

    fn connect(&self, opening: LiveSetup) -> LiveConnecting {
        let update = session_update(&self.config, &opening);
        let history = messages::history(&opening);
        let asks = opening.asks && !history.is_empty();
        let connecting = Connection::open(self.endpoint.clone(), update, history, asks);
        connect_within(self.config.connect, self.endpoint.errors.clone(), connecting)
    }
}
