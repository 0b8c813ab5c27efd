//! The pipeline: the chat model by voice, with the speech engines of the configuration.

use std::sync::Arc;

use quarterdeck_agents::voice::SpeechEngines;
use quarterdeck_contracts::{ChatModel, LiveModel, SpeechToText, TextToSpeech};
use quarterdeck_local_speech::{Moonshine, Synthesiser};
use quarterdeck_pipeline::{Pipeline, PipelineSettings};
use quarterdeck_runtime::{Listen, SpokenConfirmation};
use quarterdeck_transports::{OpenAiSpeechToText, OpenAiTextToSpeech};
use tokio::task::spawn_blocking;

use crate::config::{HearingEngine, SpeakingEngine, Speech};
use crate::terminal::warn;

/// What gives a server ears and a voice.
pub(crate) const INSTALL_HINT: &str = "`quarterdeck speech install` gives it ears and a voice";

/// The pipeline, and which engines it hears and speaks with.
pub(crate) struct WiredPipeline {
    pub(crate) model: Arc<dyn LiveModel>,
    pub(crate) hears_with: String,
    pub(crate) speaks_with: String,
    /// The same engines, for questions that are asked by voice.
    pub(crate) engines: SpeechEngines,
}

/// Builds the engines once; all calls share them.
pub(crate) async fn pipeline(speech: &Speech, chat: Arc<dyn ChatModel>) -> anyhow::Result<WiredPipeline> {
    let hears = speech_to_text(&speech.hearing).await?;
    let speaks = text_to_speech(&speech.speaking)?;
    let (hears_with, speaks_with) = (hears.name().to_owned(), speaks.name().to_owned());
    let settings = PipelineSettings { language: speech.language.clone(), ..PipelineSettings::default() };
    let engines = SpeechEngines {
        speaks: Some(speaks.clone()),
        hears: Some(hears.clone()),
        language: speech.language.clone(),
    };
    let model = Arc::new(Pipeline::new(chat, hears, speaks, settings));
    Ok(WiredPipeline { model, hears_with, speaks_with, engines })
}

/// The engines with which questions are asked by voice in calls of a live model. One that is needed and missing is warned about:
/// the page asks alone.
pub(crate) async fn question_engines(speech: &Speech, spoken: SpokenConfirmation) -> SpeechEngines {
    if !spoken.is_allowed {
        return SpeechEngines::default();
    }
    let hears = match spoken.listen {
        Listen::Own => or_warning(speech_to_text(&speech.hearing).await),
        Listen::Provider => None,
    };
    let speaks = or_warning(text_to_speech(&speech.speaking));
    SpeechEngines { speaks, hears, language: speech.language.clone() }
}

fn or_warning<T>(engine: anyhow::Result<T>) -> Option<T> {
    engine
        .inspect_err(|error| {
            warn(&format!("{error:#}\n  until then questions are asked on the page alone; {INSTALL_HINT}"));
        })
        .ok()
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
