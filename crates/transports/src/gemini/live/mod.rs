//! Gemini Live: `BidiGenerateContent` over a WebSocket.

mod config;
mod connection;
mod frames;
mod profile;
mod scan;
mod server_messages;
mod setup;

use std::sync::Arc;

use quarterdeck_contracts::{LiveConnecting, LiveModel, LiveSetup, Provider};
use serde_json::{Value, json};

use self::connection::Connection;
use super::{PROVIDER, declare};
use crate::ConfigError;
use crate::live::{Dialer, LiveEndpoint, LiveEndpointSettings, connect_within};

pub use self::config::{Compression, Detection, GeminiLiveConfig, Thinking};
pub use self::profile::{Content, Declarations, Profile, TextDuringCalls};
pub use self::scan::scan;
pub use self::server_messages::ServerMessages;
pub use self::setup::setup;

/// Gemini Live as a live model.
#[derive(Debug)]
pub struct GeminiLive {
    config: GeminiLiveConfig,
    profile: Profile,
    endpoint: LiveEndpoint,
}

impl GeminiLive {
    /// Checks the settings. Nothing is sent before the first request.
    pub fn new(config: GeminiLiveConfig) -> Result<Self, ConfigError> {
        let version = config.version.trim_matches('/');
        let endpoint = LiveEndpoint::new(&LiveEndpointSettings {
            provider: PROVIDER,
            model: config.plain_model(),
            base_url: &config.base_url,
            path: &format!("ws/google.ai.generativelanguage.{version}.GenerativeService.BidiGenerateContent"),
            key: &config.api_key,
            header: ("x-goog-api-key", ""),
        })?;
        let profile = config.profile.unwrap_or_else(|| Profile::of(&config.model));
        check_options(&config, &profile)?;
        Ok(Self { config, profile, endpoint })
    }

    /// The same model over other streams.
    pub fn with_dialer(self, dialer: Arc<dyn Dialer>) -> Self {
        Self { endpoint: self.endpoint.with_dialer(dialer), ..self }
    }
}

impl LiveModel for GeminiLive {
    fn declarations(&self) -> Provider {
        Provider::GeminiNative
    }

    fn fuller_declarations(&self) -> Option<Provider> {
        match self.profile.declarations {
            Declarations::Native => None,
            Declarations::NativeOrJsonSchema => Some(Provider::GeminiJsonSchema),
        }
    }

    fn declare(&self, name: &str, description: &str, parameters: &Value) -> Value {
        match self.profile.declarations {
            Declarations::Native => declare_native(name, description, parameters),
            Declarations::NativeOrJsonSchema => declare(name, description, parameters),
        }
    }

    fn name(&self) -> &str {
        &self.endpoint.errors.model
    }

    fn connect(&self, opening: LiveSetup) -> LiveConnecting {
        let setup = setup(&self.config, &self.profile, &opening);
        let history = frames::history(&self.profile, &opening);
        let is_manual = self.config.detection.disabled == Some(true);
        let connecting = Connection::open(self.endpoint.clone(), setup, history, self.profile, is_manual);
        connect_within(self.config.connect, self.endpoint.errors.clone(), connecting)
    }
}

/// A declaration in Gemini's dialect. The functions that are not in the artifact have parameters of few words: types,
/// which it writes in capitals, and descriptions.
fn declare_native(name: &str, description: &str, parameters: &Value) -> Value {
    fn native(schema: &Value) -> Value {
        let Some(keywords) = schema.as_object() else { return schema.clone() };
        let kept = keywords.iter().filter(|(keyword, _)| *keyword != "additionalProperties");
        let keyword = |(keyword, value): (&String, &Value)| {
            let value = match (keyword.as_str(), value) {
                ("type", Value::String(kind)) => kind.to_uppercase().into(),
                ("properties", Value::Object(named)) => {
                    Value::Object(named.iter().map(|(name, schema)| (name.clone(), native(schema))).collect())
                }
                ("items", schema) => native(schema),
                _ => value.clone(),
            };
            (keyword.clone(), value)
        };
        Value::Object(kept.map(keyword).collect())
    }
    json!({ "name": name, "description": description, "parameters": native(parameters) })
}

/// Reports options for which the provider would close the connection.
fn check_options(config: &GeminiLiveConfig, profile: &Profile) -> Result<(), ConfigError> {
    let setup = setup(config, profile, &LiveSetup::default());
    let refused = |(at, only): &&(&'static str, Option<bool>)| {
        let value = setup["setup"].pointer(at);
        value.is_some_and(|value| only.is_none_or(|only| *value == Value::Bool(only)))
    };
    match profile.rejected_options.iter().find(refused) {
        None => Ok(()),
        Some((at, _)) => Err(ConfigError::Option {
            provider: PROVIDER,
            model: config.model.clone(),
            option: at.rsplit('/').next().unwrap_or(at),
        }),
    }
}
