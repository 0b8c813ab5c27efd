//! A tool has one handler, and it can be loaded.

use std::collections::BTreeMap;

use quarterdeck_contracts::handler::{Finding, FindingKind, HandlerSource};
use quarterdeck_contracts::{HandlerKind, HandlerRef, sha256};

use crate::compile::Inspectors;
use crate::rules::{self, Rule};
use crate::tree::Folder;
use crate::{Diagnostic, Place};

pub(crate) fn check(
    folder: &Folder,
    inspectors: &Inspectors<'_>,
    problems: &mut Vec<Diagnostic>,
) -> Option<HandlerRef> {
    let present: Vec<_> = [HandlerKind::Js, HandlerKind::Native]
        .into_iter()
        .filter(|kind| folder.has(kind.file_name()))
        .collect();
    let kind = match present[..] {
        [kind] => kind,
        [] => {
            problems.push(missing(folder));
            return None;
        }
        _ => {
            problems.push(
                Diagnostic::new(
                    &rules::TWO_HANDLERS,
                    "the tool has both `handler.js` and `handler.rs`",
                    "keep one of them",
                )
                .at(Place::Path(folder.name.clone())),
            );
            return None;
        }
    };
    let entry = &folder.file(kind.file_name())?.path;
    let files: BTreeMap<String, String> =
        folder.files.values().map(|file| (file.path.clone(), file.text.clone())).collect();
    let inspector = match kind {
        HandlerKind::Js => inspectors.js,
        HandlerKind::Native => inspectors.native,
    };
    let inspection = inspector.inspect(HandlerSource { entry, files: &files });
    problems.extend(inspection.findings.into_iter().map(|finding| diagnostic(folder, finding)));
    let hashed = inspection.files.into_iter().filter_map(|path| {
        let hash = sha256(files.get(&path)?.as_bytes());
        Some((path, hash))
    });
    Some(HandlerRef { kind, path: entry.clone(), files: hashed.collect() })
}

fn missing(folder: &Folder) -> Diagnostic {
    Diagnostic::new(
        &rules::MISSING_FILE,
        "there is no handler",
        "write `handler.js` or `handler.rs`; `quarterdeck new` makes one that runs",
    )
    .at(Place::Path(folder.name.clone()))
}

fn diagnostic(folder: &Folder, finding: Finding) -> Diagnostic {
    let (rule, help) = rule_and_help(finding.kind);
    let place = match (folder.files.get(&finding.file), finding.position) {
        (Some(file), Some(position)) => Place::Span(file.clone(), file.token_at(position)),
        _ => Place::Path(finding.file),
    };
    Diagnostic::new(rule, finding.message, help).at(place)
}

fn rule_and_help(kind: FindingKind) -> (&'static Rule, &'static str) {
    match kind {
        FindingKind::Syntax => (&rules::HANDLER_SYNTAX, "correct the syntax; nothing was run"),
        FindingKind::NoExecute => {
            (&rules::NO_EXECUTE, "export an `execute` function, as `tools/README.md` shows")
        }
        FindingKind::Import => (
            &rules::BAD_IMPORT,
            "import from \"quarterdeck\" or from a file of this folder, such as \"./parse.js\"",
        ),
        FindingKind::ResponseVersion => (
            &rules::RESPONSE_VERSION,
            "write `export const responseSchemaVersion = \"1.1.0\";` or remove the export",
        ),
        FindingKind::NotCompiledIn => (&rules::NOT_COMPILED_IN, "run `cargo build` and use the new binary"),
    }
}
