//! Property names that a provider refuses, and the names that stand for them in its declarations.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{CompiledTool, ErrorType, Provider, ToolError};

/// Other names for the properties of one tool, for one provider. Arguments are mapped back before anything judges them.
///
/// No name that stands for another occurs in the tool's schema, so mapping arguments there and back gives the same
/// arguments, whatever is in them but such a name itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Renames {
    declared: BTreeMap<String, String>,
    original: BTreeMap<String, String>,
}

impl Renames {
    /// From pairs of original and declared names.
    pub fn new(declared: BTreeMap<String, String>) -> Self {
        let original = declared.iter().map(|(original, declared)| (declared.clone(), original.clone()));
        Self { original: original.collect(), declared }
    }

    /// Those of a tool for a provider, as its losses tell them.
    pub fn of(tool: &CompiledTool, provider: Provider) -> Self {
        let losses = tool.lossy.get(&provider).into_iter().flatten();
        Self::new(losses.flat_map(|loss| loss.renamed.clone()).collect())
    }

    /// Whether every name is declared as it is.
    pub fn is_empty(&self) -> bool {
        self.declared.is_empty()
    }

    /// Arguments, or a part of them, in the names that the provider knows.
    pub fn to_declared(&self, value: &Value) -> Value {
        rename(value, &self.declared)
    }

    /// Arguments of a provider in their own names. One that uses an original name all the same, because it has read it in
    /// a guide, is understood.
    pub fn to_original(&self, value: &Value) -> Value {
        rename(value, &self.original)
    }

    /// A place in the parameters or the arguments, with its original names.
    pub fn pointer_to_original(&self, pointer: &str) -> String {
        rename_pointer(pointer, &self.original)
    }

    /// An error about arguments in the names that the provider knows. Other errors are about something else.
    pub fn error_to_declared(&self, error: &ToolError) -> ToolError {
        if error.kind != ErrorType::Validation || self.is_empty() {
            return error.clone();
        }
        let mut details = error.details.clone();
        for detail in details.iter_mut().filter_map(Value::as_array_mut).flatten() {
            if let Some(Value::String(path)) = detail.get_mut("path") {
                *path = rename_pointer(path, &self.declared);
            }
            if let Some(Value::String(message)) = detail.get_mut("message") {
                *message = self.text_to_declared(message);
            }
        }
        ToolError {
            message: self.text_to_declared(&error.message),
            suggestion: error.suggestion.as_deref().map(|text| self.text_to_declared(text)),
            details,
            ..error.clone()
        }
    }

    /// A sentence in which names stand as words of their own.
    fn text_to_declared(&self, text: &str) -> String {
        let mut renamed = String::with_capacity(text.len());
        let mut rest = text;
        let mut before = None;
        while let Some(letter) = rest.chars().next() {
            let is_start = !before.is_some_and(is_part_of_a_name);
            let found = self.declared.iter().filter(|(original, _)| is_start && begins_with(rest, original));
            // Of two names the longer: one may be the beginning of the other.
            match found.max_by_key(|(original, _)| original.len()) {
                Some((original, declared)) => {
                    renamed.push_str(declared);
                    before = original.chars().next_back();
                    rest = &rest[original.len()..];
                }
                None => {
                    renamed.push(letter);
                    before = Some(letter);
                    rest = &rest[letter.len_utf8()..];
                }
            }
        }
        renamed
    }
}

fn begins_with(text: &str, name: &str) -> bool {
    let after = text.strip_prefix(name).filter(|_| !name.is_empty());
    after.is_some_and(|after| !after.chars().next().is_some_and(is_part_of_a_name))
}

fn is_part_of_a_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn rename(value: &Value, names: &BTreeMap<String, String>) -> Value {
    match value {
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                // A name that is taken stays as it is, so that no member is lost.
                let name = names.get(name).filter(|other| !members.contains_key(*other)).unwrap_or(name);
                (name.clone(), rename(value, names))
            };
            Value::Object(members.iter().map(member).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(|item| rename(item, names)).collect(),
        other => other.clone(),
    }
}

fn rename_pointer(pointer: &str, names: &BTreeMap<String, String>) -> String {
    let segment = |(index, segment): (usize, &str)| {
        let name = segment.replace("~1", "/").replace("~0", "~");
        match names.get(&name).filter(|_| index > 0) {
            Some(other) => other.replace('~', "~0").replace('/', "~1"),
            None => segment.to_owned(),
        }
    };
    // Before the first slash there is no name.
    pointer.split('/').enumerate().map(segment).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn renames() -> Renames {
        let pairs =
            [("Content-Type", "Content_Type__1"), ("цена", "name__1"), ("a/b", "a_b__1"), ("", "name__2")];
        Renames::new(pairs.map(|(original, declared)| (original.to_owned(), declared.to_owned())).into())
    }

    #[test]
    fn names_are_mapped_at_every_depth_and_back() {
        let original =
            json!({ "цена": 1, "items": [{ "Content-Type": "x", "other": { "a/b": null } }], "": 0 });
        let declared = json!({
            "name__1": 1, "items": [{ "Content_Type__1": "x", "other": { "a_b__1": null } }], "name__2": 0,
        });
        assert_eq!(renames().to_declared(&original), declared);
        assert_eq!(renames().to_original(&declared), original);
    }

    #[test]
    fn an_original_name_from_a_guide_is_understood_and_nothing_is_lost_when_both_come() {
        let guide = json!({ "Content-Type": "x" });
        assert_eq!(renames().to_original(&guide), guide);
        let both = json!({ "Content-Type": "x", "Content_Type__1": "y" });
        assert_eq!(renames().to_original(&both), both);
    }

    #[test]
    fn errors_are_told_in_the_names_that_the_model_knows() {
        let error = ToolError {
            details: Some(json!([
                { "path": "/items/0/Content-Type", "keyword": "type", "message": "Content-Type must be string" },
                { "path": "/a~1b", "keyword": "minimum", "message": "a/b must be ≥ 1" },
            ])),
            ..ToolError::new(ErrorType::Validation, "Content-Type must be string; цена must be ≥ 0, цены not")
                .with_suggestion("Leave \"цена\" out.")
        };
        let told = renames().error_to_declared(&error);
        assert_eq!(told.message, "Content_Type__1 must be string; name__1 must be ≥ 0, цены not");
        assert_eq!(told.suggestion.as_deref(), Some("Leave \"name__1\" out."));
        assert_eq!(
            told.details,
            Some(json!([
                { "path": "/items/0/Content_Type__1", "keyword": "type", "message": "Content_Type__1 must be string" },
                { "path": "/a_b__1", "keyword": "minimum", "message": "a_b__1 must be ≥ 1" },
            ]))
        );
        let other = ToolError::new(ErrorType::NotFound, "цена");
        assert_eq!(renames().error_to_declared(&other), other);
    }
}
