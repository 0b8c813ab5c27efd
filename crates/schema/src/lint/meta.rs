//! What the meta-schema of draft 2020-12 objects to, in plain words.

use std::collections::BTreeMap;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use super::issue::{LintIssue, Rule};
use crate::excerpt::excerpt;

/// All objections, one per place.
pub(super) fn objections(schema: &Value) -> Vec<LintIssue> {
    let mut places: BTreeMap<String, LintIssue> = BTreeMap::new();
    for error in jsonschema::draft202012::meta::validator().iter_errors(schema) {
        let pointer = error.instance_path().to_string();
        places.entry(pointer).or_insert_with_key(|pointer| issue(pointer, &error));
    }
    places.into_values().collect()
}

fn issue(pointer: &str, error: &ValidationError<'_>) -> LintIssue {
    let keyword = pointer.rsplit('/').next().unwrap_or_default().to_owned();
    let value = excerpt(error.instance());
    let (message, help) = match error.kind() {
        _ if keyword == "type" => (
            format!("{value} is not a type"),
            "use string, number, integer, boolean, array, object or null".to_owned(),
        ),
        _ if keyword == "items" && error.instance().is_array() => (
            "a list of schemas in `items` is the way of an older draft".to_owned(),
            "rename this keyword to `prefixItems`".to_owned(),
        ),
        _ if keyword == "required" && error.instance().is_boolean() => (
            "`required` stands on the object and lists the names of its required properties".to_owned(),
            "move the property's name into the `required` list of the object around it".to_owned(),
        ),
        ValidationErrorKind::Type { .. } if error.schema_path().as_str().ends_with("/type") => (
            format!("`{keyword}` cannot be {value}"),
            format!("see draft 2020-12 for what `{keyword}` takes"),
        ),
        ValidationErrorKind::UniqueItems => {
            (format!("`{keyword}` lists something twice"), "remove the repetition".to_owned())
        }
        ValidationErrorKind::MinItems { .. } => {
            (format!("`{keyword}` is empty"), format!("add an entry or remove `{keyword}`"))
        }
        _ => (
            format!("`{keyword}` cannot be {value}"),
            format!("see draft 2020-12 for what `{keyword}` takes"),
        ),
    };
    LintIssue { pointer: pointer.to_owned(), rule: Rule::MetaSchema, message, help }
}
