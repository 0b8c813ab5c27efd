//! The description of one method of one path.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::errors::{self, ErrorFormat};
use super::schemas::{SchemaOf, Schemas, remove_null, schema_of};

/// The guard's own responses on every path.
const GUARD_STATUSES: [u16; 5] = [400, 401, 403, 429, 503];

/// Parameters, body and responses of one method.
pub(crate) struct Operation {
    fields: Map<String, Value>,
    parameters: Vec<Value>,
    query: Option<SchemaOf>,
    body: Option<(SchemaOf, Map<String, Value>)>,
    responses: Vec<(u16, &'static str, Vec<Media>)>,
    error_statuses: Vec<u16>,
}

/// One media type of a response.
pub(crate) struct Media {
    kind: &'static str,
    schema: SchemaOf,
    example: Option<Value>,
    stream: Option<&'static str>,
}

impl Operation {
    pub(crate) fn new(id: &str, tag: &str, summary: &str) -> Self {
        let fields = [("operationId", json!(id)), ("tags", json!([tag])), ("summary", json!(summary))];
        Self {
            fields: fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            parameters: Vec::new(),
            query: None,
            body: None,
            responses: Vec::new(),
            error_statuses: GUARD_STATUSES.to_vec(),
        }
    }

    pub(crate) fn description(self, description: &str) -> Self {
        self.with("description", description.into())
    }

    /// Any other field of an OpenAPI operation.
    pub(crate) fn with(mut self, field: &str, value: Value) -> Self {
        self.fields.insert(field.into(), value);
        self
    }

    pub(crate) fn path_id(mut self, description: &str, example: &str) -> Self {
        let schema = json!({ "type": "string", "minLength": 1 });
        self.parameters.push(json!({
            "name": "id", "in": "path", "required": true, "schema": schema, "description": description,
            "example": example,
        }));
        // Percent-encoding may decode to invalid UTF-8.
        self.errors(&[400])
    }

    pub(crate) fn optional_header(
        mut self,
        name: &str,
        schema: Value,
        description: &str,
        example: &str,
    ) -> Self {
        self.parameters.push(json!({
            "name": name, "in": "header", "required": false, "schema": schema, "description": description,
            "example": example,
        }));
        self
    }

    /// Every field of the type is an optional parameter; its schema's `example` becomes the parameter's.
    pub(crate) fn query<T: JsonSchema>(mut self) -> Self {
        self.query = Some(schema_of::<T>());
        self.errors(&[400])
    }

    pub(crate) fn body<T: JsonSchema>(mut self, examples: &[(&str, Value)]) -> Self {
        let examples = examples.iter().map(|(name, value)| ((*name).to_owned(), json!({ "value": value })));
        self.body = Some((schema_of::<T>(), examples.collect()));
        self.errors(&[400, 408, 413])
    }

    pub(crate) fn json_response<T: JsonSchema>(
        self,
        status: u16,
        description: &'static str,
        example: Option<Value>,
    ) -> Self {
        self.response(status, description, vec![Media { example, ..Media::new::<T>("application/json") }])
    }

    /// A response in any of these media types, or without content.
    pub(crate) fn response(mut self, status: u16, description: &'static str, content: Vec<Media>) -> Self {
        self.responses.push((status, description, content));
        self
    }

    /// Statuses in the common error format, besides the guard's.
    pub(crate) fn errors(mut self, statuses: &[u16]) -> Self {
        self.error_statuses.extend_from_slice(statuses);
        self
    }

    /// The OpenAPI operation. Under `/v1` errors have the OpenAI API's format.
    pub(crate) fn into_json(mut self, path: &str, schemas: &mut Schemas) -> Value {
        if let Some(query) = self.query {
            self.parameters.extend(query_parameters(schemas.request(query)));
        }
        if !self.parameters.is_empty() {
            self.fields.insert("parameters".into(), self.parameters.into());
        }
        if let Some((schema, examples)) = self.body {
            let media = json!({ "schema": schemas.request(schema), "examples": examples });
            let body = json!({ "required": true, "content": { "application/json": media } });
            self.fields.insert("requestBody".into(), body);
        }
        let mut responses = Map::new();
        for (status, description, content) in self.responses {
            let response = response(description, content, schemas);
            responses.insert(status.to_string(), response);
        }
        let format = ErrorFormat::of(path);
        self.error_statuses.sort_unstable();
        self.error_statuses.dedup();
        for status in self.error_statuses {
            let name = errors::response_name(status, format);
            responses.entry(status.to_string()).or_insert_with(|| reference("responses", &name));
        }
        self.fields.insert("responses".into(), responses.into());
        self.fields.into()
    }
}

impl Media {
    pub(crate) fn new<T: JsonSchema>(kind: &'static str) -> Self {
        Self { kind, schema: schema_of::<T>(), example: None, stream: None }
    }

    pub(crate) fn html() -> Self {
        Self::new::<String>("text/html")
    }

    pub(crate) fn script() -> Self {
        Self::new::<String>("text/javascript")
    }

    /// Bytes, which have no schema.
    pub(crate) fn binary(kind: &'static str) -> Self {
        Self::new::<Bytes>(kind)
    }

    /// Server-sent events whose data is JSON of the type.
    pub(crate) fn events<T: JsonSchema>(stream: &'static str) -> Self {
        Self { stream: Some(stream), ..Self::new::<T>("text/event-stream") }
    }

    pub(crate) fn example(mut self, example: Value) -> Self {
        self.example = Some(example);
        self
    }

    fn into_json(self, schemas: &mut Schemas) -> Value {
        let schema = schemas.response(self.schema);
        let mut media = match self.stream {
            Some(stream) => event_stream(&schema, stream),
            None => json!({ "schema": schema }),
        };
        if let Some(example) = self.example {
            media["example"] = example;
        }
        media
    }
}

/// OpenAPI 3.1 describes bytes by their media type alone.
struct Bytes;

impl JsonSchema for Bytes {
    fn schema_name() -> Cow<'static, str> {
        "Bytes".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Schema::default()
    }
}

fn response(description: &str, content: Vec<Media>, schemas: &mut Schemas) -> Value {
    let headers = ["X-Request-Id", "Set-Cookie"].map(|name| (name.to_owned(), reference("headers", name)));
    let mut response = json!({ "description": description, "headers": Map::from_iter(headers) });
    if !content.is_empty() {
        let content = content.into_iter().map(|media| (media.kind.to_owned(), media.into_json(schemas)));
        response["content"] = content.collect::<Map<_, _>>().into();
    }
    response
}

fn query_parameters(mut schema: Value) -> Vec<Value> {
    let Some(properties) = schema["properties"].as_object_mut() else { return Vec::new() };
    let parameter = |(name, schema): (&String, &mut Value)| {
        remove_null(schema);
        let mut parameter = json!({ "name": name, "in": "query", "required": false });
        for field in ["description", "example"] {
            if let Some(value) = schema.as_object_mut().and_then(|schema| schema.remove(field)) {
                parameter[field] = value;
            }
        }
        parameter["schema"] = schema.take();
        parameter
    };
    properties.iter_mut().map(parameter).collect()
}

/// OpenAPI 3.1 cannot describe server-sent events, so the schema is that of one event, like 3.2's `itemSchema`; an
/// example of a whole stream is beside it.
fn event_stream(data: &Value, stream: &str) -> Value {
    let first = stream.lines().next().and_then(|line| line.strip_prefix("data: "));
    let json = json!({ "type": "string", "contentMediaType": "application/json", "contentSchema": data });
    json!({
        "schema": {
            "type": "object", "required": ["data"],
            "description": "One event. Comment lines keep idle connections open.",
            "properties": { "event": { "const": "message" }, "data": { "anyOf": [{ "const": "[DONE]" }, json] } },
        },
        "example": { "event": "message", "data": first },
        "x-stream-example": stream,
    })
}

/// A reference to a shared component.
pub(crate) fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

/// Response headers.
pub(super) fn headers() -> Value {
    json!({
        "X-Request-Id": {
            "description": "The number of the request in the server's log.",
            "schema": { "type": "integer", "minimum": 1 },
        },
        "Set-Cookie": {
            "description": "The client's cookie. Only on the first request.", "schema": { "type": "string" },
        },
        "Retry-After": { "description": "Seconds to wait.", "schema": { "type": "integer", "minimum": 1 } },
        "Allow": { "description": "The allowed methods.", "schema": { "type": "string" } },
        "WWW-Authenticate": { "description": "`Bearer`.", "schema": { "type": "string" } },
    })
}
