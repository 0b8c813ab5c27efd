//! Runs every native handler over the `*.case.json` files and the guide's examples of its own folder.
//!
//! A small stand-in for the real pipeline: arguments are validated and filled in as the registry does, but
//! there are no gates, and a case that needs a world or several calls belongs to `quarterdeck test`.

mod matching;

use std::fs;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};

use jiff::Timestamp;
use jsonschema::Validator;
use quarterdeck_contracts::handler::{Context, NativeHandler};
use quarterdeck_contracts::{CaseFile, Definition, HandlerAnswer, Outcome};
use quarterdeck_testkit::FakeContext;
use serde_json::{Value, json};

use matching::difference;

/// A moment for cases that do not say when they happen.
const ANY_TIME: &str = "2026-01-13T09:00:00Z";

/// A world at a given time.
pub(crate) fn at(now: &str) -> Arc<dyn Context> {
    let now: Timestamp = now.parse().unwrap_or_else(|error| panic!("{now:?}: {error}"));
    FakeContext::at(now.into())
}

/// The result of a handler that waits for nothing, as one without capabilities does.
pub(crate) fn ready<T>(running: impl Future<Output = T>) -> T {
    match pin!(running).poll(&mut std::task::Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("a handler without capabilities has nothing to wait for"),
    }
}

#[test]
fn every_case_file_of_a_native_tool_holds() {
    let mut failures = Vec::new();
    for tool in native_tools() {
        let mut count = 0;
        for file in tool.files(".case.json") {
            let cases: CaseFile = parse(&file);
            for case in cases.into_cases() {
                count += 1;
                let (Some(args), Some(expected)) = (case.args, case.expect) else {
                    panic!("{}: {:?} has no call of its own", file.display(), case.name);
                };
                let envelope = tool.call(args, case.now.as_deref().unwrap_or(ANY_TIME));
                let mut differences = Vec::from_iter(difference(&expected.0, &envelope));
                if case.exact && expected.0["data"] != envelope["data"] {
                    differences.push(format!("data is {}", envelope["data"]));
                }
                failures
                    .extend(differences.iter().map(|what| format!("{} / {}: {what}", tool.id(), case.name)));
            }
        }
        assert!(count > 0, "{} has no case file", tool.id());
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn every_example_of_a_guide_succeeds() {
    for tool in native_tools() {
        let examples = tool.example_calls();
        assert!(!examples.is_empty(), "{} has no example", tool.id());
        for args in examples {
            let envelope = tool.call(args.clone(), ANY_TIME);
            assert_eq!(envelope["ok"], true, "{} {args}: {envelope}", tool.id());
        }
    }
}

#[test]
fn tool_ids_and_hashes_are_those_of_the_folders() {
    for tool in native_tools() {
        assert_eq!(tool.handler.source_hash.len(), 64);
        assert_eq!(tool.definition.metadata.tool_id.as_str(), tool.id());
    }
}

/// A handler with the folder it came from.
struct NativeTool {
    handler: NativeHandler,
    folder: PathBuf,
    definition: Definition,
    arguments: Validator,
    data: Option<Validator>,
}

fn native_tools() -> Vec<NativeTool> {
    crate::handlers().into_iter().map(NativeTool::new).collect()
}

impl NativeTool {
    fn new(handler: NativeHandler) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(handler.tool_id.replace('_', "-"));
        let definition: Definition = parse(&folder.join("schema.json"));
        Self {
            handler,
            arguments: validator(&definition.parameters),
            data: definition.metadata.returns.as_ref().map(validator),
            definition,
            folder,
        }
    }

    fn id(&self) -> &str {
        self.handler.tool_id
    }

    /// Files of the folder whose name ends so, sorted.
    fn files(&self, ending: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).unwrap();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.to_string_lossy().ends_with(ending));
        files.sort();
        files
    }

    /// The fenced `json` blocks under *Examples* that do not follow a line beginning with “Response”.
    fn example_calls(&self) -> Vec<Value> {
        let guide = fs::read_to_string(self.folder.join("guide.md")).unwrap();
        let (_, examples) = guide.split_once("\n## Examples").expect("the guide has examples");
        let examples = examples.split("\n## ").next().unwrap_or(examples);
        let mut calls = Vec::new();
        let mut before = "";
        for block in examples.split("```json\n") {
            if let Some((json, after)) = block.split_once("```") {
                if !before.trim_end().lines().next_back().unwrap_or("").starts_with("Response") {
                    calls.push(serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}")));
                }
                before = after;
            } else {
                before = block;
            }
        }
        calls
    }

    /// The envelope of one call, without `meta`.
    fn call(&self, mut args: Value, now: &str) -> Value {
        fill_defaults(&self.definition.parameters, &mut args);
        let refusals: Vec<Value> = self.arguments.iter_errors(&args).map(|error| refusal(&error)).collect();
        if !refusals.is_empty() {
            return json!({ "ok": false, "error": { "type": "VALIDATION", "retryable": false, "details": refusals } });
        }

        let HandlerAnswer { outcome, .. } = ready(self.handler.run(args, at(now)));
        match outcome {
            Outcome::Success(data) => {
                if let Some(error) = self.data.as_ref().and_then(|schema| schema.iter_errors(&data).next()) {
                    panic!("{} answered what its `returns` rejects: {error} in {data}", self.id());
                }
                json!({ "ok": true, "data": data })
            }
            Outcome::Failure(error) => json!({ "ok": false, "error": error }),
        }
    }
}

fn validator(schema: &Value) -> Validator {
    jsonschema::options().should_validate_formats(true).build(schema).unwrap()
}

fn refusal(error: &jsonschema::ValidationError<'_>) -> Value {
    json!({
        "path": error.instance_path().as_str(),
        "keyword": error.kind().keyword(),
        "message": error.to_string(),
    })
}

fn fill_defaults(schema: &Value, args: &mut Value) {
    let (Some(properties), Some(args)) = (schema["properties"].as_object(), args.as_object_mut()) else {
        return;
    };
    for (name, property) in properties {
        if let Some(default) = property.get("default")
            && !args.contains_key(name)
        {
            args.insert(name.clone(), default.clone());
        }
    }
}

fn parse<T: serde::de::DeserializeOwned>(file: &Path) -> T {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
