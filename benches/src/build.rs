//! How long 200 tool folders take from disk to artifact.

use std::sync::Arc;

use quarterdeck_compiler::{Inspectors, Options, Stamp, Tree, compile, write_artifact};
use quarterdeck_host_js::{JS_KIND, JsInspector};
use quarterdeck_testkit::{Tree as Files, tree};
use serde_json::json;

use crate::rounds::{PerCall, measure};

const TOOLS: usize = 200;

pub(crate) fn run() -> PerCall {
    let files = many_tools(TOOLS);
    let out = tree("//- registry.json\n");
    measure(10, |_| build(&files, &out))
}

fn build(files: &Files, out: &Files) {
    let options = Options::new(
        Inspectors::default().with(JS_KIND, Arc::new(JsInspector)),
        Stamp { timestamp: "2026-01-13T09:00:00Z".into(), commit: None },
    );
    let tree = Tree::read(files.path(), &options.inspectors).expect("the folder was made a moment ago");
    let compilation = compile(&tree, &options);
    let artifact = compilation.artifact.expect("the tools are sound");
    assert_eq!(artifact.tools.len(), TOOLS);
    write_artifact(&artifact, &out.join("registry.json")).expect("a temporary folder can be written");
}

/// Realistic folders: a dozen parameters with limits, formats, nesting and a union, a guide with examples,
/// a handler of two files.
fn many_tools(count: usize) -> Files {
    let files = tree("");
    for number in 0..count {
        let folder = format!("tool-{number}");
        files.write(&format!("{folder}/schema.json"), format!("{:#}", definition(number)));
        files.write(&format!("{folder}/guide.md"), GUIDE);
        files.write(&format!("{folder}/handler.js"), HANDLER);
        files.write(
            &format!("{folder}/lib/score.js"),
            "export const score = (a, b) => a.length - b.length;\n",
        );
    }
    files
}

fn definition(number: usize) -> serde_json::Value {
    let text =
        |about: &str| json!({ "type": "string", "minLength": 1, "maxLength": 200, "description": about });
    json!({
        "toolId": format!("tool_{number}"),
        "version": "1.0.0",
        "description": format!("Looks up entries of kind {number} in register {} by place, time and owner.", number * 7),
        "category": "retrieval",
        "sideEffects": "read_only",
        "idempotent": true,
        "requiresConfirmation": false,
        "allowedModes": ["text", "voice"],
        "latencyBudgetMs": 500,
        "sensitive": ["/owner/email"],
        "parameters": {
            "type": "object",
            "additionalProperties": false,
            "required": ["query"],
            "properties": {
                "query": text("What to look for."),
                "top_k": { "type": "integer", "minimum": 1, "maximum": 10, "default": 5, "description": "How many." },
                "since": { "type": "string", "format": "date-time", "description": "Not before." },
                "day": { "type": "string", "format": "date", "description": "On this day." },
                "kind": { "type": "string", "enum": ["ship", "person", "place"], "description": "What kind." },
                "level": { "type": "integer", "enum": [1, 2, 3], "description": "How deep." },
                "code": { "type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$", "description": "The code." },
                "tags": {
                    "type": "array", "maxItems": 5, "uniqueItems": true, "description": "All must match.",
                    "items": text("A tag."),
                },
                "owner": {
                    "type": "object", "additionalProperties": false, "description": "Whose.",
                    "properties": {
                        "name": text("The name."),
                        "email": { "type": "string", "format": "email", "description": "The address." },
                    },
                },
                "near": {
                    "description": "Where.",
                    "anyOf": [
                        { "type": "string", "description": "A name." },
                        {
                            "type": "object", "additionalProperties": false, "required": ["lat", "lon"],
                            "properties": {
                                "lat": { "type": "number", "minimum": -90, "maximum": 90, "description": "North." },
                                "lon": { "type": "number", "exclusiveMinimum": -180, "maximum": 180, "description": "East." },
                            },
                        },
                    ],
                },
            },
        },
    })
}

const GUIDE: &str = r#"# Register

Looks up entries of a register by words, place, time and owner. Use it when someone asks what is recorded.

## Parameters

- `query`: the words to look for.
- `near`: a name, or a place by its coordinates.

## Examples

```json
{ "query": "drift", "kind": "ship", "near": { "lat": 85.9, "lon": 66.5 } }
```

```json
{ "query": "owner", "owner": { "email": "post@example.org" }, "tags": ["ice"] }
```

## Watch Out

- Nothing found is an empty list.
"#;

const HANDLER: &str = "import { ErrorType, ToolError } from 'quarterdeck';
import { score } from './lib/score.js';

export async function execute({ args }) {
  if (args.query === '?') throw new ToolError(ErrorType.VALIDATION, 'Ask for something.');
  const results = ['fram', 'gjoa', 'maud'].filter((name) => name.includes(args.query)).sort(score);
  return { ok: true, data: { results: results.slice(0, args.top_k) } };
}
";
