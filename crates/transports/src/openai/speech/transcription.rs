//! Speech to text: one utterance as a WAV file, and its words as JSON or as events.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_audio::wav_file;
use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{HEARD_RATE, SpeechError, SpeechErrorKind, SpeechToText, Transcript, Utterance};
use reqwest::Request;
use serde_json::Value;

use super::super::{OpenAiConfig, PROVIDER, bearer_headers};
use super::DEFAULT_MAX_REQUESTS;
use super::exchange::{ResponseBody, SpeechClient};
use super::multipart::Form;
use super::transcript_events::TranscriptReader;
use crate::endpoint::Settings;
use crate::http::deadline_after;
use crate::{ConfigError, Fault, Limits, Secret};

/// The longest utterance, in samples: ten minutes, of which OpenAI takes thirteen.
const MAX_SAMPLES: usize = 600 * 16_000;

/// Settings of a client of transcriptions.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenAiSpeechToTextConfig {
    /// Usually ends in `/v1`.
    pub base_url: String,
    /// Without one, no header is sent.
    pub api_key: Option<Secret>,
    pub model: String,
    /// The language of utterances that do not say theirs, `en` or `de-AT`.
    pub language: Option<String>,
    /// Whether the probabilities of words are asked for, which OpenAI's `gpt-4o-…` models have and other servers may
    /// refuse. Without them a transcript has no confidence.
    pub logprobs: bool,
    /// Whether words are asked for as they are understood (`stream`), for servers that have only that. A transcript that comes in
    /// events is read in any case.
    pub streams: bool,
    /// Requests at a time; the next one is refused as busy.
    pub max_requests: usize,
    /// Timeouts, sizes and retries.
    pub limits: Limits,
}

impl OpenAiSpeechToTextConfig {
    pub const DEFAULT_BASE_URL: &'static str = OpenAiConfig::DEFAULT_BASE_URL;
    /// Used unless another model is configured.
    pub const DEFAULT_MODEL: &'static str = "gpt-4o-mini-transcribe";

    /// The default model at OpenAI.
    pub fn new(api_key: Option<Secret>) -> Self {
        Self {
            base_url: Self::DEFAULT_BASE_URL.to_owned(),
            api_key,
            model: Self::DEFAULT_MODEL.to_owned(),
            language: None,
            logprobs: true,
            streams: false,
            max_requests: DEFAULT_MAX_REQUESTS,
            limits: Limits {
                connect: Duration::from_secs(5),
                first_byte: Duration::from_secs(20),
                idle: Duration::from_secs(10),
                total: Duration::from_secs(20),
                response: 1 << 20,
                retries: 1,
                // A user waits in silence.
                backoff: Duration::from_millis(200),
                max_retry_delay: Duration::from_secs(1),
                ..Limits::default()
            },
        }
    }
}

/// A server that speaks OpenAI's transcriptions.
#[derive(Debug, Clone)]
pub struct OpenAiSpeechToText {
    config: Arc<OpenAiSpeechToTextConfig>,
    client: Arc<SpeechClient>,
}

impl OpenAiSpeechToText {
    /// Checks the settings. Nothing is sent before the first utterance.
    pub fn new(config: OpenAiSpeechToTextConfig) -> Result<Self, ConfigError> {
        let key = config.api_key.as_ref().filter(|key| !key.is_empty());
        let settings = Settings {
            provider: PROVIDER,
            model: &config.model,
            base_url: &config.base_url,
            path: "audio/transcriptions".to_owned(),
            key,
            headers: bearer_headers(key)?,
            limits: &config.limits,
        };
        let client = SpeechClient::new(settings, config.max_requests)?;
        Ok(Self { client: Arc::new(client), config: Arc::new(config) })
    }

    fn request(&self, utterance: &Utterance) -> Result<Request, SpeechError> {
        let refused = |detail: String| self.client.error_of(SpeechErrorKind::Refused, detail);
        if utterance.samples.len() > MAX_SAMPLES {
            return Err(refused(format!("the utterance is longer than {MAX_SAMPLES} samples")));
        }
        let mut form = Form::new().field("model", &self.config.model).field("response_format", "json");
        let language = utterance.language.as_deref().or(self.config.language.as_deref());
        if let Some(language) = language.and_then(primary_language) {
            form = form.field("language", &language);
        }
        if self.config.logprobs {
            form = form.field("include[]", "logprobs");
        }
        if self.config.streams {
            form = form.field("stream", "true");
        }
        let form = form.wav_file(&wav_file(&utterance.samples, HEARD_RATE)).finish();
        let (kind, body) = form.map_err(|error| refused(error.to_string()))?;
        let request = self.client.endpoint.post_bytes(kind, body).build();
        request.map_err(|error| refused(error.without_url().to_string()))
    }

    async fn ask(&self, utterance: Utterance) -> Result<Transcript, SpeechError> {
        let _slot = self.client.reserve()?;
        // The samples are in the request, so that they are in memory twice for a moment only.
        let request = self.request(&utterance)?;
        drop(utterance);
        let deadline = deadline_after(self.client.endpoint.limits.total);
        let answer = async {
            let mut body = self.client.send(request, deadline).await?;
            let kind = body.content_type();
            if kind.as_deref().is_some_and(|kind| kind.starts_with("text/event-stream")) {
                return read_events(body).await;
            }
            read_transcript(&body.read().await?).map_err(|mut fault| {
                if let Some(kind) = kind.filter(|kind| !kind.contains("json")) {
                    fault.detail.push_str(&format!(" (its content type is {kind}: is the base URL right?)"));
                }
                fault
            })
        };
        answer.await.map_err(|fault| self.client.error(fault))
    }
}

impl SpeechToText for OpenAiSpeechToText {
    fn name(&self) -> &str {
        &self.client.endpoint.name
    }

    fn transcribe(&self, utterance: Utterance) -> BoxFuture<Result<Transcript, SpeechError>> {
        let engine = self.clone();
        Box::pin(async move { engine.ask(utterance).await })
    }
}

async fn read_events(mut body: ResponseBody) -> Result<Transcript, Fault> {
    let mut reader = TranscriptReader::default();
    while let Some(bytes) = body.next().await? {
        if reader.feed(&bytes)? {
            break;
        }
    }
    reader.finish()
}

/// `de` of `de-AT`: the protocol knows languages, not countries.
fn primary_language(language: &str) -> Option<String> {
    let primary = language.split(['-', '_']).next()?;
    let is_code = (2..=3).contains(&primary.len()) && primary.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_code.then(|| primary.to_ascii_lowercase())
}

/// The words in an answer. Its confidence is the geometric mean of the tokens' probabilities.
pub fn read_transcript(body: &[u8]) -> Result<Transcript, Fault> {
    if let Some(fault) = Fault::from_body(body) {
        return Err(fault);
    }
    let answer: Value = serde_json::from_slice(body).map_err(|_| Fault::garbled("the answer is not JSON"))?;
    transcript_of(&answer)
}

/// The transcript in an answer, or in the event that ends a stream.
pub(super) fn transcript_of(answer: &Value) -> Result<Transcript, Fault> {
    let Some(text) = answer["text"].as_str() else {
        return Err(Fault::garbled("the answer has no `text`"));
    };
    let confidence = answer["logprobs"].as_array().and_then(|tokens| confidence(tokens));
    Ok(Transcript { text: text.trim().to_owned(), confidence })
}

/// `None` where one of them is missing: it would look surer than it is.
fn confidence(tokens: &[Value]) -> Option<f32> {
    let logprobs = tokens.iter().map(|token| token["logprob"].as_f64());
    let sum: f64 = logprobs.sum::<Option<f64>>()?;
    let mean = sum / tokens.len() as f64;
    mean.is_finite().then(|| mean.exp().clamp(0.0, 1.0) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_sent_without_their_countries() {
        for (language, sent) in
            [("de-AT", Some("de")), ("EN", Some("en")), ("yue", Some("yue")), ("x", None), ("e\r\n", None)]
        {
            assert_eq!(primary_language(language).as_deref(), sent, "{language:?}");
        }
    }

    #[test]
    fn confidence_is_the_mean_of_all_tokens_or_unknown() {
        let read = |body: &str| read_transcript(body.as_bytes()).unwrap();
        assert_eq!(
            read(r#"{"text":" Aye. ","usage":{"type":"tokens"}}"#),
            Transcript { text: "Aye.".into(), confidence: None }
        );
        let half = 0.5_f64.ln();
        let sure =
            read(&format!(r#"{{"text":"a","logprobs":[{{"logprob":0}},{{"logprob":{}}}]}}"#, 2.0 * half));
        assert!((sure.confidence.unwrap() - 0.5).abs() < 1e-6);
        assert_eq!(read(r#"{"text":"a","logprobs":[{"logprob":0},{}]}"#).confidence, None);
        assert_eq!(read(r#"{"text":"","logprobs":[]}"#).confidence, None);
    }
}
