//! `GET /openapi.json`: the HTTP API, described.
//!
//! What a route takes and gives is described next to its handler, and the router is built from the same table, so that
//! neither can have a path or a method that the other lacks. Here stands what the routes share.

pub(super) mod completions;
pub(super) mod envelope;
mod operation;
mod refusals;
pub(super) mod ui;

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

pub(super) use operation::{Operation, event_stream, reference};

use super::{confirmations, deck, table, tools};

const ABOUT: &str = "\
A tool runtime for agents that people write to and speak to.

**Who asks.** A client is known by a signed cookie that the server sets on first contact, by the subject of a bearer token \
where token verification is configured, or by an API key, sent as a bearer token too. Nothing in a body makes a client \
another one. The operator may close `/v1`, `/api` or `/voice` to clients without a token or a key; beyond the server's own \
machine `/v1` is closed as soon as either is configured. A credential that is sent and cannot be read, is of another scheme \
or stands there twice is refused everywhere.

**Refusals** have one form, `{\"error\":{\"type\",\"message\",\"retryable\",\"details\"?}}`; under `/v1` they have the OpenAI \
API's. Any path may answer 400 to a request without exactly one `Host`, 401 to a credential that is missing or not valid, 403 to \
a page on an origin that is not listed or for a host name that is not the server's, 429 to an address that asks too often, and 405, with `Allow`, to a method that it does not take. `Retry-After` says how long to \
wait. A request whose head cannot be read gets a bare 400, or 431 when it is too large; a connection beyond what one \
address may have open gets 503 and is closed.

**Limits.** Bodies, heads and the depth of JSON are limited. A body is read as JSON whatever its type is said to be. \
Unknown fields are ignored in `/api/chat` and under `/v1`, and named everywhere else.";

static DOCUMENT: LazyLock<String> = LazyLock::new(|| document().to_string());

pub(super) async fn get() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}

pub(super) fn described() -> Operation {
    let schema = json!({ "type": "object", "required": ["openapi", "info", "paths"] });
    Operation::new("getDescription", "description", "This description").gives_json(
        200,
        "The OpenAPI document.",
        schema,
        None,
    )
}

/// The description.
pub fn document() -> Value {
    let paths: Map<String, Value> =
        table().into_iter().map(|route| (route.path.to_owned(), Value::Object(route.described))).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Quarterdeck", "version": env!("CARGO_PKG_VERSION"), "description": ABOUT,
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "This server" }],
        "tags": [
            { "name": "chat", "description": "Talking to the agent, and what was said." },
            { "name": "voice", "description": "Speaking with the agent." },
            { "name": "tools", "description": "What the agent can do." },
            { "name": "client", "description": "Who the caller is." },
            { "name": "openai", "description": "The agent behind the OpenAI API." },
            { "name": "operation", "description": "For whoever runs the server." },
            { "name": "description", "description": "This description." },
        ],
        // Unless the operator has closed a surface, a client without a credential gets a cookie.
        "security": [{ "cookie": [] }, { "bearer": [] }, {}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "cookie": {
                    "type": "apiKey", "in": "cookie", "name": crate::identity::COOKIE,
                    "description": "Set by the server on first contact, signed, and for HTTP only.",
                },
                "bearer": {
                    "type": "http", "scheme": "bearer",
                    "description": "A signed token whose subject is the client, or an API key. Where neither is \
                                    configured, whatever is sent is taken for nothing, since chat programs want a key.",
                },
                "admin": { "type": "http", "scheme": "bearer", "description": "The operators' token." },
            },
            "headers": operation::headers(),
            "responses": refusals::responses(&paths),
            "schemas": schemas(),
        },
    })
}

fn schemas() -> Map<String, Value> {
    let of_routes = vec![("ConfirmationAnswer", confirmations::body_schema()), ("Tool", tools::schema())];
    let of_deck = deck::schemas();
    let all =
        [envelope::schemas(), refusals::schemas(), ui::schemas(), completions::schemas(), of_routes, of_deck];
    all.into_iter().flatten().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

#[cfg(test)]
mod tests;
