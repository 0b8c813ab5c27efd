//! A folder with one native tool, compiled and ready to load.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_compiler::{Inspectors, NativeInspector, Options, Stamp, Tree, compile, write_artifact};
use quarterdeck_contracts::handler::{Context, NATIVE_KIND, NativeHandler};
use quarterdeck_contracts::{Artifact, ErrorType, ToolError, native_source_hash};
use quarterdeck_runtime::{Hosts, NativeHost, Registry};
use quarterdeck_testkit::{Tree as Files, tree};
use serde_json::{Value, json};

const HANDLER: &str = "pub async fn execute() {}\n";

/// A tool whose behaviour its argument `do` chooses.
pub(crate) fn files() -> Files {
    let files = tree(
        r#"
        //- probe/guide.md
        # Probe

        Does what it is told, for tests. Use it when nothing else will do.
        "#,
    );
    files.write("probe/handler.rs", HANDLER);
    files.write("probe/schema.json", definition().to_string());
    files
}

pub(crate) fn definition() -> Value {
    json!({
        "toolId": "probe", "version": "1.2.3", "description": "Does what it is told.", "category": "action",
        "sideEffects": "writes", "idempotent": false, "requiresConfirmation": true, "allowedModes": ["text"],
        "latencyBudgetMs": 10, "timeoutMs": 50, "capabilities": ["store"],
        "parameters": {
            "type": "object", "additionalProperties": false, "required": ["do"],
            "properties": {
                "do": { "type": "string", "description": "What." },
                "times": { "type": "integer", "minimum": 1, "maximum": 10, "default": 3, "description": "How often." },
            },
        },
        "returns": { "type": "object", "additionalProperties": false, "required": ["did"], "properties": { "did": {} } },
    })
}

async fn probe(args: Value, context: Arc<dyn Context>) -> Result<Value, ToolError> {
    match args["do"].as_str().unwrap() {
        "echo" => Ok(json!({ "did": args })),
        "facts" => Ok(json!({ "did": context.facts() })),
        "panic" => panic!("a secret about the inside"),
        "sleep" => {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            Ok(json!({ "did": null }))
        }
        "lie" => Ok(json!({ "done": true })),
        "fail" => Err(ToolError::new(ErrorType::Conflict, "The slot is taken.").retryable()),
        "confirm" => Err(ToolError::new(ErrorType::ConfirmationRequired, "Trust me.")),
        "search" => {
            let call = quarterdeck_contracts::handler::CapabilityCall {
                capability: quarterdeck_contracts::Capability::KB,
                method: "search".into(),
                args: vec![],
            };
            Ok(json!({ "did": context.request(call).await? }))
        }
        other => panic!("{other} is not known"),
    }
}

pub(crate) fn native() -> NativeHost {
    let hash = native_source_hash([("handler.rs", HANDLER)]);
    NativeHost::new([NativeHandler::new("probe", Box::leak(hash.into_boxed_str()), probe)])
}

pub(crate) fn hosts(native: NativeHost) -> Hosts {
    Hosts::default().with(NATIVE_KIND, Arc::new(native))
}

pub(crate) fn compiled(files: &Files) -> Artifact {
    let hash = native_source_hash([("handler.rs", HANDLER)]);
    let inspector = NativeInspector::new([("probe".to_owned(), hash)]);
    let options = Options::new(
        Inspectors::default().with(NATIVE_KIND, Arc::new(inspector)),
        Stamp { timestamp: "2026-01-13T09:00:00Z".into(), commit: Some("a1b2c3d4".into()) },
    );
    let compilation = compile(&Tree::read(files.path(), &options.inspectors).unwrap(), &options);
    compilation.artifact.unwrap_or_else(|| panic!("{:?}", compilation.diagnostics))
}

/// The folder with its artifact beside it.
pub(crate) fn built() -> Files {
    let files = files();
    write_artifact(&compiled(&files), &files.join("tool_registry.json")).unwrap();
    files
}

pub(crate) fn load(files: &Files) -> Result<Registry, String> {
    Registry::load(&files.join("tool_registry.json"), files.path(), hosts(native()))
        .map_err(|error| error.to_string().replace(&*files.path().to_string_lossy(), "TOOLS"))
}
