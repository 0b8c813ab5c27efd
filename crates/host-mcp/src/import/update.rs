//! A folder after its server has changed: the new pin and the published parts, with the author's own policy and words.

use quarterdeck_contracts::parse_json;
use serde_json::Value;

use super::contract::contract;
use super::guide::Guide;
use super::merge::{Conflicts, merge};
use super::{Import, InvalidImport, check};
use crate::binding::BINDING_FILE;
use crate::published::PublishedTool;
use crate::published_file::{PUBLISHED_FILE, published_to_text};

/// What the hints decide. An update makes them stricter by itself, and looser never.
const POLICY: [&str; 4] = ["category", "sideEffects", "idempotent", "requiresConfirmation"];

/// The files to write, and what an author should look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    pub files: Vec<(&'static str, String)>,
    pub notes: Vec<String>,
}

/// Puts what `import.tool` says now into a folder that was made from `imported`. Without that, as in a folder that was
/// written by hand, only the pin is replaced.
///
/// # Errors
///
/// The tool as it is now cannot be imported, or `schema.json` is not JSON.
pub fn update_folder(
    import: &Import<'_>,
    imported: Option<&PublishedTool>,
    (schema, guide): (&str, &str),
) -> Result<Update, UpdateError> {
    check(import.tool)?;
    let mut update = Update { files: Vec::new(), notes: Vec::new() };
    match imported {
        None => update.notes.push(format!(
            "there is no {PUBLISHED_FILE}, so schema.json and guide.md were left as they are; compare them with the new one"
        )),
        Some(imported) => {
            let before = Import { tool: imported, ..*import };
            update.merge_schema(&before, import, schema)?;
            update.merge_guide(&before, import, guide);
        }
    }
    // The pin last: until it is there, the tool is unavailable rather than half updated.
    update.files.push((PUBLISHED_FILE, published_to_text(import.tool)));
    update.files.push((BINDING_FILE, import.binding().to_text()));
    Ok(update)
}

/// Why a folder cannot be updated.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    #[error(transparent)]
    Import(#[from] InvalidImport),
    #[error("schema.json is not JSON: {0}; correct it first")]
    Schema(#[from] quarterdeck_contracts::JsonError),
}

impl Update {
    fn merge_schema(&mut self, before: &Import<'_>, now: &Import<'_>, text: &str) -> Result<(), UpdateError> {
        let ours = parse_json(text)?;
        let theirs = contract(now)?;
        let base = contract(before)?.schema;
        let mut conflicts = Conflicts::new();
        let mut merged = merge(&base, &theirs.schema, &ours, "", &mut conflicts);
        self.keep_policy(&base, &ours, &theirs.schema, &mut merged);
        for pointer in conflicts.iter().filter(|pointer| !is_policy(pointer)) {
            self.notes.push(format!(
                "schema.json: {pointer} was changed here and at the server; yours was kept, {PUBLISHED_FILE} has theirs"
            ));
        }
        if merged != ours {
            self.files.push(("schema.json", format!("{merged:#}\n")));
        }
        Ok(())
    }

    /// A hint that makes the tool harmless is a claim for the author to judge; one that says it writes is believed.
    fn keep_policy(&mut self, base: &Value, ours: &Value, theirs: &Value, merged: &mut Value) {
        let (Some(merged), Some(ours)) = (merged.as_object_mut(), ours.as_object()) else { return };
        let writes = theirs["sideEffects"] == "writes";
        let changed: Vec<_> = POLICY.into_iter().filter(|field| base[*field] != theirs[*field]).collect();
        if changed.is_empty() {
            return;
        }
        if writes && base["sideEffects"] != "writes" {
            for field in POLICY {
                merged.insert(field.into(), theirs[field].clone());
            }
            self.notes.push(
                "the server no longer says that the tool only reads: it now writes, and needs approval"
                    .into(),
            );
            return;
        }
        for field in &changed {
            if let Some(own) = ours.get(*field) {
                merged.insert((*field).into(), own.clone());
            }
        }
        self.notes.push(format!(
            "the server's hints would change {}; that is yours to decide, and was left as it is",
            changed.join(", ")
        ));
    }

    fn merge_guide(&mut self, before: &Import<'_>, now: &Import<'_>, text: &str) {
        let (base, theirs) = (Guide::new(before.server, before.tool), Guide::new(now.server, now.tool));
        let mut merged = text.to_owned();
        for (what, base, theirs) in [
            ("the section “What the server says”", &base.published, &theirs.published),
            ("the summary", &base.summary, &theirs.summary),
            ("the heading", &base.heading, &theirs.heading),
        ] {
            if base == theirs {
                continue;
            }
            match merged.split_once(&format!("{base}\n")) {
                Some((head, tail)) => merged = format!("{head}{theirs}\n{tail}"),
                None => {
                    self.notes.push(format!("guide.md: {what} is your own by now, and was left as it is"))
                }
            }
        }
        if merged != text {
            self.files.push(("guide.md", merged));
        }
    }
}

fn is_policy(pointer: &str) -> bool {
    POLICY.iter().any(|field| pointer.strip_prefix('/') == Some(field))
}
