//! Text to speech: one sentence, and its samples as they are made.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use quarterdeck_audio::{AudioError, PcmReader, WavReader};
use quarterdeck_contracts::{
    SPOKEN_RATE, Sentence, SpeechError, SpeechErrorKind, SpeechStream, TextToSpeech,
};
use reqwest::Request;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use super::super::{OpenAiConfig, PROVIDER, bearer_headers};
use super::DEFAULT_MAX_REQUESTS;
use super::exchange::{ResponseBody, SpeechClient};
use crate::endpoint::Settings;
use crate::http::deadline_after;
use crate::{ConfigError, Fault, Limits, Secret};

/// The longest text that OpenAI takes.
const MAX_TEXT_CHARS: usize = 4_096;

/// What a server sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AudioFormat {
    /// Samples alone, mono, which can be played as they come.
    Pcm {
        /// Samples each second: 24,000 at OpenAI.
        rate: u32,
    },
    /// A WAV file, which says its rate. For servers that have nothing else.
    Wav,
}

/// Settings of a client of speech.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenAiTextToSpeechConfig {
    /// Usually ends in `/v1`.
    pub base_url: String,
    /// Without one, no header is sent.
    pub api_key: Option<Secret>,
    pub model: String,
    pub voice: String,
    pub format: AudioFormat,
    /// Requests at a time; the next one is refused as busy.
    pub max_requests: usize,
    /// Timeouts, sizes and retries.
    pub limits: Limits,
}

impl OpenAiTextToSpeechConfig {
    pub const DEFAULT_BASE_URL: &'static str = OpenAiConfig::DEFAULT_BASE_URL;
    /// Used unless another model is configured.
    pub const DEFAULT_MODEL: &'static str = "gpt-4o-mini-tts";
    pub const DEFAULT_VOICE: &'static str = "alloy";

    /// The default model and voice at OpenAI.
    pub fn new(api_key: Option<Secret>) -> Self {
        Self {
            base_url: Self::DEFAULT_BASE_URL.to_owned(),
            api_key,
            model: Self::DEFAULT_MODEL.to_owned(),
            voice: Self::DEFAULT_VOICE.to_owned(),
            format: AudioFormat::Pcm { rate: SPOKEN_RATE },
            max_requests: DEFAULT_MAX_REQUESTS,
            limits: Limits {
                connect: Duration::from_secs(5),
                first_byte: Duration::from_secs(10),
                idle: Duration::from_secs(10),
                // A reader that is ahead of what is played waits.
                total: Duration::from_secs(5 * 60),
                // Three minutes.
                response: 180 * 2 * SPOKEN_RATE as usize,
                retries: 1,
                backoff: Duration::from_millis(200),
                max_retry_delay: Duration::from_secs(1),
                ..Limits::default()
            },
        }
    }
}

/// A server that speaks OpenAI's speech.
#[derive(Debug, Clone)]
pub struct OpenAiTextToSpeech {
    config: Arc<OpenAiTextToSpeechConfig>,
    client: Arc<SpeechClient>,
}

impl OpenAiTextToSpeech {
    /// Checks the settings. Nothing is sent before the first sentence.
    pub fn new(config: OpenAiTextToSpeechConfig) -> Result<Self, ConfigError> {
        let key = config.api_key.as_ref().filter(|key| !key.is_empty());
        let settings = Settings {
            provider: PROVIDER,
            model: &config.model,
            base_url: &config.base_url,
            path: "audio/speech".to_owned(),
            key,
            headers: bearer_headers(key)?,
            limits: &config.limits,
        };
        let client = SpeechClient::new(settings, config.max_requests)?;
        Ok(Self { client: Arc::new(client), config: Arc::new(config) })
    }

    fn begin(&self, sentence: &Sentence) -> Result<Speaking, SpeechError> {
        let refused = |detail: String| self.client.error_of(SpeechErrorKind::Refused, detail);
        if sentence.text.chars().count() > MAX_TEXT_CHARS {
            return Err(refused(format!("the sentence is longer than {MAX_TEXT_CHARS} characters")));
        }
        let (format, decoder) = match self.config.format {
            AudioFormat::Pcm { rate } => {
                let reader = PcmReader::new(rate, 1, SPOKEN_RATE);
                ("pcm", Decoder::Pcm(reader.map_err(|error| self.client.error(fault_of(error)))?))
            }
            AudioFormat::Wav => ("wav", Decoder::Wav(WavReader::new(SPOKEN_RATE))),
        };
        let body = json!({
            "model": self.config.model, "voice": self.config.voice, "input": sentence.text, "response_format": format,
        });
        let request = self.client.endpoint.post(&body).build();
        let request = request.map_err(|error| refused(error.without_url().to_string()))?;
        let slot = self.client.reserve()?;
        let phase = Phase::Send(Box::new(request));
        Ok(Speaking { client: self.client.clone(), phase, decoder, is_heard: false, _slot: slot })
    }
}

impl TextToSpeech for OpenAiTextToSpeech {
    fn name(&self) -> &str {
        &self.client.endpoint.name
    }

    fn speak(&self, sentence: Sentence) -> SpeechStream {
        match self.begin(&sentence) {
            Ok(speaking) => Box::pin(stream::unfold(speaking, Speaking::next)),
            Err(error) => Box::pin(stream::iter([Err(error)])),
        }
    }
}

/// A sentence that is being spoken. Dropping it closes the connection and gives its slot back.
struct Speaking {
    client: Arc<SpeechClient>,
    phase: Phase,
    decoder: Decoder,
    /// Whether any sample has come.
    is_heard: bool,
    _slot: OwnedSemaphorePermit,
}

enum Phase {
    Send(Box<Request>),
    Read(Box<ResponseBody>),
    Over,
}

impl Speaking {
    async fn next(mut self) -> Option<(Result<Vec<i16>, SpeechError>, Self)> {
        loop {
            let step = match std::mem::replace(&mut self.phase, Phase::Over) {
                Phase::Send(request) => self.send(*request).await.map(|()| None),
                Phase::Read(body) => self.read(body).await,
                Phase::Over => return None,
            };
            match step {
                Ok(Some(samples)) => return Some((Ok(samples), self)),
                Ok(None) => {}
                Err(fault) => {
                    self.phase = Phase::Over;
                    return Some((Err(self.client.error(fault)), self));
                }
            }
        }
    }

    async fn send(&mut self, request: Request) -> Result<(), Fault> {
        let deadline = deadline_after(self.client.endpoint.limits.total);
        let mut body = self.client.send(request, deadline).await?;
        if let Some(kind) = body.content_type().filter(|kind| !is_audio(kind)) {
            // Played, a page or an error would be noise.
            let fault = Fault::from_body(&body.read().await?);
            return Err(fault.unwrap_or_else(|| {
                Fault::garbled(format!("no speech came but {kind}: is the base URL right?"))
            }));
        }
        self.phase = Phase::Read(Box::new(body));
        Ok(())
    }

    /// The next samples; `None` where there are none yet, or no more.
    async fn read(&mut self, mut body: Box<ResponseBody>) -> Result<Option<Vec<i16>>, Fault> {
        let (samples, is_last) = match body.next().await? {
            Some(bytes) => (self.decoder.feed(&bytes), false),
            None => (self.decoder.finish(), true),
        };
        let samples = samples.map_err(fault_of)?;
        self.is_heard |= !samples.is_empty();
        match is_last {
            true if !self.is_heard => return Err(Fault::garbled("the answer has no speech")),
            true => {}
            false => self.phase = Phase::Read(body),
        }
        Ok(Some(samples).filter(|samples| !samples.is_empty()))
    }
}

/// Servers disagree about the type of samples without a header.
fn is_audio(kind: &str) -> bool {
    kind.starts_with("audio/") || kind.starts_with("application/octet-stream")
}

fn fault_of(error: AudioError) -> Fault {
    match error {
        AudioError::Truncated => Fault::cut(error.to_string()),
        _ => Fault::garbled(error.to_string()),
    }
}

enum Decoder {
    Pcm(PcmReader),
    Wav(WavReader),
}

impl Decoder {
    fn feed(&mut self, bytes: &[u8]) -> Result<Vec<i16>, AudioError> {
        match self {
            Self::Pcm(reader) => Ok(reader.feed(bytes)),
            Self::Wav(reader) => reader.feed(bytes),
        }
    }

    fn finish(&mut self) -> Result<Vec<i16>, AudioError> {
        match self {
            Self::Pcm(reader) => reader.finish(),
            Self::Wav(reader) => reader.finish(),
        }
    }
}
