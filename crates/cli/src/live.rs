//! The live model of the configuration.

use std::sync::Arc;

use quarterdeck_contracts::{LiveConnecting, LiveModel, LiveSetup, Provider};
use quarterdeck_rehearsal::Rehearsal;
use quarterdeck_simulator::live::LiveSimulator;
use quarterdeck_transports::live::{DialFuture, Dialer};
use quarterdeck_transports::{GeminiLive, GeminiLiveConfig, OpenAiRealtime, OpenAiRealtimeConfig, Secret};
use url::Url;

use crate::arguments::simulate::Speech;
use crate::commands::simulate::with_speech;
use crate::config::{Endpoint, LiveProvider, Voice};
use crate::models::key;

/// Buffer between the live client and the built-in simulator.
const PIPE_BYTES: usize = 64 << 10;

pub(crate) async fn live_model(voice: &Voice) -> anyhow::Result<Arc<dyn LiveModel>> {
    Ok(match &voice.provider {
        LiveProvider::Gemini(endpoint) => Arc::new(GeminiLive::new(GeminiLiveConfig {
            base_url: endpoint.base_url.clone(),
            model: endpoint.model.clone(),
            voice: voice.voice.clone(),
            ..GeminiLiveConfig::new(live_key(endpoint))
        })?),
        LiveProvider::OpenAi(endpoint) => Arc::new(OpenAiRealtime::new(OpenAiRealtimeConfig {
            base_url: endpoint.base_url.clone(),
            model: endpoint.model.clone(),
            voice: voice.voice.clone(),
            ..OpenAiRealtimeConfig::new(live_key(endpoint))
        })?),
        LiveProvider::Simulator => Arc::new(built_in_simulator().await?),
    })
}

/// A simulator takes any key, but the protocol needs one.
fn live_key(endpoint: &Endpoint) -> Secret {
    if endpoint.api_key.is_some() { key(endpoint) } else { Secret::new("simulator") }
}

/// The simulator, reached through the provider's protocol but without a network. The rehearsal model answers.
struct BuiltInSimulator(GeminiLive);

async fn built_in_simulator() -> anyhow::Result<BuiltInSimulator> {
    let rehearsal = LiveSimulator::from_chat_model(Arc::new(Rehearsal::new()));
    let (simulator, _) = with_speech(rehearsal, Speech::Auto).await?;
    let config = GeminiLiveConfig {
        base_url: "wss://simulator".into(),
        model: "simulator".into(),
        ..GeminiLiveConfig::new("simulator")
    };
    Ok(BuiltInSimulator(GeminiLive::new(config)?.with_dialer(Arc::new(SimulatorDialer(simulator)))))
}

impl LiveModel for BuiltInSimulator {
    fn declarations(&self) -> Provider {
        self.0.declarations()
    }

    fn name(&self) -> &str {
        "simulator"
    }

    fn connect(&self, setup: LiveSetup) -> LiveConnecting {
        self.0.connect(setup)
    }
}

struct SimulatorDialer(LiveSimulator);

impl Dialer for SimulatorDialer {
    fn dial(&self, _: &Url) -> DialFuture {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let simulator = self.0.clone();
        tokio::spawn(async move { simulator.serve(theirs).await });
        Box::pin(std::future::ready(Ok(Box::new(ours) as _)))
    }
}
