//! How the tests say what is there and what must come of it.

use std::fmt::Write;
use std::sync::Arc;

use expect_test::Expect;
use quarterdeck_compiler::{
    Compilation, Diagnostic, Inspectors, NativeInspector, Options, Place, Stamp, Tree, compile,
};
use quarterdeck_contracts::Artifact;
use quarterdeck_contracts::handler::{NATIVE_KIND, Position};
use quarterdeck_host_js::{JS_KIND, JsInspector};
use quarterdeck_testkit::{Tree as Files, tree};
use serde_json::{Value, json};

/// A folder `greet` that is sound in every way.
pub(crate) const SOUND: &str = r#"
    //- greet/guide.md
    # Greet

    Greets someone by name. Use it when a conversation begins.

    ## Examples

    ```json
    { "name": "Fridtjof" }
    ```
    //- greet/handler.js
    export async function execute({ args }) {
      return { ok: true, data: `Hello ${args.name}` };
    }
    //- greet/schema.json
    {
      "toolId": "greet",
      "version": "1.0.0",
      "description": "Greets someone by name.",
      "category": "utility",
      "sideEffects": "none",
      "idempotent": true,
      "requiresConfirmation": false,
      "allowedModes": ["text", "voice"],
      "latencyBudgetMs": 100,
      "parameters": {
        "type": "object",
        "additionalProperties": false,
        "required": ["name"],
        "properties": {
          "name": { "type": "string", "description": "Who is greeted." }
        }
      }
    }
"#;

pub(crate) fn sound() -> Files {
    tree(SOUND)
}

/// The sound `schema.json` with `patch` merged in (RFC 7386: null removes).
pub(crate) fn patched(patch: Value) -> Files {
    let files = sound();
    let text = std::fs::read_to_string(files.join("greet/schema.json")).unwrap();
    let mut schema: Value = serde_json::from_str(&text).unwrap();
    merge(&mut schema, patch);
    files.write("greet/schema.json", format!("{schema:#}"));
    files
}

fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let target = target.as_object_mut().unwrap();
    for (name, value) in patch {
        match value {
            Value::Null => drop(target.remove(&name)),
            value => merge(target.entry(name).or_insert(Value::Null), value),
        }
    }
}

pub(crate) fn compile_files(files: &Files) -> Compilation {
    compile_with(files, false)
}

pub(crate) fn compile_with(files: &Files, deny_lossy: bool) -> Compilation {
    let tree = Tree::read(files.path(), &inspectors()).unwrap();
    compile_tree(&tree, deny_lossy)
}

pub(crate) fn compile_tree(tree: &Tree, deny_lossy: bool) -> Compilation {
    compile(tree, &options(inspectors(), deny_lossy))
}

pub(crate) fn inspectors() -> Inspectors {
    let native = NativeInspector::new([]);
    Inspectors::default().with(JS_KIND, Arc::new(JsInspector)).with(NATIVE_KIND, Arc::new(native))
}

pub(crate) fn options(inspectors: Inspectors, deny_lossy: bool) -> Options {
    let stamp = Stamp { timestamp: "2026-01-13T09:00:00Z".into(), commit: None };
    Options { deny_lossy, ..Options::new(inspectors, stamp) }
}

pub(crate) fn artifact(files: &Files) -> Artifact {
    let compilation = compile_files(files);
    compilation.artifact.unwrap_or_else(|| panic!("{}", list(&compilation.diagnostics)))
}

/// Everything that is said about `files`, and whether an artifact came of it.
pub(crate) fn check(files: &Files, expected: Expect) {
    expect_diagnostics(&compile_files(files), expected);
}

pub(crate) fn expect_diagnostics(compilation: &Compilation, expected: Expect) {
    let mut text = list(&compilation.diagnostics);
    let has_error = compilation.diagnostics.iter().any(|problem| problem.severity.as_str() == "error");
    assert_eq!(compilation.artifact.is_none(), has_error, "an error and an artifact exclude each other");
    if text.is_empty() {
        text.push_str("fine\n");
    }
    expected.assert_eq(&text);
}

fn list(diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        let place = match &diagnostic.place {
            None => String::new(),
            Some(Place::Path(path)) => format!(" {path}"),
            Some(Place::Span(file, span)) => {
                let at = Position::of(&file.text, span.start);
                format!(" {}:{}:{} `{}`", file.path, at.line, at.column, &file.text[span.clone()])
            }
        };
        let severity = diagnostic.severity.as_str();
        writeln!(text, "{severity} {}{place}", diagnostic.rule.code).unwrap();
        writeln!(text, "  {}", diagnostic.message).unwrap();
        writeln!(text, "  help: {}", diagnostic.help).unwrap();
    }
    text
}
