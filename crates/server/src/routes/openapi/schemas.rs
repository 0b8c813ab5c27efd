//! Derives the document's schemas from the HTTP shapes.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};

/// Adds a type to the components and returns a reference, or the schema itself if the type is inline.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

pub(crate) fn schema_of<T: JsonSchema>() -> SchemaOf {
    |generator| generator.subschema_for::<T>()
}

/// Collects the schemas of request and response types; what is optional differs between reading and writing.
pub(crate) struct Schemas {
    requests: SchemaGenerator,
    responses: SchemaGenerator,
}

impl Schemas {
    pub(crate) fn new() -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.definitions_path = "/components/schemas".into();
        Self {
            requests: settings.clone().for_deserialize().into_generator(),
            responses: settings.for_serialize().into_generator(),
        }
    }

    pub(crate) fn request(&mut self, schema: SchemaOf) -> Value {
        tidied(schema(&mut self.requests), &mut |_| {})
    }

    pub(crate) fn response(&mut self, schema: SchemaOf) -> Value {
        tidied(schema(&mut self.responses), &mut remove_optional_nulls)
    }

    pub(crate) fn components(mut self) -> Map<String, Value> {
        let mut all = Map::new();
        for (name, mut schema) in self.requests.take_definitions(false) {
            tidy(&mut schema, &mut |_| {});
            all.insert(name, schema);
        }
        for (name, mut schema) in self.responses.take_definitions(false) {
            tidy(&mut schema, &mut remove_optional_nulls);
            all.insert(name, schema);
        }
        all.sort_keys();
        all
    }
}

/// For unions of which exactly one member fits.
pub(crate) fn one_of(schema: &mut Schema) {
    if let Some(members) = schema.remove("anyOf") {
        schema.insert("oneOf".into(), members);
    }
}

/// Names the members of a union after their `type`.
pub(crate) fn title_by_type(schema: &mut Schema) {
    let members = schema.get_mut("oneOf").and_then(Value::as_array_mut);
    for member in members.into_iter().flatten() {
        let kind = member["properties"]["type"]["const"].clone();
        if kind.is_string() {
            member["title"] = kind;
        }
    }
}

fn tidied(schema: Schema, change: &mut dyn FnMut(&mut Map<String, Value>)) -> Value {
    let mut schema = schema.to_value();
    tidy(&mut schema, change);
    schema
}

/// Rust's number formats mean nothing to clients, and an empty schema reads better than `true`.
fn tidy(schema: &mut Value, change: &mut dyn FnMut(&mut Map<String, Value>)) {
    match schema {
        Value::Object(fields) => {
            let is_number = |format: &str| format.contains("int") || matches!(format, "double" | "float");
            if fields.get("format").and_then(Value::as_str).is_some_and(is_number) {
                fields.remove("format");
            }
            change(fields);
            for (name, field) in fields.iter_mut() {
                match name.as_str() {
                    "const" | "enum" | "example" | "examples" | "default" => {}
                    "properties" => {
                        for property in field.as_object_mut().into_iter().flat_map(Map::values_mut) {
                            if *property == Value::Bool(true) {
                                *property = Value::Object(Map::new());
                            }
                            tidy(property, change);
                        }
                    }
                    _ => tidy(field, change),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| tidy(item, change)),
        _ => {}
    }
}

/// A response leaves out an optional field instead of sending null.
fn remove_optional_nulls(schema: &mut Map<String, Value>) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required =
        |name: &str| required.as_array().is_some_and(|names| names.iter().any(|one| one == name));
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (_, property) in properties.iter_mut().filter(|(name, _)| !is_required(name)) {
        remove_null(property);
    }
}

/// The schema of an `Option` without its null, which is the last type. A field that may be absent and null lists it
/// first.
pub(super) fn remove_null(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.pop_if(|kind| kind == "null");
        if let [only] = &types[..] {
            fields["type"] = only.clone();
        }
    }
    if let Some(Value::Array(members)) = fields.get_mut("anyOf") {
        members.retain(|member| member["type"] != "null");
        if let [Value::Object(only)] = &members[..] {
            let only = only.clone();
            fields.remove("anyOf");
            fields.extend(only);
        }
    }
    if let Some(Value::Array(values)) = fields.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}
