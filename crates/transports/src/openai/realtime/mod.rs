//! OpenAI Realtime, over a WebSocket.

mod calls;
mod config;
mod connection;
mod exchange;
mod messages;
mod reading;
mod spoken;
mod transcript;

use std::sync::Arc;

use quarterdeck_contracts::{LiveConnecting, LiveModel, LiveSetup, Provider};

use self::connection::Connection;
use super::PROVIDER;
use crate::ConfigError;
use crate::live::{Dialer, Place, PlaceSettings, within};

pub use self::config::{OpenAiRealtimeConfig, ServerVad, TurnDetection};
pub use self::messages::session_update;
pub use self::reading::ServerEvents;

/// OpenAI Realtime as a model that is spoken with.
#[derive(Debug)]
pub struct OpenAiRealtime {
    config: OpenAiRealtimeConfig,
    place: Place,
}

impl OpenAiRealtime {
    /// Checks the settings. Nothing is sent before somebody connects.
    pub fn new(config: OpenAiRealtimeConfig) -> Result<Self, ConfigError> {
        // The name stands in the query, where these would mean something else.
        if config.model.contains(['?', '#', '%', '&', '+', '=']) {
            return Err(ConfigError::Model { provider: PROVIDER });
        }
        let place = Place::new(&PlaceSettings {
            provider: PROVIDER,
            model: &config.model,
            base_url: &config.base_url,
            path: &format!("realtime?model={}", config.model),
            key: &config.api_key,
            header: ("authorization", "Bearer "),
        })?;
        Ok(Self { config, place })
    }

    /// The same model, reached another way.
    pub fn with_dialer(self, dialer: Arc<dyn Dialer>) -> Self {
        Self { place: self.place.dialled_by(dialer), ..self }
    }
}

impl LiveModel for OpenAiRealtime {
    fn declarations(&self) -> Provider {
        Provider::Openai
    }

    fn name(&self) -> &str {
        &self.place.troubles.model
    }

    fn connect(&self, opening: LiveSetup) -> LiveConnecting {
        let update = session_update(&self.config, &opening);
        let history = messages::history(&opening);
        let asks = opening.asks && !history.is_empty();
        let connecting = Connection::open(self.place.clone(), update, history, asks);
        within(self.config.connect, self.place.troubles.clone(), connecting)
    }
}
