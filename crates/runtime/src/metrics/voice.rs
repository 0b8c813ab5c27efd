//! How long callers wait for the voice of each model: from the end of their speech to the first audio of the answer.

use std::collections::BTreeMap;
use std::time::Duration;

use metrics::Histogram;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Metrics;
use super::prometheus::Exporter;
use super::tool::ms;
use super::window::SampleWindow;

/// How many models are counted by name. There is one for each that was configured since the start.
const MAX_MODELS: usize = 16;
/// The name under which the others are counted.
const OTHER_MODELS: &str = "other";

/// The counters of all voice models, by their names.
#[derive(Debug, Default)]
pub(super) struct VoiceMetrics {
    models: BTreeMap<String, FirstAudio>,
}

#[derive(Debug)]
struct FirstAudio {
    answers: u64,
    after_ms: SampleWindow,
    after: Histogram,
}

/// Milliseconds from the end of the user's speech to the first audio of the answer, of the last thousand answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct FirstAudioLatency {
    pub p50: f64,
    pub p95: f64,
}

impl Metrics {
    /// Counts a spoken answer of a voice model, `provider/model`, whose first audio came so long after the user's speech
    /// had ended.
    pub fn record_first_audio(&self, model: &str, after: Duration) {
        let mut counts = self.lock();
        let first_audio = counts.voice_models.of(model, &self.exporter);
        first_audio.answers += 1;
        first_audio.after.record(after.as_secs_f64());
        first_audio.after_ms.add(after.as_secs_f64() * 1_000.0);
    }

    /// How long callers wait for a voice model; nothing if it has not answered yet.
    pub fn first_audio_latency(&self, model: &str) -> Option<FirstAudioLatency> {
        let counts = self.lock();
        let summary = counts.voice_models.models.get(model)?.after_ms.summary();
        Some(FirstAudioLatency { p50: ms(summary.p50), p95: ms(summary.p95) })
    }
}

impl VoiceMetrics {
    fn of(&mut self, model: &str, exporter: &Exporter) -> &mut FirstAudio {
        let is_known = self.models.contains_key(model) || self.models.len() < MAX_MODELS;
        let name = if is_known { model } else { OTHER_MODELS };
        self.models.entry(name.to_owned()).or_insert_with(|| {
            let (provider, model) = name.split_once('/').unwrap_or((name, ""));
            let after = exporter.first_audio(provider, model);
            FirstAudio { answers: 0, after_ms: SampleWindow::default(), after }
        })
    }

    pub(super) fn json(&self) -> Value {
        let all = self.models.iter().map(|(model, first_audio)| (model.clone(), first_audio.json()));
        Value::Object(all.collect::<Map<_, _>>())
    }
}

impl FirstAudio {
    fn json(&self) -> Value {
        let after = self.after_ms.summary();
        json!({
            "answers": self.answers,
            "firstAudio": {
                "avg": ms(after.average), "p50": ms(after.p50), "p95": ms(after.p95), "p99": ms(after.p99),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_for_first_audio_is_counted_by_model() {
        let metrics = Metrics::default();
        for after_ms in [500, 700, 900] {
            metrics.record_first_audio("gemini/live", Duration::from_millis(after_ms));
        }
        metrics.record_first_audio("pipeline/rehearsal/built-in", Duration::from_millis(80));
        let json = metrics.json();
        assert_eq!(
            json["voice"]["gemini/live"],
            json!({ "answers": 3, "firstAudio": { "avg": 700.0, "p50": 700.0, "p95": 900.0, "p99": 900.0 } })
        );
        assert_eq!(json["voice"]["pipeline/rehearsal/built-in"]["answers"], 1);
        let latency = metrics.first_audio_latency("gemini/live");
        assert_eq!(latency, Some(FirstAudioLatency { p50: 700.0, p95: 900.0 }));
        assert_eq!(metrics.first_audio_latency("openai/realtime"), None);
        let text = metrics.prometheus();
        for line in [
            "quarterdeck_voice_first_audio_seconds_count{provider=\"gemini\",model=\"live\"} 3",
            "quarterdeck_voice_first_audio_seconds_bucket{provider=\"gemini\",model=\"live\",le=\"0.75\"} 2",
            "quarterdeck_voice_first_audio_seconds_count{provider=\"pipeline\",model=\"rehearsal/built-in\"} 1",
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }

    #[test]
    fn more_models_than_can_be_configured_are_counted_together() {
        let metrics = Metrics::default();
        for number in 0..100 {
            metrics.record_first_audio(&format!("openai/m{number}"), Duration::from_millis(1));
        }
        let models = metrics.json()["voice"].take();
        assert_eq!(models.as_object().unwrap().len(), MAX_MODELS + 1);
        assert_eq!(models[OTHER_MODELS]["answers"], 100 - MAX_MODELS);
    }
}
