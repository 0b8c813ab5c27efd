//! `GET /files/{id}`: a file of a session, by its signed link. The signature is the credential.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use quarterdeck_contracts::{ErrorType, ImageInfo, StoreError};
use quarterdeck_runtime::{SessionFile, find_file, read_file};
use schemars::JsonSchema;
use serde::Deserialize;

use super::openapi::{Media, Operation};
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::file_link::{LinkError, ReceivedLink};
use crate::input::{Id, QueryParams};
use crate::stream::held_body;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(super) struct Link {
    /// The session of the file.
    #[schemars(extend("example" = "ses_1"))]
    session: Option<String>,
    /// Until when the link is valid, in milliseconds since 1970.
    #[schemars(extend("example" = "1760003600000"))]
    expires: Option<String>,
    /// Binds the link to the file, the session and the time.
    #[schemars(extend("example" = "0123456789abcdef"))]
    signature: Option<String>,
}

pub(super) async fn get(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Id(id): Id,
    QueryParams(link): QueryParams<Link>,
) -> Result<Response, ApiError> {
    let (session, left_ms) = verify(&app, &id, &link)?;
    let store = app.orchestrator.store();
    let file = find_file(&**store, session, &id).await.map_err(failed)?.ok_or_else(not_found)?;
    // Before the bytes are in memory.
    let permit = app.admission.admit_response(&caller.client.id, file.bytes)?;
    let bytes = read_file(&**store, session, &file).await.map_err(failed)?.ok_or_else(not_found)?;
    // The row says what the bytes were when they were written. They are what a browser gets.
    let info = ImageInfo::read(&bytes).ok_or_else(not_found)?;
    let file = SessionFile { media_type: info.kind, ..file };
    Ok((file_headers(&file, left_ms), held_body::bytes(bytes.into(), permit)).into_response())
}

/// The session, and how long the link is still valid.
fn verify<'a>(app: &App, id: &str, link: &'a Link) -> Result<(&'a str, u64), ApiError> {
    let text = |text: &'a Option<String>| text.as_deref().unwrap_or_default();
    let (session, expires, signature) = (text(&link.session), text(&link.expires), text(&link.signature));
    let link = ReceivedLink { session, id, expires, signature };
    let left_ms = link.time_left_ms(&app.identity, app.orchestrator.now_ms()).map_err(|error| {
        let message = match error {
            LinkError::Invalid => "This link is not valid. Load the conversation again for a new one.",
            LinkError::Expired => "This link has expired. Load the conversation again for a new one.",
        };
        ApiError::new(ErrorType::Unavailable, message)
    })?;
    Ok((session, left_ms))
}

fn file_headers(file: &SessionFile, left_ms: u64) -> [(HeaderName, HeaderValue); 6] {
    let text = |text: String| HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""));
    let name = format!("inline; filename=\"{}.{}\"", file.id, file.media_type.extension());
    [
        (header::CONTENT_TYPE, HeaderValue::from_static(file.media_type.media_type())),
        (header::CONTENT_DISPOSITION, text(name)),
        // Should a browser take it for a document after all, that document can do nothing.
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox")),
        (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("cross-origin")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        // A file never changes, but a link ends.
        (header::CACHE_CONTROL, text(format!("private, max-age={}, immutable", left_ms / 1_000))),
    ]
}

fn not_found() -> ApiError {
    ApiError::not_found("File not found. It may have been erased with its conversation.")
}

fn failed(error: StoreError) -> ApiError {
    ApiError::internal("file could not be read", &error)
}

pub(super) fn describe() -> Operation {
    Operation::new("getFile", "chat", "Get a file of a conversation")
        .description(
            "An image that a tool has made, by the link in the parts `data-file` and `file` of an answer. The link is the \
             credential: it is signed, valid for this file of this session, and expires. A conversation that is loaded \
             again has new links.",
        )
        .path_id("The file.", "file_0123456789abcdef0123456789abcdef")
        .query::<Link>()
        .response(200, "The image.", ["image/png", "image/jpeg", "image/webp"].map(Media::binary).into())
        .errors(&[403, 404])
}
