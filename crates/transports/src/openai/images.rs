//! `POST /images/generations`: OpenAI's image models, which answer with base64.

use std::sync::Arc;

use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{Aspect, ImageError, ImageErrorKind, ImageProvider, ImageRequest};
use serde_json::{Value, json};

use super::{OpenAiConfig, PROVIDER, bearer_headers};
use crate::endpoint::{Endpoint, Settings};
use crate::images::{decode, error_in_body, image_limits, send_once, unknown};
use crate::{ConfigError, Limits, Secret};

/// Settings of the client of OpenAI's image models.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenAiImagesConfig {
    /// Usually ends in `/v1`.
    pub base_url: String,
    /// Without one, no header is sent.
    pub api_key: Option<Secret>,
    /// A model that answers with base64: `gpt-image-…`.
    pub model: String,
    /// `low`, `medium`, `high` and whatever else the model knows; without one, the model's default. It decides the price.
    pub quality: Option<String>,
    /// Timeouts and sizes. There are no retries.
    pub limits: Limits,
}

impl OpenAiImagesConfig {
    pub const DEFAULT_BASE_URL: &'static str = OpenAiConfig::DEFAULT_BASE_URL;
    /// Used unless another model is configured.
    pub const DEFAULT_MODEL: &'static str = "gpt-image-2";

    /// The default model at OpenAI.
    pub fn new(api_key: Option<Secret>) -> Self {
        Self {
            base_url: Self::DEFAULT_BASE_URL.to_owned(),
            api_key,
            model: Self::DEFAULT_MODEL.to_owned(),
            quality: None,
            limits: image_limits(),
        }
    }
}

/// OpenAI's image models.
#[derive(Debug)]
pub struct OpenAiImages {
    config: OpenAiImagesConfig,
    endpoint: Arc<Endpoint>,
}

impl OpenAiImages {
    /// Checks the settings. Nothing is sent before the first request.
    pub fn new(config: OpenAiImagesConfig) -> Result<Self, ConfigError> {
        let key = config.api_key.as_ref().filter(|key| !key.is_empty());
        let headers = bearer_headers(key)?;
        let endpoint = Endpoint::new(Settings {
            provider: PROVIDER,
            model: &config.model,
            base_url: &config.base_url,
            path: "images/generations".to_owned(),
            key,
            headers,
            limits: &config.limits,
        })?;
        Ok(Self { config, endpoint })
    }
}

impl ImageProvider for OpenAiImages {
    fn name(&self) -> &str {
        &self.endpoint.name
    }

    fn generate(&self, request: ImageRequest) -> BoxFuture<Result<Vec<u8>, ImageError>> {
        let (endpoint, body) = (self.endpoint.clone(), body(&self.config, &request));
        Box::pin(async move { read_image(&send_once(&endpoint, &body).await?) })
    }
}

fn body(config: &OpenAiImagesConfig, request: &ImageRequest) -> Value {
    let size = match request.aspect {
        Aspect::Square => "1024x1024",
        Aspect::Landscape => "1536x1024",
        Aspect::Portrait => "1024x1536",
    };
    let mut body = json!({
        "model": config.model, "prompt": request.prompt, "n": 1, "size": size,
        // A quarter of a PNG's size, and every browser shows it.
        "output_format": "webp",
    });
    if let Some(quality) = &config.quality {
        body["quality"] = json!(quality);
    }
    body
}

/// The image in an answer.
pub fn read_image(body: &[u8]) -> Result<Vec<u8>, ImageError> {
    if let Some(error) = error_in_body(body) {
        return Err(error);
    }
    let answer: Value = serde_json::from_slice(body).map_err(|_| unknown("the answer is not JSON"))?;
    let Some(images) = answer["data"].as_array() else {
        return Err(unknown("the answer has no `data`"));
    };
    match images.first() {
        Some(image) if image["b64_json"].is_string() => {
            decode(image["b64_json"].as_str().unwrap_or_default())
        }
        Some(image) if image["url"].is_string() => Err(unknown(
            "the answer has an address instead of an image: choose a model that answers with base64",
        )),
        Some(_) => Err(unknown("the answer has an entry without an image")),
        // Some servers of this protocol withhold an image without a word.
        None => Err(ImageError::new(ImageErrorKind::Refused, "the answer has no image")),
    }
}
