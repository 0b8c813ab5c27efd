//! `GET /openapi.json`: the description of the HTTP API.
//!
//! Each route describes itself next to its handler and its shapes, from which the schemas are derived, and the router
//! is built from the same table, so that neither can have a path or a method that the other lacks. Here is what the
//! routes share.

pub(crate) mod envelope;
mod errors;
mod operation;
pub(crate) mod schemas;

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

pub(super) use operation::{Media, Operation};

use super::table;
use schemas::Schemas;

const ABOUT: &str = "\
A tool runtime for text and voice agents.

**Clients.** A client is identified by a signed cookie, which the server sets on the first request, by the subject of \
a bearer token if token verification is configured, or by an API key sent as a bearer token. A client without any of \
them gets a session token in the metadata of the part `start` of an answer, and with a ticket for a call; it returns the \
latest one in the header `X-Quarterdeck-Session`. A session token is for the origin it was given to, expires after a day, \
and is refused with 401 and `details.header` where it does not hold: the client then sends the request again without it. \
Nothing in a body or an address changes the client. The operator can require a token or a key for `/v1`, `/api` or `/voice`; for other machines `/v1` requires \
one as soon as either is configured. A malformed credential, another scheme or several credentials are refused \
everywhere.

**Errors** have one format, `{\"error\":{\"type\",\"message\",\"retryable\",\"details\"?}}`; under `/v1` the OpenAI \
API's. Any path may answer 400 without exactly one `Host`, 401 for a missing or invalid credential, 403 for an \
unlisted origin, an unknown host name or a blocked client, 429 for too many requests of an address, and 405, with \
`Allow`, for another method. `Retry-After` tells how long to wait. A malformed request head gets a bare 400, or 431 if it is too large; a \
connection over the limit of its address gets 503 and is closed.

**Limits.** Bodies, heads and the nesting of JSON are limited. A body is read as JSON whatever its content type. \
Unknown fields are ignored in `/api/chat` and under `/v1`, and refused everywhere else.";

static DOCUMENT: LazyLock<String> = LazyLock::new(|| document().to_string());

pub(super) async fn get() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}

/// An OpenAPI document.
#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
struct DocumentShape {
    openapi: Value,
    info: Value,
    paths: Value,
}

pub(super) fn describe() -> Operation {
    Operation::new("getDescription", "description", "Get the API description").json_response::<DocumentShape>(
        200,
        "The OpenAPI document.",
        None,
    )
}

/// The OpenAPI document.
pub fn document() -> Value {
    let mut schemas = Schemas::new();
    let mut paths = Map::new();
    for route in table() {
        let operations = route.operations.into_iter();
        let described = operations
            .map(|(method, describe)| (method.to_owned(), describe().into_json(route.path, &mut schemas)));
        paths.insert(route.path.to_owned(), described.collect::<Map<_, _>>().into());
    }
    let responses = errors::responses(&paths, &mut schemas);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Quarterdeck", "version": env!("CARGO_PKG_VERSION"), "description": ABOUT,
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "This server" }],
        "tags": [
            { "name": "chat", "description": "Text conversations." },
            { "name": "voice", "description": "Voice calls." },
            { "name": "tools", "description": "The agent's tools." },
            { "name": "client", "description": "The calling client." },
            { "name": "openai", "description": "The agent behind the OpenAI API." },
            { "name": "operation", "description": "For operators." },
            { "name": "description", "description": "The API description and the pages." },
        ],
        // Unless a surface requires a credential, a client without one gets a cookie.
        "security": [{ "cookie": [] }, { "bearer": [] }, {}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "cookie": {
                    "type": "apiKey", "in": "cookie", "name": crate::identity::COOKIE,
                    "description": "Set by the server on the first request; signed and HttpOnly.",
                },
                "bearer": {
                    "type": "http", "scheme": "bearer",
                    "description": "A signed token whose subject is the client, or an API key. Where neither is \
                                    configured, any key is accepted and ignored.",
                },
                "admin": { "type": "http", "scheme": "bearer", "description": "The operators' token." },
            },
            "headers": operation::headers(),
            "responses": responses,
            "schemas": schemas.components(),
        },
    })
}

#[cfg(test)]
mod page_types;
#[cfg(test)]
mod tests;
