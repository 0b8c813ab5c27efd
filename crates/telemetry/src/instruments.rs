//! The metrics of the conventions, from spans. Sampling does not touch them.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Histogram, Meter};
use quarterdeck_contracts::telemetry::names::{self, operation};
use quarterdeck_contracts::telemetry::{AttributeValue, SpanData};

/// The bounds that the conventions ask for, in seconds.
const SECONDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// The same for tokens.
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

pub(crate) struct Instruments {
    model_duration: Histogram<f64>,
    model_tokens: Histogram<f64>,
    first_chunk: Histogram<f64>,
    mcp_duration: Histogram<f64>,
    turn_duration: Histogram<f64>,
    tool_duration: Histogram<f64>,
    first_audio: Histogram<f64>,
}

impl Instruments {
    pub(crate) fn new(meter: &Meter) -> Self {
        let seconds = |name: &'static str, about: &'static str| {
            let builder = meter.f64_histogram(name).with_unit("s").with_description(about);
            builder.with_boundaries(SECONDS.to_vec()).build()
        };
        Self {
            model_duration: seconds(
                "gen_ai.client.operation.duration",
                "How long a request to a model took.",
            ),
            model_tokens: meter
                .f64_histogram("gen_ai.client.token.usage")
                .with_unit("{token}")
                .with_description("Tokens of a request to a model.")
                .with_boundaries(TOKENS.to_vec())
                .build(),
            first_chunk: seconds(
                "gen_ai.client.operation.time_to_first_chunk",
                "How long a model took to its first output.",
            ),
            mcp_duration: seconds("mcp.server.operation.duration", "How long a request over MCP took."),
            turn_duration: seconds("quarterdeck.turn.duration", "How long a turn took."),
            tool_duration: seconds(
                "quarterdeck.tool.duration",
                "How long a tool call took, its gates included.",
            ),
            first_audio: seconds(
                "quarterdeck.voice.first_audio.duration",
                "From the end of the user's speech to the first audio of the answer.",
            ),
        }
    }

    pub(crate) fn record(&self, span: &SpanData) {
        let seconds = span.ended.duration_since(span.began).unwrap_or_default().as_secs_f64();
        if span.find(names::MCP_METHOD_NAME).is_some() {
            let known = pick(span, &[names::MCP_METHOD_NAME, names::TOOL_NAME, names::ERROR_TYPE]);
            self.mcp_duration.record(seconds, &known);
        }
        match span.find_text(names::OPERATION_NAME) {
            Some(operation::CHAT | operation::GENERATE_CONTENT) => self.record_model(span, seconds),
            Some(operation::EXECUTE_TOOL) => {
                let known = [names::TOOL_NAME, names::CHANNEL, names::POLICY_DECISION, names::ERROR_TYPE];
                self.tool_duration.record(seconds, &pick(span, &known));
            }
            Some(operation::INVOKE_AGENT) => {
                let known = pick(span, &[names::AGENT_NAME, names::CHANNEL, names::ERROR_TYPE]);
                self.turn_duration.record(seconds, &known);
                if let Some(AttributeValue::Float(after)) = span.find(names::FIRST_AUDIO_SECONDS) {
                    self.first_audio
                        .record(*after, &pick(span, &[names::PROVIDER_NAME, names::REQUEST_MODEL]));
                }
            }
            _ => {}
        }
    }

    fn record_model(&self, span: &SpanData, seconds: f64) {
        let mut known = pick(span, &[names::OPERATION_NAME, names::PROVIDER_NAME, names::REQUEST_MODEL]);
        if let Some(AttributeValue::Float(after)) = span.find(names::RESPONSE_TIME_TO_FIRST_CHUNK) {
            self.first_chunk.record(*after, &known);
        }
        for (kind, name) in [("input", names::USAGE_INPUT_TOKENS), ("output", names::USAGE_OUTPUT_TOKENS)] {
            if let Some(AttributeValue::Integer(tokens)) = span.find(name) {
                let mut known = known.clone();
                known.push(KeyValue::new(names::TOKEN_TYPE, kind));
                self.model_tokens.record(*tokens as f64, &known);
            }
        }
        known.extend(pick(span, &[names::ERROR_TYPE]));
        self.model_duration.record(seconds, &known);
    }
}

/// The attributes of a span that there are few values of.
fn pick(span: &SpanData, names: &[&'static str]) -> Vec<KeyValue> {
    let found = names.iter().filter_map(|name| Some((*name, span.find_text(name)?)));
    found.map(|(name, text)| KeyValue::new(name, text.to_owned())).collect()
}
