//! Images: who generates one, and what its bytes must be.

mod kind;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::handler::{BoxFuture, CapabilityError, CapabilityErrorCode};

pub use kind::{ImageInfo, ImageType, MAX_IMAGE_SIDE_PIXELS};

/// Generates images from a text.
///
/// One request asks for one image and costs money, so an implementation sends it once: it never retries, and its error
/// says whether the provider may have done the work. It returns the bytes as they came; their type is not believed but
/// read with [`ImageInfo::read`] before they are kept.
pub trait ImageProvider: Send + Sync {
    /// `provider/model`.
    fn name(&self) -> &str;

    /// Generates one image. Dropping the future closes the connection.
    fn generate(&self, request: ImageRequest) -> BoxFuture<Result<Vec<u8>, ImageError>>;
}

/// The image that is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageRequest {
    /// What it shows, and how.
    pub prompt: String,
    /// Its shape; every provider has its own sizes for each.
    #[serde(default)]
    pub aspect: Aspect,
}

/// The shape of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Aspect {
    #[default]
    Square,
    Landscape,
    Portrait,
}

/// Why there is no image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct ImageError {
    /// What kind of failure it was.
    pub kind: ImageErrorKind,
    /// What the provider said, or what happened, for the operator. It has no key in it, but perhaps words of the prompt.
    pub detail: String,
    /// The delay that the provider asks for.
    pub retry_after: Option<Duration>,
}

/// What can be done about a failure. Only after [`ImageErrorKind::Unknown`] may an image have been made and charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageErrorKind {
    /// The provider's content policy does not allow the image.
    Refused,
    /// The request is wrong in another way: the model does not exist, the quota is used up.
    Rejected,
    /// The key is missing or wrong.
    Unauthorised,
    /// Too many requests.
    RateLimited,
    /// Not reached, or turned away before any work was done.
    Unavailable,
    /// The request was sent, and what came of it is not known, or cannot be used.
    Unknown,
}

impl ImageError {
    /// An error without a delay.
    pub fn new(kind: ImageErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), retry_after: None }
    }
}

/// What a handler sees: no words of the provider's. `OUTCOME_UNKNOWN` means that an image may have been made and charged, every other
/// code that none was.
impl From<ImageError> for CapabilityError {
    fn from(error: ImageError) -> Self {
        use CapabilityErrorCode as Code;
        let (code, message) = match error.kind {
            ImageErrorKind::Refused => {
                (Code::Refused, "the image provider's content policy does not allow this image")
            }
            ImageErrorKind::Rejected => (Code::Refused, "the image provider does not take the request"),
            ImageErrorKind::Unauthorised => {
                (Code::AuthError, "the image provider does not accept this server's key")
            }
            ImageErrorKind::RateLimited => (Code::RateLimit, "the image provider has too many requests"),
            ImageErrorKind::Unavailable => (Code::NotAvailable, "the image provider is not available"),
            ImageErrorKind::Unknown => (
                Code::OutcomeUnknown,
                "no usable image came back, though the image provider may have made one",
            ),
        };
        let retry_after_seconds = error.retry_after.map(|delay| delay.as_secs_f64());
        Self { retry_after_seconds, ..Self::new(code, message) }
    }
}
