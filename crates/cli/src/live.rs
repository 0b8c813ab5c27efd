//! The model that is spoken with, as the configuration names it.

use std::sync::Arc;

use quarterdeck_contracts::{LiveConnecting, LiveModel, LiveSetup, Provider};
use quarterdeck_rehearsal::Rehearsal;
use quarterdeck_simulator::live::LiveSimulator;
use quarterdeck_transports::live::{DialFuture, Dialer};
use quarterdeck_transports::{GeminiLive, GeminiLiveConfig, OpenAiRealtime, OpenAiRealtimeConfig, Secret};
use url::Url;

use crate::arguments::simulating::Speech;
use crate::commands::simulate::with_speech;
use crate::config::{Endpoint, LiveProvider, Voice};
use crate::models::key;

/// How much of a conversation with the built-in simulator is on its way at a time.
const PIPE: usize = 64 << 10;

/// Builds the client of the provider.
pub(crate) async fn live_model(voice: &Voice) -> anyhow::Result<Arc<dyn LiveModel>> {
    Ok(match &voice.provider {
        LiveProvider::Gemini(endpoint) => Arc::new(GeminiLive::new(GeminiLiveConfig {
            base_url: endpoint.base_url.clone(),
            model: endpoint.model.clone(),
            voice: voice.voice.clone(),
            ..GeminiLiveConfig::new(spoken_key(endpoint))
        })?),
        LiveProvider::OpenAi(endpoint) => Arc::new(OpenAiRealtime::new(OpenAiRealtimeConfig {
            base_url: endpoint.base_url.clone(),
            model: endpoint.model.clone(),
            voice: voice.voice.clone(),
            ..OpenAiRealtimeConfig::new(spoken_key(endpoint))
        })?),
        LiveProvider::Simulator => Arc::new(built_in().await?),
    })
}

/// A simulator on another address takes any key, and the protocol wants one.
fn spoken_key(endpoint: &Endpoint) -> Secret {
    if endpoint.api_key.is_some() { key(endpoint) } else { Secret::new("simulator") }
}

/// The simulator, spoken to in the provider's own protocol but without a network. The rehearsal answers.
struct Simulated(GeminiLive);

async fn built_in() -> anyhow::Result<Simulated> {
    let rehearsal = LiveSimulator::from_chat_model(Arc::new(Rehearsal::new()));
    let (simulator, _) = with_speech(rehearsal, Speech::Auto).await?;
    let config = GeminiLiveConfig {
        base_url: "wss://simulator".into(),
        model: "simulator".into(),
        ..GeminiLiveConfig::new("simulator")
    };
    Ok(Simulated(GeminiLive::new(config)?.with_dialer(Arc::new(BuiltIn(simulator)))))
}

impl LiveModel for Simulated {
    fn declarations(&self) -> Provider {
        self.0.declarations()
    }

    fn name(&self) -> &str {
        "simulator"
    }

    fn connect(&self, opening: LiveSetup) -> LiveConnecting {
        self.0.connect(opening)
    }
}

struct BuiltIn(LiveSimulator);

impl Dialer for BuiltIn {
    fn dial(&self, _: &Url) -> DialFuture {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let simulator = self.0.clone();
        tokio::spawn(async move { simulator.serve(theirs).await });
        Box::pin(std::future::ready(Ok(Box::new(ours) as _)))
    }
}
