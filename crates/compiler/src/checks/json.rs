//! `schema.json` is there and is JSON.

use crate::rules;
use crate::source::JsonSource;
use crate::tree::Folder;
use crate::{Diagnostic, Place};

pub(crate) fn read(folder: &Folder, problems: &mut Vec<Diagnostic>) -> Option<JsonSource> {
    let Some(file) = folder.file("schema.json") else {
        if !folder.has("schema.json") {
            problems.push(
                Diagnostic::new(
                    &rules::MISSING_FILE,
                    "`schema.json` is missing",
                    "write one (see `tools/README.md`), or rename the folder to begin with `_` if it is not a tool",
                )
                .at(Place::Path(folder.name.clone())),
            );
        }
        return None;
    };
    let source = match JsonSource::parse(file.clone()) {
        Ok(source) => source,
        Err(fault) => {
            let (message, help) = if fault.is_depth {
                (
                    "`schema.json` nests too deeply".to_owned(),
                    "at most 127 levels are read; flatten the schema",
                )
            } else {
                (
                    format!("`schema.json` is not JSON: {}", fault.reason),
                    "look just before this place for a missing comma, quote or bracket",
                )
            };
            problems.push(Diagnostic::new(&rules::INVALID_JSON, message, help).at(fault.place));
            return None;
        }
    };
    for (key, span) in &source.duplicate_keys {
        problems.push(
            Diagnostic::new(
                &rules::DUPLICATE_KEY,
                format!("the key {key:?} stands twice"),
                "remove one of the two",
            )
            .at(source.place_of_span(span.clone())),
        );
    }
    if !source.value.is_object() {
        problems.push(
            Diagnostic::new(
                &rules::INVALID_JSON,
                "`schema.json` is not an object",
                "write `{ \"toolId\": …, … }`",
            )
            .at(source.place("")),
        );
        return None;
    }
    Some(source)
}
