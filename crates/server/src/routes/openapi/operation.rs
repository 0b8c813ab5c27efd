//! One method of one path, described.

use serde_json::{Map, Value, json};

use super::refusals::{self, Form};

/// What the guard may answer before a route sees a request.
const BY_THE_GUARD: [u16; 5] = [400, 401, 403, 429, 503];

/// One method of one path: what it takes, and everything it may answer.
pub(crate) struct Operation {
    fields: Map<String, Value>,
    parameters: Vec<Value>,
    answers: Map<String, Value>,
    refusals: Vec<u16>,
}

impl Operation {
    /// Named for programs, sorted under a tag, told in one line.
    pub(crate) fn new(id: &str, tag: &str, summary: &str) -> Self {
        let fields = [("operationId", json!(id)), ("tags", json!([tag])), ("summary", json!(summary))];
        Self {
            fields: fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            parameters: Vec::new(),
            answers: Map::new(),
            refusals: BY_THE_GUARD.to_vec(),
        }
    }

    /// What one line does not tell.
    pub(crate) fn about(mut self, description: &str) -> Self {
        self.fields.insert("description".into(), description.into());
        self
    }

    /// A field of the operation as OpenAPI knows it.
    pub(crate) fn with(mut self, field: &str, value: Value) -> Self {
        self.fields.insert(field.into(), value);
        self
    }

    /// The id in the path.
    pub(crate) fn takes_id(self, description: &str, example: &str) -> Self {
        let schema = json!({ "type": "string", "minLength": 1 });
        let parameter = json!({ "name": "id", "in": "path", "required": true, "schema": schema });
        // Percent-encoding may hold bytes that are no text.
        self.takes(parameter, description, example).refuses(&[400])
    }

    /// Something optional in the query or a header.
    pub(crate) fn may_take(
        self,
        place: &str,
        name: &str,
        schema: Value,
        description: &str,
        example: &str,
    ) -> Self {
        let parameter = json!({ "name": name, "in": place, "required": false, "schema": schema });
        self.takes(parameter, description, example)
    }

    fn takes(mut self, mut parameter: Value, description: &str, example: &str) -> Self {
        parameter["description"] = description.into();
        parameter["example"] = example.into();
        self.parameters.push(parameter);
        self
    }

    /// A body of a shared schema, with examples by name.
    pub(crate) fn takes_body(self, schema: &str, examples: &[(&str, Value)]) -> Self {
        let examples: Map<String, Value> =
            examples.iter().map(|(name, value)| ((*name).to_owned(), json!({ "value": value }))).collect();
        let content =
            json!({ "application/json": { "schema": reference("schemas", schema), "examples": examples } });
        self.with("requestBody", json!({ "required": true, "content": content })).refuses(&[400, 408, 413])
    }

    /// An answer in JSON.
    pub(crate) fn gives_json(
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
        self.gives(status, description, json!({ "application/json": media }))
    }

    /// An answer in any form. An empty one has no content.
    pub(crate) fn gives(mut self, status: u16, description: &str, content: Value) -> Self {
        let headers =
            ["X-Request-Id", "Set-Cookie"].map(|name| (name.to_owned(), reference("headers", name)));
        let mut answer =
            json!({ "description": description, "headers": Map::from_iter(headers), "content": content });
        if content.is_null()
            && let Some(answer) = answer.as_object_mut()
        {
            answer.remove("content");
        }
        self.answers.insert(status.to_string(), answer);
        self
    }

    /// Refusals in the common form, beside those that every path has.
    pub(crate) fn refuses(mut self, statuses: &[u16]) -> Self {
        self.refusals.extend_from_slice(statuses);
        self
    }

    /// The operation as OpenAPI writes it. Under `/v1` refusals have the OpenAI API's form.
    pub(crate) fn written(mut self, path: &str) -> Value {
        let form = Form::of(path);
        self.refusals.sort_unstable();
        self.refusals.dedup();
        for status in self.refusals {
            let name = refusals::name(status, form);
            self.answers.entry(status.to_string()).or_insert_with(|| reference("responses", &name));
        }
        if !self.parameters.is_empty() {
            self.fields.insert("parameters".into(), self.parameters.into());
        }
        self.fields.insert("responses".into(), self.answers.into());
        self.fields.into()
    }
}

/// Server-sent events. OpenAPI 3.1 has no word of its own for them, so the schema is that of one event, as 3.2's
/// `itemSchema` is; a whole stream stands beside it for people.
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

/// A reference to something shared.
pub(crate) fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

/// Headers that answers have.
pub(super) fn headers() -> Value {
    json!({
        "X-Request-Id": {
            "description": "The request's number in the server's log.", "schema": { "type": "integer", "minimum": 1 },
        },
        "Set-Cookie": {
            "description": "Who the client is from now on. Only on first contact.", "schema": { "type": "string" },
        },
        "Retry-After": {
            "description": "How many seconds to wait.", "schema": { "type": "integer", "minimum": 1 },
        },
        "Allow": { "description": "The methods that the path takes.", "schema": { "type": "string" } },
        "WWW-Authenticate": { "description": "`Bearer`.", "schema": { "type": "string" } },
    })
}
