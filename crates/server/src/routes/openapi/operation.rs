//! The description of one method of one path.

use serde_json::{Map, Value, json};

use super::errors::{self, ErrorFormat};

/// The guard's own responses on every path.
const GUARD_STATUSES: [u16; 5] = [400, 401, 403, 429, 503];

/// Parameters, body and responses of one method.
pub(crate) struct Operation {
    fields: Map<String, Value>,
    parameters: Vec<Value>,
    responses: Map<String, Value>,
    error_statuses: Vec<u16>,
}

impl Operation {
    pub(crate) fn new(id: &str, tag: &str, summary: &str) -> Self {
        let fields = [("operationId", json!(id)), ("tags", json!([tag])), ("summary", json!(summary))];
        Self {
            fields: fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            parameters: Vec::new(),
            responses: Map::new(),
            error_statuses: GUARD_STATUSES.to_vec(),
        }
    }

    pub(crate) fn description(mut self, description: &str) -> Self {
        self.fields.insert("description".into(), description.into());
        self
    }

    /// Any other field of an OpenAPI operation.
    pub(crate) fn with(mut self, field: &str, value: Value) -> Self {
        self.fields.insert(field.into(), value);
        self
    }

    pub(crate) fn path_id(self, description: &str, example: &str) -> Self {
        let schema = json!({ "type": "string", "minLength": 1 });
        let parameter = json!({ "name": "id", "in": "path", "required": true, "schema": schema });
        // Percent-encoding may decode to invalid UTF-8.
        self.parameter(parameter, description, example).errors(&[400])
    }

    /// An optional parameter in the query or a header.
    pub(crate) fn optional(
        self,
        place: &str,
        name: &str,
        schema: Value,
        description: &str,
        example: &str,
    ) -> Self {
        let parameter = json!({ "name": name, "in": place, "required": false, "schema": schema });
        self.parameter(parameter, description, example)
    }

    fn parameter(mut self, mut parameter: Value, description: &str, example: &str) -> Self {
        parameter["description"] = description.into();
        parameter["example"] = example.into();
        self.parameters.push(parameter);
        self
    }

    /// A body with a shared schema and named examples.
    pub(crate) fn body(self, schema: &str, examples: &[(&str, Value)]) -> Self {
        let examples: Map<String, Value> =
            examples.iter().map(|(name, value)| ((*name).to_owned(), json!({ "value": value }))).collect();
        let content =
            json!({ "application/json": { "schema": reference("schemas", schema), "examples": examples } });
        self.with("requestBody", json!({ "required": true, "content": content })).errors(&[400, 408, 413])
    }

    pub(crate) fn json_response(
        self,
        status: u16,
        description: &str,
        schema: Value,
        example: Option<Value>,
    ) -> Self {
        let mut media = json!({ "schema": schema });
        if let Some(example) = example {
            media["example"] = example;
        }
        self.response(status, description, json!({ "application/json": media }))
    }

    /// A response of any type; `null` means no content.
    pub(crate) fn response(mut self, status: u16, description: &str, content: Value) -> Self {
        let headers =
            ["X-Request-Id", "Set-Cookie"].map(|name| (name.to_owned(), reference("headers", name)));
        let mut response =
            json!({ "description": description, "headers": Map::from_iter(headers), "content": content });
        if content.is_null()
            && let Some(response) = response.as_object_mut()
        {
            response.remove("content");
        }
        self.responses.insert(status.to_string(), response);
        self
    }

    /// Statuses in the common error format, besides the guard's.
    pub(crate) fn errors(mut self, statuses: &[u16]) -> Self {
        self.error_statuses.extend_from_slice(statuses);
        self
    }

    /// The OpenAPI operation. Under `/v1` errors have the OpenAI API's format.
    pub(crate) fn into_json(mut self, path: &str) -> Value {
        let format = ErrorFormat::of(path);
        self.error_statuses.sort_unstable();
        self.error_statuses.dedup();
        for status in self.error_statuses {
            let name = errors::response_name(status, format);
            self.responses.entry(status.to_string()).or_insert_with(|| reference("responses", &name));
        }
        if !self.parameters.is_empty() {
            self.fields.insert("parameters".into(), self.parameters.into());
        }
        self.fields.insert("responses".into(), self.responses.into());
        self.fields.into()
    }
}

/// Server-sent events. OpenAPI 3.1 cannot describe them, so the schema is that of one event, like 3.2's `itemSchema`; an
/// example of a whole stream is beside it.
pub(crate) fn event_stream(data: &str, stream: &str) -> Value {
    let first = stream.lines().next().and_then(|line| line.strip_prefix("data: "));
    let json = json!({
        "type": "string", "contentMediaType": "application/json", "contentSchema": reference("schemas", data),
    });
    json!({ "text/event-stream": {
        "schema": {
            "type": "object", "required": ["data"], "description": "One event. Comment lines keep idle connections open.",
            "properties": { "event": { "const": "message" }, "data": { "anyOf": [{ "const": "[DONE]" }, json] } },
        },
        "example": { "event": "message", "data": first },
        "x-stream-example": stream,
    } })
}

/// A reference to a shared component.
pub(crate) fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

/// Response headers.
pub(super) fn headers() -> Value {
    json!({
        "X-Request-Id": {
            "description": "The number of the request in the server's log.", "schema": { "type": "integer", "minimum": 1 },
        },
        "Set-Cookie": {
            "description": "The client's cookie. Only on the first request.", "schema": { "type": "string" },
        },
        "Retry-After": {
            "description": "Seconds to wait.", "schema": { "type": "integer", "minimum": 1 },
        },
        "Allow": { "description": "The allowed methods.", "schema": { "type": "string" } },
        "WWW-Authenticate": { "description": "`Bearer`.", "schema": { "type": "string" } },
    })
}
