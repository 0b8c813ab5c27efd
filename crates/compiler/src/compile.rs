//! The main path: every folder is checked, all problems are gathered, and what is sound is linked.

use std::collections::BTreeMap;

use quarterdeck_contracts::{
    Artifact, BUILT_IN_CAPABILITIES, CapabilitySpec, Definition, HandlerRef, Loss, Provider,
};
use serde_json::Value;

use crate::checks::{self, Fields, Subject};
use crate::documentation::{self, Documentation};
use crate::inspectors::Inspectors;
use crate::link::link;
use crate::source::JsonSource;
use crate::tree::{Folder, Tree};
use crate::{Diagnostic, Place, Severity};

/// What a compilation is told from outside.
pub struct Options {
    /// The kinds of handlers, with what looks at them.
    pub inspectors: Inspectors,
    /// The capabilities that a tool can declare.
    pub capabilities: Vec<CapabilitySpec>,
    /// Whether a loss that was not acknowledged is an error.
    pub deny_lossy: bool,
    /// What the artifact says about when and whence it was built.
    pub stamp: Stamp,
}

impl Options {
    /// A build with the built-in capabilities, in which losses are allowed.
    pub fn new(inspectors: Inspectors, stamp: Stamp) -> Self {
        Self { inspectors, capabilities: BUILT_IN_CAPABILITIES.to_vec(), deny_lossy: false, stamp }
    }
}

/// When and from what an artifact was built. Not part of its content hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// RFC 3339, UTC.
    pub timestamp: String,
    /// The commit, when it is known.
    pub commit: Option<String>,
}

/// What came of a compilation.
#[derive(Debug)]
pub struct Compilation {
    /// Present exactly when there is no error.
    pub artifact: Option<Artifact>,
    /// All problems of all tools, in a stable order.
    pub diagnostics: Vec<Diagnostic>,
    /// A line for each folder, sound or not.
    pub tools: Vec<ToolReport>,
}

/// How one folder fared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolReport {
    /// The folder's name.
    pub folder: String,
    /// Problems that keep the artifact from being written.
    pub errors: usize,
    /// Problems that the tool author should look at.
    pub warnings: usize,
}

/// A tool that passed its own checks.
pub(crate) struct CheckedTool {
    pub(crate) definition: Definition,
    pub(crate) documentation: Documentation,
    pub(crate) handler: HandlerRef,
    /// Where the description stands.
    pub(crate) description: Place,
    pub(crate) declarations: BTreeMap<Provider, Value>,
    pub(crate) losses: BTreeMap<Provider, Vec<Loss>>,
}

/// Checks every tool of `tree` and links them into an artifact when none has an error.
pub fn compile(tree: &Tree, options: &Options) -> Compilation {
    let fields = Fields::with(&options.capabilities);
    let mut diagnostics = tree.problems.clone();
    let mut sound = Vec::new();
    for folder in &tree.folders {
        let (tool, problems) = check_folder(folder, &fields, options);
        diagnostics.extend(problems.into_iter().map(|problem| problem.of(&folder.name)));
        sound.extend(tool);
    }
    diagnostics.extend(checks::across(&tree.folders, &sound));
    diagnostics.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));

    let tools = tree.folders.iter().map(|folder| report(&folder.name, &diagnostics)).collect();
    let has_error = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    let artifact = (!has_error).then(|| link(sound, &options.stamp));
    Compilation { artifact, diagnostics, tools }
}

/// Runs every check that a folder's state allows, so that one mistake does not hide the next.
fn check_folder(
    folder: &Folder,
    fields: &Fields,
    options: &Options,
) -> (Option<CheckedTool>, Vec<Diagnostic>) {
    let mut problems = folder.problems.clone();
    let handler = checks::handler::check(folder, &options.inspectors, &mut problems);
    let documentation = documentation::read(folder, &mut problems);
    let Some(json) = checks::json::read(folder, &mut problems) else {
        return (None, problems);
    };
    let subject = Subject { folder, json: &json, documentation: documentation.as_ref(), fields };
    for check in checks::TOOL_CHECKS {
        check(&subject, &mut problems);
    }
    let has_error = problems.iter().any(|problem| problem.severity == Severity::Error);
    let (false, Some(handler), Some(documentation)) = (has_error, handler, documentation) else {
        return (None, problems);
    };
    let Some(definition) = deserialize(&json, &mut problems) else {
        return (None, problems);
    };
    let (declarations, losses) =
        checks::providers::adapt(&json, &definition, options.deny_lossy, &mut problems);
    let description = json.place("/description");
    (Some(CheckedTool { definition, documentation, handler, description, declarations, losses }), problems)
}

fn deserialize(json: &JsonSource, problems: &mut Vec<Diagnostic>) -> Option<Definition> {
    // The checks have compared the file with a schema that is generated from the type, so this does not fail; if it
    // ever does, the author is told rather than the tool dropped.
    serde_json::from_value(json.value.clone())
        .map_err(|error| {
            problems.push(
                Diagnostic::new(
                    &crate::rules::BAD_VALUE,
                    error.to_string(),
                    "see the fields in `tools/README.md`",
                )
                .at(json.place("")),
            );
        })
        .ok()
}

fn report(folder: &str, diagnostics: &[Diagnostic]) -> ToolReport {
    let count = |severity| {
        let of_this = diagnostics.iter().filter(|diagnostic| diagnostic.folder.as_deref() == Some(folder));
        of_this.filter(|diagnostic| diagnostic.severity == severity).count()
    };
    ToolReport {
        folder: folder.to_owned(),
        errors: count(Severity::Error),
        warnings: count(Severity::Warning),
    }
}
