//! A tool has one handler, and it can be loaded.

use quarterdeck_contracts::handler::{Finding, FindingKind, HandlerSource};
use quarterdeck_contracts::{HandlerRef, sha256};

use crate::inspectors::Inspectors;
use crate::rules::{self, Rule};
use crate::tree::Folder;
use crate::{Diagnostic, Place};

const TYPESCRIPT: &str = "handler.ts";
const COMPILED_FROM_TYPESCRIPT: &str = "handler.js";

pub(crate) fn check(
    folder: &Folder,
    inspectors: &Inspectors,
    problems: &mut Vec<Diagnostic>,
) -> Option<HandlerRef> {
    let mut present: Vec<_> =
        inspectors.iter().filter(|(_, inspector)| folder.has(inspector.entry_file())).collect();
    // Folders from before TypeScript was taken have both: what was written, and what it was compiled to, which runs.
    if folder.has(COMPILED_FROM_TYPESCRIPT) {
        present.retain(|(_, inspector)| inspector.entry_file() != TYPESCRIPT);
    }
    let (kind, inspector) = match present[..] {
        [only] => only,
        [] => {
            problems.push(not_taken(folder).unwrap_or_else(|| missing(folder, inspectors)));
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

/// A handler in a form that is not taken, with the way out.
fn not_taken(folder: &Folder) -> Option<Diagnostic> {
    const RENAME: &str = "rename it to `handler.ts`, which is an ES module too";
    const FORMS: [(&str, &str, &str); 9] = [
        ("handler.mts", "the file of a handler has another name", RENAME),
        ("handler.tsx", "handlers have no JSX", "write `handler.ts`"),
        (
            "handler.mjs",
            "the file of a handler has another name",
            "rename it to `handler.js`, which is an ES module too",
        ),
        ("handler.cjs", "CommonJS is not taken", "write `handler.js` as an ES module that exports `execute`"),
        (
            "handler.c",
            "C is compiled first",
            "compile it to `handler.wasm` with `clang --target=wasm32`, as docs/WASM.md shows, and keep both",
        ),
        (
            "handler.zig",
            "Zig is compiled first",
            "compile it to `handler.wasm` with `zig build-exe -target wasm32-freestanding`, as docs/WASM.md shows, and keep both",
        ),
        (
            "wasm.rs",
            "Rust for WebAssembly is compiled first",
            "compile it to `handler.wasm` with `rustc --target wasm32-unknown-unknown`, as docs/WASM.md shows, and keep both",
        ),
        (
            "assembly.ts",
            "AssemblyScript is compiled first",
            "compile it to `handler.wasm` with `asc`, as docs/WASM.md shows, and keep both",
        ),
        ("handler.py", "Python is not taken", "write `handler.js` or `handler.rs`"),
    ];
    let (name, reason, help) = FORMS.into_iter().find(|(name, ..)| folder.names(name))?;
    let place = Place::Path(format!("{}/{name}", folder.name));
    Some(
        Diagnostic::new(&rules::OTHER_HANDLER, format!("`{name}` cannot be the handler: {reason}"), help)
            .at(place),
    )
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
        FindingKind::CommonJs => (
            &rules::NO_EXECUTE,
            "this is CommonJS, and handlers are ES modules: write `export async function execute({ args, context }) { … }`",
        ),
        FindingKind::NodeRequire => (
            &rules::NODE_ONLY,
            "`import` from \"quarterdeck\" or from a file of this folder, such as \"./parse.js\"; `fetch`, `URL` and `crypto` are there \
             without an import",
        ),
        FindingKind::NodeProcess => (
            &rules::NODE_ONLY,
            "declare a key under `secrets` in schema.json, and the server adds it to requests; what is no secret is a constant of \
             the handler",
        ),
        FindingKind::Import => (
            &rules::BAD_IMPORT,
            "import from \"quarterdeck\" or from a file of this folder, such as \"./parse.js\"",
        ),
        FindingKind::ResponseVersion => (
            &rules::RESPONSE_VERSION,
            "write `export const responseSchemaVersion = \"1.1.0\";` or remove the export",
        ),
        FindingKind::NotCompiledIn => (
            &rules::NOT_COMPILED_IN,
            "run `cargo build` and use the new binary; until then the tool is left out",
        ),
        FindingKind::Binding => (
            &rules::MCP_BINDING,
            "`quarterdeck mcp update SERVER` shows what the server says now, and `--accept` writes these files; or import the tool \
             again",
        ),
        FindingKind::UnknownServer => (
            &rules::UNKNOWN_MCP_SERVER,
            "add it with `quarterdeck mcp add NAME --url URL` or `--command COMMAND`; until then the tool is unavailable",
        ),
        FindingKind::WasmModule => (
            &rules::WASM_MODULE,
            "compile it for `wasm32` as a module without WASI and without threads, as docs/WASM.md shows",
        ),
        FindingKind::WasmInterface => (
            &rules::WASM_INTERFACE,
            "import and export what docs/WASM.md lists; link with `--no-entry` and name the exports with `--export`",
        ),
    }
}
