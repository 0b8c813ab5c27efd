//! The chat model, the live model and the image model of the configuration.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use quarterdeck_agents::voice::SpeechEngines;
use quarterdeck_contracts::{ChatModel, ImageProvider, LiveConnecting, LiveModel, LiveSetup, Provider};
use quarterdeck_rehearsal::{Rehearsal, Script};
use quarterdeck_simulator::live::{LiveSimulator, Substitute};
use quarterdeck_transports::live::{DialFuture, Dialer};
use quarterdeck_transports::{
    Anthropic, Gemini, GeminiImages, GeminiLive, GeminiLiveConfig, OpenAi, OpenAiImages, OpenAiRealtime,
};
use serde_json::Value;
use url::Url;

use crate::commands::simulate::Espeak;
use crate::config::{ChatProvider, Config, ImageModel, LiveProvider};
use crate::terminal::warn;
use crate::wire::speech::{self, WiredPipeline};

/// Buffer between the live client and the built-in simulator.
const PIPE_BYTES: usize = 64 << 10;

/// The configured model. One that cannot be built is replaced by the built-in one, with a warning: a server that answers
/// something is easier to put right than one that does not start. A script that was asked for is not replaced.
pub(crate) fn chat_model_or_rehearsal(provider: &ChatProvider) -> anyhow::Result<Arc<dyn ChatModel>> {
    match chat_model(provider) {
        Err(error) if !matches!(provider, ChatProvider::Rehearsal { .. }) => {
            warn_of_rehearsal(&format!("{error:#}"));
            Ok(Arc::new(Rehearsal::new()))
        }
        built => built,
    }
}

/// Says that the built-in model answers, and why the configured one does not.
pub(crate) fn warn_of_rehearsal(reason: &str) {
    warn(&format!(
        "{reason}\n  until then the built-in rehearsal answers in the place of the configured chat model"
    ));
}

pub(crate) fn chat_model(provider: &ChatProvider) -> anyhow::Result<Arc<dyn ChatModel>> {
    Ok(match provider {
        ChatProvider::Gemini(config) => Arc::new(Gemini::new(config.clone())?),
        ChatProvider::OpenAi(config) => Arc::new(OpenAi::new(config.clone())?),
        ChatProvider::Anthropic(config) => Arc::new(Anthropic::new(config.clone())?),
        ChatProvider::Rehearsal { script: None, pace } => Arc::new(Rehearsal::new().with_pace(*pace)),
        ChatProvider::Rehearsal { script: Some(path), pace } => {
            Arc::new(Rehearsal::scripted(load_script(path)?).with_pace(*pace))
        }
    })
}

fn load_script(path: &Path) -> anyhow::Result<Script> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the script {}", path.display()))?;
    Script::parse(&text).with_context(|| format!("the script {} cannot be used", path.display()))
}

pub(crate) fn image_provider(model: &ImageModel) -> anyhow::Result<Arc<dyn ImageProvider>> {
    Ok(match model {
        ImageModel::OpenAi(config) => Arc::new(OpenAiImages::new(config.clone())?),
        ImageModel::Gemini(config) => Arc::new(GeminiImages::new(config)?),
    })
}

/// The voice model, and the engines that it hears and speaks with if it does neither by itself.
pub(crate) struct VoiceModel {
    pub(crate) model: Arc<dyn LiveModel>,
    pub(crate) engines: Option<String>,
    /// What questions are asked with by voice.
    pub(crate) question_engines: SpeechEngines,
}

impl VoiceModel {
    fn new(model: impl LiveModel + 'static) -> Self {
        Self { model: Arc::new(model), engines: None, question_engines: SpeechEngines::default() }
    }

    /// Asks by voice with the engines of the configuration, if that is switched on.
    async fn with_questions(mut self, config: &Config) -> Self {
        self.question_engines =
            speech::question_engines(&config.speech, config.policy.spoken_confirmation).await;
        self
    }
}

/// The configured voice model. A pipeline whose engines are missing is replaced by the simulator, with a warning.
pub(crate) async fn live_model(config: &Config, chat: &Arc<dyn ChatModel>) -> anyhow::Result<VoiceModel> {
    Ok(match &config.voice.provider {
        LiveProvider::Gemini(gemini) => {
            VoiceModel::new(GeminiLive::new(*gemini.clone())?).with_questions(config).await
        }
        LiveProvider::OpenAi(openai) => {
            VoiceModel::new(OpenAiRealtime::new(*openai.clone())?).with_questions(config).await
        }
        LiveProvider::Pipeline => match speech::pipeline(&config.speech, chat.clone()).await {
            Ok(WiredPipeline { model, hears_with, speaks_with, engines }) => VoiceModel {
                model,
                question_engines: engines,
                engines: Some(format!("it hears with {hears_with} and speaks with {speaks_with}")),
            },
            Err(error) => {
                warn_of_simulator(&format!("{error:#}"));
                VoiceModel::new(built_in_simulator()?)
            }
        },
        LiveProvider::Simulator => VoiceModel::new(built_in_simulator()?),
    })
}

/// Says that the simulator takes calls, and why the configured engines do not.
pub(crate) fn warn_of_simulator(reason: &str) {
    warn(&format!(
        "{reason}\n  until then calls use the built-in simulator, which does not hear; {}",
        speech::INSTALL_HINT
    ));
}

/// The simulator, reached through the provider's protocol but without a network. The rehearsal model answers.
struct BuiltInSimulator {
    client: GeminiLive,
    /// Whether a synthesiser is installed. Otherwise browsers speak.
    speaks: bool,
}

fn built_in_simulator() -> anyhow::Result<BuiltInSimulator> {
    let rehearsal = LiveSimulator::from_chat_model(Arc::new(Rehearsal::new()));
    // A user would hear tones as a hum.
    let rehearsal = rehearsal.with_substitute(Substitute::Silence);
    let espeak = Espeak::installed();
    let speaks = espeak.is_some();
    let simulator = match espeak {
        Some(espeak) => rehearsal.with_voice(Arc::new(espeak)),
        None => rehearsal,
    };
    let config = GeminiLiveConfig {
        base_url: "wss://simulator".into(),
        model: "simulator".into(),
        ..GeminiLiveConfig::new("simulator")
    };
    let client = GeminiLive::new(config)?.with_dialer(Arc::new(SimulatorDialer(simulator)));
    Ok(BuiltInSimulator { client, speaks })
}

impl LiveModel for BuiltInSimulator {
    fn declarations(&self) -> Provider {
        self.client.declarations()
    }

    fn fuller_declarations(&self) -> Option<Provider> {
        self.client.fuller_declarations()
    }

    fn declare(&self, name: &str, description: &str, parameters: &Value) -> Value {
        self.client.declare(name, description, parameters)
    }

    fn name(&self) -> &str {
        "simulator"
    }

    fn is_rehearsal(&self) -> bool {
        true
    }

    fn speaks(&self) -> bool {
        self.speaks
    }

    fn hears(&self) -> bool {
        false
    }

    fn connect(&self, setup: LiveSetup) -> LiveConnecting {
        self.client.connect(setup)
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
