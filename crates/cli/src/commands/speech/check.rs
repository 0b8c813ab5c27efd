//! `quarterdeck speech check`.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use quarterdeck_contracts::{Sentence, SpeechError, SpeechToText, TextToSpeech, Utterance};
use quarterdeck_local_speech::{
    Moonshine, MoonshineSettings, Synthesiser, SynthesiserSettings, to_heard_rate,
};

use super::find;
use crate::terminal::{info, plain, print};
use crate::{ExitStatus, wire};

const SENTENCE: &str = "The ship left the harbour on Tuesday morning.";

pub(super) fn check() -> anyhow::Result<ExitStatus> {
    let installed = find()?;
    let ears = match &installed.hears {
        Some(folder) => Some(Moonshine::load(folder, MoonshineSettings::default())?),
        None => {
            info("nothing to hear with is installed; `quarterdeck speech install` installs it");
            None
        }
    };
    if installed.speaks.is_empty() {
        info("no voice is installed; `quarterdeck speech install` installs one");
    }
    let mut status = match (&ears, installed.speaks.is_empty()) {
        (Some(_), false) => ExitStatus::Success,
        _ => ExitStatus::Problems,
    };
    wire::block_on(async {
        for voice in installed.speaks {
            let voice = Synthesiser::new(voice, SynthesiserSettings::default());
            match try_voice(&voice, ears.as_ref()).await {
                Ok(report) => print(&report)?,
                Err(error) => {
                    info(&plain(&error.to_string()));
                    status = ExitStatus::Problems;
                }
            }
        }
        anyhow::Ok(status)
    })?
}

/// Speaks and hears, and says how it went.
async fn try_voice(voice: &Synthesiser, ears: Option<&Moonshine>) -> Result<String, SpeechError> {
    voice.warm_up().await?;
    let begin = Instant::now();
    let mut first = Duration::ZERO;
    let mut samples = Vec::new();
    let mut speech = voice.speak(Sentence { text: SENTENCE.to_owned(), language: Some("en".to_owned()) });
    while let Some(piece) = speech.next().await {
        if samples.is_empty() {
            first = begin.elapsed();
        }
        samples.extend(piece?);
    }
    let mut report =
        format!("{} says: {SENTENCE} (first audio after {} ms)\n", voice.name(), first.as_millis());
    if let Some(ears) = ears {
        let begin = Instant::now();
        let samples = to_heard_rate(&samples).into();
        let heard = ears.transcribe(Utterance { samples, language: Some("en".to_owned()) }).await?;
        report.push_str(&format!(
            "{} hears: {} (after {} ms, {:.0} % sure)\n",
            ears.name(),
            plain(&heard.text),
            begin.elapsed().as_millis(),
            100. * heard.confidence.unwrap_or_default()
        ));
    }
    Ok(report)
}
