//! A call, as a transport hands it over.

use quarterdeck_contracts::telemetry::SpanOrigin;
use serde_json::Value;

/// One tool call of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The provider's id for it, when it gave one.
    pub id: Option<String>,
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// The arguments; absent ones are `null` or `{}`.
    pub args: Value,
    /// What its span has from the client or the turn that made it.
    pub origin: SpanOrigin,
}

impl Call {
    pub fn new(name: impl Into<String>, args: Value) -> Self {
        Self { id: None, name: name.into(), args, origin: SpanOrigin::default() }
    }

    #[must_use]
    pub fn with_origin(mut self, origin: SpanOrigin) -> Self {
        self.origin = origin;
        self
    }

    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The id, when it can be relied on to name this call and no other: long enough, not a placeholder, and not
    /// just the tool's name again.
    pub fn stable_id(&self) -> Option<&str> {
        self.id
            .as_deref()
            .filter(|id| id.chars().count() > 8 && !id.contains("temp") && !id.contains(self.name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_id_that_names_one_call_is_stable() {
        let stable = |id: &str| Call::new("kb_search", Value::Null).with_id(id).stable_id().is_some();
        assert!(stable("call_abc123"));
        assert!(!stable("call_abc"), "too short");
        assert!(!stable("temp-123456789"), "a placeholder");
        assert!(!stable("kb_search-123456"), "made from the name");
        assert_eq!(Call::new("kb_search", Value::Null).stable_id(), None);
    }
}
