//! What the models behind the agent were asked, how they failed, and what they took.

use std::collections::BTreeMap;
use std::time::Duration;

use metrics::Histogram;
use quarterdeck_contracts::{ChatErrorKind, Usage};
use serde_json::{Map, Value, json};

use super::Metrics;
use super::prometheus::Exporter;
use super::tool::ms;
use super::window::SampleWindow;

/// How many models are counted by name. There are as many as are configured; what comes beyond is counted together, so
/// that labels stay few whatever a program does.
const MAX_MODELS: usize = 16;
/// The name under which the others are counted.
const OTHER_MODELS: &str = "other";

/// Something that happened with a request to a model. A request with its retries is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelEvent {
    /// A request was made.
    Asked,
    /// Its first output came after this time.
    FirstToken(Duration),
    /// It has a whole reply.
    Answered(Usage),
    Failed(ChatErrorKind),
    /// It was given up because no reader waits any more, or the answer is too long.
    Cancelled,
    /// The model is asked in the place of one that failed, for the rest of a turn.
    StoodIn,
}

/// The counters of all models, by their names.
#[derive(Debug, Default)]
pub(super) struct ModelMetrics {
    models: BTreeMap<String, ModelCounts>,
}

#[derive(Debug)]
struct ModelCounts {
    requests: u64,
    answered: u64,
    cancelled: u64,
    stood_in: u64,
    errors: BTreeMap<ChatErrorKind, u64>,
    tokens: Usage,
    first_token_ms: SampleWindow,
    first_tokens: Histogram,
}

impl Metrics {
    /// Counts something that happened with a request to a model, `provider/model`.
    pub fn record_model(&self, model: &str, event: ModelEvent) {
        self.lock().models.of(model, &self.exporter).record(event);
    }

    /// Takes over whether a model fails, for [`Metrics::prometheus`].
    pub fn set_model_failing(&self, model: &str, is_failing: bool) {
        let (provider, model) = split(model);
        let labels = [("provider", provider), ("model", model)];
        let help = "Whether the last request to a model failed.";
        self.exporter.gauge("quarterdeck_model_failing", help, &labels, f64::from(u8::from(is_failing)));
    }
}

impl ModelMetrics {
    fn of(&mut self, model: &str, exporter: &Exporter) -> &mut ModelCounts {
        let is_known = self.models.contains_key(model) || self.models.len() < MAX_MODELS;
        let name = if is_known { model } else { OTHER_MODELS };
        self.models.entry(name.to_owned()).or_insert_with(|| ModelCounts::new(name, exporter))
    }

    pub(super) fn json(&self) -> Value {
        let all = self.models.iter().map(|(model, counts)| (model.clone(), counts.json()));
        Value::Object(all.collect::<Map<_, _>>())
    }

    pub(super) fn export(&self, to: &Exporter) {
        for (model, counts) in &self.models {
            counts.export(split(model), to);
        }
    }
}

impl ModelCounts {
    fn new(model: &str, exporter: &Exporter) -> Self {
        let (provider, model) = split(model);
        Self {
            requests: 0,
            answered: 0,
            cancelled: 0,
            stood_in: 0,
            errors: BTreeMap::new(),
            tokens: Usage::default(),
            first_token_ms: SampleWindow::default(),
            first_tokens: exporter.first_tokens(provider, model),
        }
    }

    fn record(&mut self, event: ModelEvent) {
        match event {
            ModelEvent::Asked => self.requests += 1,
            ModelEvent::FirstToken(after) => {
                self.first_tokens.record(after.as_secs_f64());
                self.first_token_ms.add(after.as_secs_f64() * 1_000.0);
            }
            ModelEvent::Answered(usage) => {
                self.answered += 1;
                self.tokens += usage;
            }
            ModelEvent::Failed(kind) => *self.errors.entry(kind).or_default() += 1,
            ModelEvent::Cancelled => self.cancelled += 1,
            ModelEvent::StoodIn => self.stood_in += 1,
        }
    }

    fn json(&self) -> Value {
        let first = self.first_token_ms.summary();
        let errors = self.errors.iter().map(|(kind, count)| (kind.as_str().to_owned(), json!(count)));
        json!({
            "requests": self.requests,
            "answered": self.answered,
            "cancelled": self.cancelled,
            "stoodIn": self.stood_in,
            "errors": errors.collect::<Map<_, _>>(),
            "firstToken": {
                "avg": ms(first.average), "p50": ms(first.p50), "p95": ms(first.p95), "p99": ms(first.p99),
            },
            "tokens": {
                "input": self.tokens.input_tokens,
                "cached": self.tokens.cached_tokens,
                "uncached": self.tokens.uncached_tokens(),
                "cacheWrite": self.tokens.cache_write_tokens,
                "output": self.tokens.output_tokens,
            },
        })
    }

    fn export(&self, (provider, model): (&str, &str), to: &Exporter) {
        let labels = [("provider", provider), ("model", model)];
        let count = |name, help, value| to.counter(name, help, &labels, value);
        let help = "Requests to a model; one with its retries counts once.";
        count("quarterdeck_model_requests_total", help, self.requests);
        let help = "Requests that were given up because no reader waited any more.";
        count("quarterdeck_model_cancelled_total", help, self.cancelled);
        let help = "Turns in which a model was asked in the place of one that had failed.";
        count("quarterdeck_model_stood_in_total", help, self.stood_in);
        for (kind, value) in &self.errors {
            let labels = [labels[0], labels[1], ("kind", kind.as_str())];
            to.counter("quarterdeck_model_errors_total", "Requests that failed, by kind.", &labels, *value);
        }
        for (kind, value) in [
            ("input_cached", self.tokens.cached_tokens),
            ("input_uncached", self.tokens.uncached_tokens()),
            ("cache_write", self.tokens.cache_write_tokens),
            ("output", self.tokens.output_tokens),
        ] {
            let help = "Tokens as the provider counts them; cache_write is a part of input_uncached.";
            let labels = [labels[0], labels[1], ("kind", kind)];
            to.counter("quarterdeck_model_tokens_total", help, &labels, value);
        }
    }
}

/// `provider/model` in its parts.
fn split(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap_or(("", name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_requests_errors_and_tokens_are_counted_by_its_name() {
        let metrics = Metrics::default();
        let record = |event| metrics.record_model("openai/gpt", event);
        for _ in 0..3 {
            record(ModelEvent::Asked);
        }
        record(ModelEvent::FirstToken(Duration::from_millis(250)));
        record(ModelEvent::Answered(Usage {
            cached_tokens: 700,
            cache_write_tokens: 100,
            ..Usage::new(900, 20)
        }));
        record(ModelEvent::Failed(ChatErrorKind::RateLimited));
        record(ModelEvent::Cancelled);
        metrics.record_model("anthropic/claude", ModelEvent::StoodIn);
        metrics.set_model_failing("openai/gpt", true);
        let json = metrics.json();
        assert_eq!(
            json["models"]["openai/gpt"],
            json!({
                "requests": 3, "answered": 1, "cancelled": 1, "stoodIn": 0, "errors": { "rate_limited": 1 },
                "firstToken": { "avg": 250.0, "p50": 250.0, "p95": 250.0, "p99": 250.0 },
                "tokens": { "input": 900, "cached": 700, "uncached": 200, "cacheWrite": 100, "output": 20 },
            })
        );
        assert_eq!(json["models"]["anthropic/claude"]["stoodIn"], 1);
        let text = metrics.prometheus();
        for line in [
            "quarterdeck_model_requests_total{provider=\"openai\",model=\"gpt\"} 3",
            "quarterdeck_model_errors_total{provider=\"openai\",model=\"gpt\",kind=\"rate_limited\"} 1",
            "quarterdeck_model_tokens_total{provider=\"openai\",model=\"gpt\",kind=\"input_cached\"} 700",
            "quarterdeck_model_tokens_total{provider=\"openai\",model=\"gpt\",kind=\"input_uncached\"} 200",
            "quarterdeck_model_first_token_seconds_count{provider=\"openai\",model=\"gpt\"} 1",
            "quarterdeck_model_stood_in_total{provider=\"anthropic\",model=\"claude\"} 1",
            "quarterdeck_model_failing{provider=\"openai\",model=\"gpt\"} 1",
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }

    #[test]
    fn more_models_than_can_be_configured_are_counted_together() {
        let metrics = Metrics::default();
        for number in 0..100 {
            metrics.record_model(&format!("openai/m{number}"), ModelEvent::Asked);
        }
        let models = metrics.json()["models"].take();
        assert_eq!(models.as_object().unwrap().len(), MAX_MODELS + 1);
        assert_eq!(models[OTHER_MODELS]["requests"], 100 - MAX_MODELS);
    }
}
