//! The model that is spoken with, as the configuration names it.

use std::sync::Arc;

use quarterdeck_contracts::{LiveConnecting, LiveModel, LiveOpening, Provider};
use quarterdeck_simulator::Rehearsal;
use quarterdeck_simulator::live::LiveSimulator;
use quarterdeck_transports::live::{Dial, Dialling};
use quarterdeck_transports::{GeminiLive, GeminiLiveConfig};
use url::Url;

use crate::config::{LiveProvider, Voice};
use crate::models::key;

/// How much of a conversation with the built-in simulator is on its way at a time.
const PIPE: usize = 64 << 10;

/// Builds the client of the provider.
pub(crate) fn live_model(voice: &Voice) -> anyhow::Result<Arc<dyn LiveModel>> {
    Ok(match &voice.provider {
        LiveProvider::Gemini(endpoint) => Arc::new(GeminiLive::new(GeminiLiveConfig {
            base_url: endpoint.base_url.clone(),
            model: endpoint.model.clone(),
            voice: voice.voice.clone(),
            ..GeminiLiveConfig::new(key(endpoint))
        })?),
        LiveProvider::OpenAi(_) => anyhow::bail!("`voice.provider = \"openai\"` is not there yet"),
        LiveProvider::Simulator => Arc::new(built_in()?),
    })
}

/// The simulator, spoken to in the provider's own protocol but without a network. The rehearsal answers.
struct Simulated(GeminiLive);

fn built_in() -> anyhow::Result<Simulated> {
    let simulator = LiveSimulator::answering(Arc::new(Rehearsal::new()));
    let config = GeminiLiveConfig {
        base_url: "wss://simulator".into(),
        model: "simulator".into(),
        // The simulator takes any key, and the protocol wants one.
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

    fn connect(&self, opening: LiveOpening) -> LiveConnecting {
        self.0.connect(opening)
    }
}

struct BuiltIn(LiveSimulator);

impl Dial for BuiltIn {
    fn dial(&self, _: &Url) -> Dialling {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let simulator = self.0.clone();
        tokio::spawn(async move { simulator.serve(theirs).await });
        Box::pin(std::future::ready(Ok(Box::new(ours) as _)))
    }
}
