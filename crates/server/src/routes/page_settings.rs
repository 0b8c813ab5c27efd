//! `GET /api/page`: what the operator has set for the page and the widget, and `GET /api/page/logo`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::openapi::{Media, Operation};
use crate::app::App;
use crate::error::ApiError;
use crate::page_settings::{Colours, Logo, PageLink, Shown};

/// What is not set is null or empty.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "PageSettings")]
pub(super) struct PageSettingsBody {
    title: Option<String>,
    /// A URL, or a path of this server.
    logo: Option<String>,
    welcome: Option<String>,
    suggestions: Vec<String>,
    /// Such as `#0d5c6b`, or `#0d5c6bcc` with an opacity.
    colours: Colours,
    links: Vec<PageLink>,
    /// What visitors are shown of tool calls. What is hidden is not in the stream either.
    show: Shown,
    /// Whether calls are possible.
    voice: bool,
}

impl PageSettingsBody {
    pub(super) fn of(app: &App) -> Self {
        let page = app.settings.page.load();
        Self {
            title: page.title.clone(),
            logo: page.logo.as_ref().map(Logo::src),
            welcome: page.welcome.clone(),
            suggestions: page.suggestions.clone(),
            colours: page.colours,
            links: page.links.clone(),
            show: page.show,
            voice: app.voice.is_some(),
        }
    }
}

pub(super) async fn get(State(app): State<Arc<App>>) -> impl IntoResponse {
    // They may be replaced while the server runs.
    let no_cache = (header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    ([no_cache], Json(PageSettingsBody::of(&app)))
}

/// `GET /api/page/logo`: the logo that is a file of the operator's.
pub(super) async fn logo(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let page = app.settings.page.load();
    let Some(Logo::File(file)) = &page.logo else {
        return Err(ApiError::not_found(
            "There is no logo here. `GET /api/page` says where it is, if there is one.",
        ));
    };
    let value = |name: HeaderName, value| (name, HeaderValue::from_static(value));
    let headers = [
        value(header::CONTENT_TYPE, file.media_type),
        // A drawing may hold scripts and references; as a document it can do nothing.
        value(header::CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'; sandbox"),
        value(header::CACHE_CONTROL, "public, max-age=3600"),
    ];
    Ok((headers, file.bytes.clone()).into_response())
}

pub(super) fn describe() -> Operation {
    let example = json!({
        "title": "Harbour desk", "logo": "/api/page/logo?v=6f1ed002ab55", "welcome": "Ask about our ships.",
        "suggestions": ["Who designed the Fram?"],
        "colours": { "accent": "#0d5c6b", "accentText": null, "background": null, "surface": null, "text": null },
        "links": [{ "label": "Imprint", "url": "https://example.com/imprint" }],
        "show": { "toolCards": true, "gates": false, "json": false }, "voice": true,
    });
    Operation::new("getPageSettings", "client", "Get the settings of the page")
        .description("What the operator has set for the page and the widget. The same for every client.")
        .json_response::<PageSettingsBody>(200, "The settings.", Some(example))
}

pub(super) fn describe_logo() -> Operation {
    let kinds = ["image/png", "image/jpeg", "image/webp", "image/svg+xml"].map(Media::binary);
    Operation::new("getPageLogo", "client", "Get the logo")
        .description("Where the operator has set a file. Any page may show it.")
        .response(200, "The picture.", kinds.into())
        .errors(&[404])
}
