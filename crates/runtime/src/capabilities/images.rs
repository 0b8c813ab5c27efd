//! `images`: generates images, and keeps them as files of the session.

use std::sync::Arc;

use quarterdeck_contracts::handler::{
    BoxFuture, CapabilityError, CapabilityErrorCode, CapabilityProvider, CapabilityRequest, CapabilityScope,
};
use quarterdeck_contracts::{
    Capability, CapabilitySpec, ImageError, ImageErrorKind, ImageInfo, ImageProvider, ImageRequest,
    StoreError, built_in,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::invalid;
use crate::clock::epoch_ms;
use crate::files::{SessionFile, count_files};

const MAX_PROMPT_CHARS: usize = 4_000;

/// How much a session may keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLimits {
    /// Size of one file.
    pub max_bytes: usize,
    /// Files of one session.
    pub per_session: usize,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self { max_bytes: 8 << 20, per_session: 20 }
    }
}

/// The capability `images` on a provider.
pub struct Images {
    pub provider: Arc<dyn ImageProvider>,
    pub limits: FileLimits,
}

impl CapabilityProvider for Images {
    fn spec(&self) -> CapabilitySpec {
        built_in::IMAGES
    }

    fn call(&self, request: CapabilityRequest) -> BoxFuture<Result<Value, CapabilityError>> {
        let (provider, limits) = (self.provider.clone(), self.limits);
        Box::pin(async move {
            match request.method.as_str() {
                "generate" => generate(&*provider, limits, &*request.scope, &request.arg(0)).await,
                _ => Err(CapabilityError::not_available(&Capability::IMAGES)),
            }
        })
    }
}

async fn generate(
    provider: &dyn ImageProvider,
    limits: FileLimits,
    scope: &dyn CapabilityScope,
    argument: &Value,
) -> Result<Value, CapabilityError> {
    scope.require_writes("images.generate")?;
    let request = parse(argument)?;
    let (session, overlay) = (scope.session_id(), scope.overlay());
    // Before the provider is asked: what is not kept must not be paid for. Writes of a session run one after another, so
    // nothing comes between.
    if count_files(&overlay, &session, limits.per_session).await.map_err(failed)? >= limits.per_session {
        let message = format!("this conversation has {} images, and keeps no more", limits.per_session);
        return Err(CapabilityError::new(CapabilityErrorCode::Refused, message));
    }
    scope.mark_outside_effect();
    let bytes = provider.generate(request).await.map_err(|error| reported(provider, error))?;
    if bytes.len() > limits.max_bytes {
        return Err(unusable(&format!("is larger than {} bytes", limits.max_bytes)));
    }
    let Some(info) = ImageInfo::read(&bytes) else {
        return Err(unusable("is not a PNG, JPEG or WebP of a usual size"));
    };
    let Some(file) = SessionFile::new(&bytes, info, epoch_ms(scope.now())) else {
        return Err(unusable("cannot be kept: the system has no random numbers"));
    };
    file.put(&overlay, &session, &bytes);
    let SessionFile { id, media_type, bytes, width, height, .. } = file;
    Ok(json!({
        "file": { "id": id, "mediaType": media_type, "bytes": bytes, "width": width, "height": height },
        "provider": provider.name(),
    }))
}

fn parse(argument: &Value) -> Result<ImageRequest, CapabilityError> {
    let mut request = ImageRequest::deserialize(argument)
        .map_err(|error| invalid(format!("images.generate takes {{prompt, aspect}}: {error}")))?;
    request.prompt = request.prompt.trim().to_owned();
    if !(1..=MAX_PROMPT_CHARS).contains(&request.prompt.chars().count()) {
        return Err(invalid(format!("a prompt has 1 to {MAX_PROMPT_CHARS} characters")));
    }
    Ok(request)
}

/// Tells the operator what the provider said. A refusal may quote the prompt, which is the user's.
fn reported(provider: &dyn ImageProvider, error: ImageError) -> CapabilityError {
    let detail = if error.kind == ImageErrorKind::Refused { "content policy" } else { &*error.detail };
    tracing::warn!(provider = provider.name(), kind = ?error.kind, detail, "image request failed");
    error.into()
}

/// The provider has done its work, and it is lost.
fn unusable(why: &str) -> CapabilityError {
    CapabilityError::new(CapabilityErrorCode::OutcomeUnknown, format!("the provider's image {why}"))
}

fn failed(error: StoreError) -> CapabilityError {
    tracing::error!(error = %error, "store failed during a capability call");
    CapabilityError::new(CapabilityErrorCode::NotAvailable, "the store is not available")
}
