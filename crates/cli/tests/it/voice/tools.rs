//! The tools of these tests. Each leaves a line in the trail whenever its handler runs.

use std::path::Path;

use quarterdeck_testkit::{Tree, tree};
use serde_json::{Value, json};

/// Looks, and takes its time when it is asked to.
const LOOK: &str = r#"
export async function execute({ args, context }) {
  context.audit.log('looked', { what: args.what });
  if (args.ms) await new Promise((done) => setTimeout(done, args.ms));
  return { ok: true, data: { results: [args.what] } };
}
"#;

/// Counts what it has done in its store. The message goes out when that is committed, and not before.
pub(crate) const BOOK: &str = r#"
export async function execute({ args, context }) {
  context.audit.log('ran', { what: args.what });
  context.progress('under way');
  if (args.ms) await new Promise((done) => setTimeout(done, args.ms));
  const count = ((await context.store.get('count')) ?? 0) + 1;
  await context.store.put('count', count);
  await context.messaging.send({ type: 'committed', count });
  return { ok: true, data: { did: args.what, count } };
}
"#;

pub(crate) const NOTHING: &str = "export function execute() { return { ok: true, data: null }; }\n";

/// A folder of tools: `look`, `book`, `pay` (which needs confirmation) and `write_only` (which is for text).
pub(crate) fn tools() -> Tree {
    let files = tree("");
    let reads = json!({ "category": "retrieval", "sideEffects": "read_only", "idempotent": true });
    let writes = json!({ "capabilities": ["store"] });
    let pays = json!({ "capabilities": ["store"], "requiresConfirmation": true });
    let is_written = json!({ "allowedModes": ["text"], "sideEffects": "none" });
    add(files.path(), "look", &reads, LOOK);
    add(files.path(), "book", &writes, BOOK);
    add(files.path(), "pay", &pays, BOOK);
    add(files.path(), "write_only", &is_written, NOTHING);
    files
}

/// Writes a tool, or writes it anew.
pub(crate) fn add(tools: &Path, id: &str, more: &Value, handler: &str) {
    let mut definition = json!({
        "toolId": id, "version": "1.0.0", "description": "For tests.", "category": "action",
        "sideEffects": "writes", "idempotent": false, "requiresConfirmation": false,
        "allowedModes": ["text", "voice"], "latencyBudgetMs": 500, "timeoutMs": 20_000,
        "parameters": {
            "type": "object", "additionalProperties": false, "required": ["what"],
            "properties": {
                "what": { "type": "string", "description": "What." },
                "ms": { "type": "integer", "minimum": 0, "description": "How long it takes." },
            },
        },
    });
    for (name, value) in more.as_object().unwrap() {
        definition[name] = value.clone();
    }
    let folder = tools.join(id.replace('_', "-"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("schema.json"), definition.to_string()).unwrap();
    std::fs::write(folder.join("guide.md"), "# Tool\n\nDoes it. Use it when testing.\n").unwrap();
    std::fs::write(folder.join("handler.js"), handler).unwrap();
}
