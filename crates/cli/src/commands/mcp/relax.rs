//! Writes a published schema as the compiler takes it, where that changes nothing about the arguments that are taken.

use quarterdeck_host_mcp::ToolFolder;
use quarterdeck_schema::{LintIssue, Rule, lint};
use serde_json::{Value, json};

const SCHEMA_FILE: &str = "schema.json";
/// Leaving something out may make something else useless.
const MAX_ROUNDS: usize = 4;

/// Beside these, a list of types can be written as a choice.
const WORDS: [&str; 4] = ["description", "title", "default", "$comment"];

/// The folder without keywords that are never read (unknown ones, formats that are not checked, defaults that are never filled
/// in), and with lists of types as the choice that they are. What arguments are taken is the same. Each is noted.
pub(super) fn relax(mut folder: ToolFolder) -> ToolFolder {
    let Some((_, text)) = folder.files.iter_mut().find(|(name, _)| *name == SCHEMA_FILE) else {
        return folder;
    };
    let Ok(mut definition) = serde_json::from_str::<Value>(text) else { return folder };
    let mut notes = Vec::new();
    for part in ["parameters", "returns"] {
        let Some(schema) = definition.get_mut(part) else { continue };
        for _ in 0..MAX_ROUNDS {
            let changed: Vec<_> = lint(schema).iter().filter_map(|issue| relax_one(schema, issue)).collect();
            if changed.is_empty() {
                break;
            }
            notes.extend(changed.into_iter().map(|change| format!("{part}{change}")));
        }
    }
    if !notes.is_empty() {
        *text = format!("{definition:#}\n");
        folder.notes.extend(notes);
    }
    folder
}

/// Changes the schema at one place, and says how.
fn relax_one(schema: &mut Value, issue: &LintIssue) -> Option<String> {
    let (parent, name) = issue.pointer.rsplit_once('/')?;
    let fields = schema.pointer_mut(parent)?.as_object_mut()?;
    match issue.rule {
        Rule::UnknownKeyword | Rule::UnknownFormat | Rule::IgnoredDefault => {
            fields.shift_remove(&name.replace("~1", "/").replace("~0", "~"))?;
            Some(format!("{}: left out, because it has no effect ({})", issue.pointer, issue.message))
        }
        Rule::UnionTypes if fields.keys().all(|key| key == "type" || WORDS.contains(&key.as_str())) => {
            let types = fields.get("type")?.as_array()?.clone();
            fields.shift_remove("type");
            let choices = types.into_iter().map(|kind| json!({ "type": kind }));
            fields.insert("anyOf".into(), choices.collect());
            Some(format!("{}: written as `anyOf`, which means the same", issue.pointer))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::ToolId;

    use super::*;

    #[test]
    fn what_has_no_effect_is_left_out_lists_of_types_are_choices_and_the_rest_stays() {
        let schema = json!({ "parameters": {
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "ref": { "type": "string", "format": "git-ref", "x-order": 1, "minLength": 1 },
                "revise": { "type": ["boolean", "string"], "description": "Whether." },
                "way": { "anyOf": [{ "type": "object", "properties": { "exact": { "type": "boolean", "default": false } } }] },
            },
        } });
        let folder = ToolFolder {
            id: ToolId::parse("x").unwrap(),
            name: "x".into(),
            files: vec![("schema.json", schema.to_string())],
            notes: Vec::new(),
        };
        let relaxed = relax(folder);
        let left: Value = serde_json::from_str(&relaxed.files[0].1).unwrap();
        let properties = &left["parameters"]["properties"];
        assert_eq!(properties["ref"], json!({ "type": "string", "minLength": 1 }));
        assert_eq!(properties["way"]["anyOf"][0]["properties"]["exact"], json!({ "type": "boolean" }));
        let choice =
            json!({ "description": "Whether.", "anyOf": [{ "type": "boolean" }, { "type": "string" }] });
        assert_eq!(properties["revise"], choice);
        assert_eq!(relaxed.notes.len(), 4, "{:?}", relaxed.notes);
    }
}
