//! The pipeline: the chat model by voice, with the speech engines of the configuration.

use std::sync::Arc;

use quarterdeck_contracts::{ChatModel, LiveModel, SpeechToText, TextToSpeech};
use quarterdeck_local_speech::{Moonshine, Synthesiser};
use quarterdeck_pipeline::{Pipeline, PipelineSettings};
use quarterdeck_transports::{OpenAiSpeechToText, OpenAiTextToSpeech};
use tokio::task::spawn_blocking;

use crate::config::{HearingEngine, SpeakingEngine, Speech};

/// What gives a server ears and a voice.
pub(crate) const INSTALL_HINT: &str = "`quarterdeck speech install` gives it ears and a voice";

/// The pipeline, and which engines it hears and speaks with.
pub(crate) struct WiredPipeline {
    pub(crate) model: Arc<dyn LiveModel>,
    pub(crate) hears_with: String,
    pub(crate) speaks_with: String,
}

/// Builds the engines once; all calls share them.
pub(crate) async fn pipeline(speech: &Speech, chat: Arc<dyn ChatModel>) -> anyhow::Result<WiredPipeline> {
    let hears = speech_to_text(&speech.hearing).await?;
    let speaks = text_to_speech(&speech.speaking)?;
    let (hears_with, speaks_with) = (hears.name().to_owned(), speaks.name().to_owned());
    let settings = PipelineSettings { language: speech.language.clone(), ..PipelineSettings::default() };
    let model = Arc::new(Pipeline::new(chat, hears, speaks, settings));
    Ok(WiredPipeline { model, hears_with, speaks_with })
}

async fn speech_to_text(engine: &HearingEngine) -> anyhow::Result<Arc<dyn SpeechToText>> {
    Ok(match engine {
        HearingEngine::OpenAi(config) => Arc::new(OpenAiSpeechToText::new(*config.clone())?),
        HearingEngine::Local(folder, settings) => {
            let (folder, settings) = (folder.clone(), *settings);
            Arc::new(spawn_blocking(move || Moonshine::load(&folder, settings)).await??)
        }
        HearingEngine::Missing(reason) => anyhow::bail!("{reason}"),
    })
}

fn text_to_speech(engine: &SpeakingEngine) -> anyhow::Result<Arc<dyn TextToSpeech>> {
    Ok(match engine {
        SpeakingEngine::OpenAi(config) => Arc::new(OpenAiTextToSpeech::new(*config.clone())?),
        SpeakingEngine::Local(voice, settings) => {
            let synthesiser = Arc::new(Synthesiser::new(voice.clone(), *settings));
            tokio::spawn(warm_up(synthesiser.clone()));
            synthesiser
        }
        SpeakingEngine::Missing(reason) => anyhow::bail!("{reason}"),
    })
}

/// So that the first sentence need not wait for its program.
async fn warm_up(synthesiser: Arc<Synthesiser>) {
    if let Err(error) = synthesiser.warm_up().await {
        tracing::warn!(error = %error, "speech engine does not start; `quarterdeck speech check` tries it");
    }
}
