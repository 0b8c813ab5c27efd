//! A tool has one handler, and it can be loaded.

use quarterdeck_contracts::handler::{Finding, FindingKind, HandlerSource};
use quarterdeck_contracts::{HandlerRef, sha256};

use crate::inspectors::Inspectors;
use crate::rules::{self, Rule};
use crate::tree::Folder;
use crate::{Diagnostic, Place};

pub(crate) fn check(
    folder: &Folder,
    inspectors: &Inspectors,
    problems: &mut Vec<Diagnostic>,
) -> Option<HandlerRef> {
    let present: Vec<_> =
        inspectors.iter().filter(|(_, inspector)| folder.has(inspector.entry_file())).collect();
    let (kind, inspector) = match present[..] {
        [only] => only,
        [] => {
            problems.push(missing(folder, inspectors));
            return None;
        }
        [(_, one), (_, other), ..] => {
            problems.push(
                Diagnostic::new(
                    &rules::TWO_HANDLERS,
                    format!("the tool has both `{}` and `{}`", one.entry_file(), other.entry_file()),
                    "keep one of them",
                )
                .at(Place::Path(folder.name.clone())),
            );
            return None;
        }
    };
    let files = folder.handler_files();
    let (entry, _) = files.get_key_value(&format!("{}/{}", folder.name, inspector.entry_file()))?;
    let inspection = inspector.inspect(HandlerSource { entry, files: &files });
    problems.extend(inspection.findings.into_iter().map(|finding| diagnostic(folder, finding)));
    let hashed = inspection.files.into_iter().filter_map(|path| {
        let hash = sha256(files.get(&path)?);
        Some((path, hash))
    });
    Some(HandlerRef { kind: kind.clone(), path: entry.clone(), files: hashed.collect() })
}

fn missing(folder: &Folder, inspectors: &Inspectors) -> Diagnostic {
    Diagnostic::new(
        &rules::MISSING_FILE,
        "there is no handler",
        format!("write {}; `quarterdeck new` makes one that runs", inspectors.entry_files()),
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
