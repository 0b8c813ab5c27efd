//! `[images]`: who generates images, and how many are kept.

use quarterdeck_runtime::FileLimits;
use quarterdeck_transports::{GeminiImagesConfig, OpenAiImagesConfig};

use super::endpoint::{Defaults, Endpoint, GEMINI_KEYS, OPENAI_KEYS, endpoint};
use super::kinds::{Choices, base_url, choice, choices, line, seconds, secret_file, whole};
use super::reader::{Reader, settings};

/// The image provider, and the limits of what is kept.
#[derive(Debug, Clone)]
pub(crate) struct Images {
    /// `None` where images are not configured.
    pub(crate) provider: Option<ImageModel>,
    pub(crate) limits: FileLimits,
}

/// A provider of images, ready to be built.
#[derive(Debug, Clone)]
pub(crate) enum ImageModel {
    OpenAi(OpenAiImagesConfig),
    Gemini(GeminiImagesConfig),
}

choices! {
    enum ImagesProvider {
        /// Every image costs money, so that a key for the chat model alone does not switch them on.
        None = "none",
        OpenAi = "openai",
        Gemini = "gemini",
    }
}

pub(super) fn images(from: &mut Reader) -> Images {
    let mut provider = ImagesProvider::None;
    from.table("images", "The image model. Without a provider, `image_generate` is not available.");
    settings! { from;
        "provider": choice() => provider, "Who runs the model; every image costs money there";
    }
    let model = from.optional("model", line(), "Which model [default: by provider]");
    let about = "Where the provider is [default: by provider]";
    let url = from.optional("base_url", base_url(&["http", "https"]), about);
    let about = "A file that holds the provider's key; the provider's variable wins over it";
    let key_file = from.optional("api_key_file", secret_file(), about);
    let endpoint = endpoint(from, "images", &provider.defaults(), model, url, key_file.as_deref());
    let about = "How much work OpenAI's model puts into an image, such as low, medium or high, which decides the price \
                 [default: the model's own]";
    let quality = from.optional("quality", line(), about);
    let mut request_limits = OpenAiImagesConfig::new(None).limits;
    let mut limits = FileLimits::default();
    settings! { from;
        "timeout_seconds": seconds(5, 110) => request_limits.total, "How long the model may take for an image";
        "max_bytes": whole(64 << 10, 24 << 20) => limits.max_bytes, "The largest image that is kept";
        "per_session": whole(1, 1_000) => limits.per_session, "Images that one conversation keeps";
    }
    // In base64, and beside it what a model drew while it thought.
    request_limits.response = 2 * limits.max_bytes + (1 << 20);
    if provider == ImagesProvider::None {
        refuse_without_provider(from);
    }
    let Endpoint { base_url, model, api_key } = endpoint;
    let provider = match provider {
        ImagesProvider::None => None,
        ImagesProvider::OpenAi => Some(ImageModel::OpenAi(OpenAiImagesConfig {
            base_url,
            model,
            quality,
            limits: request_limits,
            ..OpenAiImagesConfig::new(api_key)
        })),
        ImagesProvider::Gemini => Some(ImageModel::Gemini(GeminiImagesConfig {
            base_url,
            model,
            limits: request_limits,
            // A server at another address may take any key, but the protocol needs one.
            ..GeminiImagesConfig::new(api_key.unwrap_or_else(|| "none".into()))
        })),
    };
    Images { provider, limits }
}

/// A provider's address or key without the provider is a mistake, not a wish to have no images.
fn refuse_without_provider(from: &mut Reader) {
    for key in ["images.model", "images.base_url", "images.api_key_file", "images.quality"] {
        if from.is_set(key) {
            let message = format!("`{key}` needs `images.provider`");
            let help = "set `images.provider` to \"openai\" or \"gemini\", or leave the key out";
            from.add_serve_problem(key, message, Some(help.into()));
        }
    }
}

impl ImagesProvider {
    pub(super) fn defaults(self) -> Defaults {
        let (keys, base_url, model): (&[&str], _, _) = match self {
            Self::None => (&[], None, "none"),
            Self::OpenAi => {
                (&OPENAI_KEYS, Some(OpenAiImagesConfig::DEFAULT_BASE_URL), OpenAiImagesConfig::DEFAULT_MODEL)
            }
            Self::Gemini => {
                (&GEMINI_KEYS, Some(GeminiImagesConfig::DEFAULT_BASE_URL), GeminiImagesConfig::DEFAULT_MODEL)
            }
        };
        let (base_url, model) = (base_url.map(String::from), Some(model.into()));
        Defaults { name: self.as_str(), keys, base_url, base_url_variable: None, model }
    }
}
