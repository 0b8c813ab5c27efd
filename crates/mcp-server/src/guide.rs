//! A tool's guide as clients see it: its name, its title, and the arguments that a user can fill in.

use quarterdeck_runtime::LoadedTool;
use serde_json::Value;

/// What a prompt is made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guide<'a> {
    pub(crate) name: &'a str,
    pub(crate) summary: &'a str,
    /// Markdown.
    pub(crate) text: &'a str,
    pub(crate) parameters: &'a Value,
    /// JSON pointers of arguments that are kept out of records.
    pub(crate) sensitive: &'a [String],
}

/// A parameter that a user can give as text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GuideArgument<'a> {
    pub(crate) name: &'a str,
    schema: &'a Value,
}

impl<'a> From<&'a LoadedTool> for Guide<'a> {
    fn from(tool: &'a LoadedTool) -> Self {
        Self {
            name: tool.metadata().tool_id.as_str(),
            summary: tool.summary(),
            text: tool.documentation(),
            parameters: &tool.compiled().json_schema,
            sensitive: &tool.metadata().sensitive,
        }
    }
}

impl<'a> Guide<'a> {
    /// The first heading.
    pub(crate) fn title(&self) -> Option<&'a str> {
        let heading = self.text.lines().find_map(|line| line.strip_prefix("# "))?.trim();
        (!heading.is_empty()).then_some(heading)
    }

    /// The parameters with a plain value: text, a number, yes or no, or one of a list. What is sensitive is not asked for,
    /// because clients keep their prompts.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = GuideArgument<'a>> {
        let sensitive = self.sensitive;
        let properties = self.parameters.get("properties").and_then(Value::as_object);
        let arguments = properties.into_iter().flatten();
        let arguments = arguments.map(|(name, schema)| GuideArgument { name, schema });
        arguments.filter(move |argument| argument.is_plain() && !is_sensitive(sensitive, argument.name))
    }

    pub(crate) fn find_argument(&self, name: &str) -> Option<GuideArgument<'a>> {
        self.arguments().find(|argument| argument.name == name)
    }
}

impl<'a> GuideArgument<'a> {
    pub(crate) fn description(&self) -> Option<&'a str> {
        self.schema.get("description").and_then(Value::as_str)
    }

    /// The values that the schema names: all of them, or examples.
    pub(crate) fn known_values(&self) -> Vec<String> {
        let list =
            |key: &str| self.schema.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut known: Vec<String> = match self.schema.get("const") {
            Some(only) => vec![shown(only)],
            None => list("enum").iter().chain(list("examples")).map(shown).collect(),
        };
        if self.types().contains(&"boolean") && known.is_empty() {
            known = vec!["true".to_owned(), "false".to_owned()];
        }
        let mut seen = std::collections::HashSet::new();
        known.retain(|value| seen.insert(value.clone()));
        known
    }

    /// A text as the value that the schema asks for, if it is one; otherwise as the text that it is.
    pub(crate) fn value_of(&self, text: &str) -> Value {
        let parsed = serde_json::from_str::<Value>(text).ok();
        let is_wanted = |value: &Value| {
            self.types().iter().any(|wanted| match *wanted {
                "boolean" => value.is_boolean(),
                "integer" => value.is_i64() || value.is_u64(),
                "number" => value.is_number(),
                _ => false,
            })
        };
        parsed.filter(is_wanted).unwrap_or_else(|| text.into())
    }

    fn is_plain(&self) -> bool {
        let types = self.types();
        let is_plain = |name: &&str| ["string", "number", "integer", "boolean"].contains(name);
        types.iter().any(is_plain) || (types.is_empty() && self.schema.get("enum").is_some())
    }

    fn types(&self) -> Vec<&'a str> {
        match self.schema.get("type") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    }
}

fn is_sensitive(sensitive: &[String], name: &str) -> bool {
    let escaped = name.replace('~', "~0").replace('/', "~1");
    sensitive.iter().any(|pointer| {
        pointer.strip_prefix('/').is_some_and(|path| path.split('/').next() == Some(escaped.as_str()))
    })
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_the_parameters_that_a_user_can_type() {
        let parameters = json!({ "type": "object", "properties": {
            "name": { "type": "string", "description": "Who." },
            "nights": { "type": "integer", "examples": [1, 2] },
            "size": { "enum": ["small", "large", "small"] },
            "quiet": { "type": ["boolean", "null"] },
            "guests": { "type": "array", "items": { "type": "string" } },
            "address": { "type": "object" },
            "card/number": { "type": "string" },
            "other": { "$ref": "#/$defs/other" },
        } });
        let sensitive = ["/card~1number".to_owned()];
        let text = "# Book a room\n\nBooks.";
        let guide = Guide { name: "book", summary: "", text, parameters: &parameters, sensitive: &sensitive };
        assert_eq!(guide.title(), Some("Book a room"));
        let names: Vec<_> = guide.arguments().map(|argument| argument.name).collect();
        assert_eq!(names, ["name", "nights", "size", "quiet"]);
        let values = |name| guide.find_argument(name).unwrap().known_values();
        assert_eq!(values("name"), Vec::<String>::new());
        assert_eq!(values("nights"), ["1", "2"]);
        assert_eq!(values("size"), ["small", "large"]);
        assert_eq!(values("quiet"), ["true", "false"]);
        let value_of = |name, text| guide.find_argument(name).unwrap().value_of(text);
        assert_eq!(value_of("nights", "2"), json!(2));
        assert_eq!(value_of("nights", "two"), json!("two"));
        assert_eq!(value_of("quiet", "true"), json!(true));
        assert_eq!(value_of("name", "2"), json!("2"));
    }
}
