//! `generateContent` with an image model: the image is a part of the answer.

use std::sync::Arc;

use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{Aspect, ImageError, ImageErrorKind, ImageProvider, ImageRequest};
use serde_json::{Value, json};

use super::{GeminiConfig, model_endpoint};
use crate::endpoint::Endpoint;
use crate::images::{decode, error_in_body, image_limits, send_once, unknown};
use crate::{ConfigError, Limits, Secret};

/// Settings of the client of Gemini's image models.
#[derive(Debug, Clone, PartialEq)]
pub struct GeminiImagesConfig {
    /// Without the version.
    pub base_url: String,
    pub api_key: Secret,
    /// The model, with or without `models/`.
    pub model: String,
    /// Timeouts and sizes. There are no retries.
    pub limits: Limits,
}

impl GeminiImagesConfig {
    pub const DEFAULT_BASE_URL: &'static str = GeminiConfig::DEFAULT_BASE_URL;
    /// Used unless another model is configured.
    pub const DEFAULT_MODEL: &'static str = "gemini-nano-banana-2.1";

    /// The default model at Google.
    pub fn new(api_key: impl Into<Secret>) -> Self {
        Self {
            base_url: Self::DEFAULT_BASE_URL.to_owned(),
            api_key: api_key.into(),
            model: Self::DEFAULT_MODEL.to_owned(),
            limits: image_limits(),
        }
    }
}

/// Gemini's image models.
#[derive(Debug)]
pub struct GeminiImages {
    endpoint: Arc<Endpoint>,
}

impl GeminiImages {
    /// Checks the settings. Nothing is sent before the first request.
    pub fn new(config: &GeminiImagesConfig) -> Result<Self, ConfigError> {
        let chat = GeminiConfig {
            base_url: config.base_url.clone(),
            model: config.model.clone(),
            limits: config.limits.clone(),
            ..GeminiConfig::new(config.api_key.clone())
        };
        Ok(Self { endpoint: model_endpoint(&chat, "generateContent")? })
    }
}

impl ImageProvider for GeminiImages {
    fn name(&self) -> &str {
        &self.endpoint.name
    }

    fn generate(&self, request: ImageRequest) -> BoxFuture<Result<Vec<u8>, ImageError>> {
        let (endpoint, body) = (self.endpoint.clone(), body(&request));
        Box::pin(async move { read_image(&send_once(&endpoint, &body).await?) })
    }
}

fn body(request: &ImageRequest) -> Value {
    let ratio = match request.aspect {
        Aspect::Square => "1:1",
        Aspect::Landscape => "3:2",
        Aspect::Portrait => "2:3",
    };
    json!({
        "contents": [{ "role": "user", "parts": [{ "text": request.prompt }] }],
        "generationConfig": { "responseModalities": ["IMAGE"], "imageConfig": { "aspectRatio": ratio } },
    })
}

/// The image in an answer.
pub fn read_image(body: &[u8]) -> Result<Vec<u8>, ImageError> {
    if let Some(error) = error_in_body(body) {
        return Err(error);
    }
    let answer: Value = serde_json::from_slice(body).map_err(|_| unknown("the answer is not JSON"))?;
    if let Some(reason) = answer["promptFeedback"]["blockReason"].as_str() {
        return Err(ImageError::new(
            ImageErrorKind::Refused,
            format!("the prompt was blocked: {}", word(reason)),
        ));
    }
    let candidate = &answer["candidates"][0];
    let parts = candidate["content"]["parts"].as_array();
    match parts.into_iter().flatten().find_map(image_of) {
        Some(text) => decode(text),
        None => Err(without_image(candidate["finishReason"].as_str())),
    }
}

/// Pictures that the model made while it thought are not the answer.
fn image_of(part: &Value) -> Option<&str> {
    let is_thought = part["thought"] == true;
    part["inlineData"]["data"].as_str().filter(|_| !is_thought)
}

/// Reasons for which the image itself was withheld.
const POLICY_REASONS: [&str; 9] = [
    "SAFETY",
    "IMAGE_SAFETY",
    "PROHIBITED_CONTENT",
    "IMAGE_PROHIBITED_CONTENT",
    "RECITATION",
    "IMAGE_RECITATION",
    "BLOCKLIST",
    "SPII",
    "LANGUAGE",
];

fn without_image(reason: Option<&str>) -> ImageError {
    match reason {
        Some(reason) if POLICY_REASONS.contains(&reason) => {
            ImageError::new(ImageErrorKind::Refused, format!("the image was withheld: {reason}"))
        }
        Some(reason) => ImageError::new(
            ImageErrorKind::Rejected,
            format!("the model made no image: {}; is it an image model?", word(reason)),
        ),
        None => unknown("the answer has no image and no reason"),
    }
}

/// A reason as the provider writes them, and nothing else.
fn word(reason: &str) -> String {
    reason.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(40).collect()
}
