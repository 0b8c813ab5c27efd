//! What is told of a failed handler beside its envelope, and to whom.

use quarterdeck_contracts::{Artifact, artifact_hash};
use quarterdeck_runtime::Registry;
use quarterdeck_testkit::FakeContext;
use serde_json::{Value, json};

use crate::probe_tool::{built, compiled, definition, files, hosts, load, native};

/// The texts of the faults of one call: message, then hint.
async fn faults(registry: &Registry, args: Value) -> Vec<(String, Option<String>)> {
    let context = FakeContext::new();
    registry.snapshot().execute("probe", args, context.clone()).await;
    context.recorded().faults.into_iter().map(|fault| (fault.message, fault.hint)).collect()
}

#[tokio::test]
async fn a_host_error_and_a_broken_contract_are_told_once_and_a_refusal_is_not() {
    let registry = load(&built()).unwrap();
    let told = |message: &str, hint: Option<&str>| vec![(message.to_owned(), hint.map(str::to_owned))];
    assert_eq!(
        faults(&registry, json!({ "do": "panic" })).await,
        told("the handler failed: panicked: a secret about the inside", None)
    );
    let lie = faults(&registry, json!({ "do": "lie" })).await;
    assert_eq!(lie.len(), 1);
    assert!(lie[0].0.starts_with("the answer does not fit `returns`: "), "{lie:?}");
    let hint = "return the `data` that `returns` in schema.json describes, or change `returns`";
    assert_eq!(lie[0].1.as_deref(), Some(hint));
    for done in ["echo", "fail"] {
        assert_eq!(faults(&registry, json!({ "do": done })).await, [], "{done}");
    }
    assert_eq!(faults(&registry, json!({})).await, [], "arguments that the schema refuses");
}

#[tokio::test]
async fn what_is_sensitive_is_hidden_in_a_fault() {
    let files = files();
    let mut sensitive = definition();
    sensitive["sensitive"] = json!(["/do"]);
    files.write("probe/schema.json", sensitive.to_string());
    let registry = Registry::from_artifact(compiled(&files), files.path(), hosts(native())).unwrap();
    let told = faults(&registry, json!({ "do": "grandmother" })).await;
    assert!(told[0].0.contains("is not known") && !told[0].0.contains("grandmother"), "{told:?}");
}

fn two_tools() -> (quarterdeck_testkit::Tree, Artifact) {
    let files = files();
    let mut other = definition();
    other["toolId"] = json!("other");
    other["description"] = json!("Computes the area of a field from its sides.");
    files.write("other/schema.json", other.to_string());
    files.write("other/guide.md", "# Other\n\nComputes the area of a field. Use it for fields.\n");
    files.write("other/handler.rs", "pub async fn execute() {}\n");
    let artifact = compiled(&files);
    (files, artifact)
}

#[test]
fn a_tool_whose_handler_is_not_compiled_in_is_left_out_and_the_others_load() {
    let (files, artifact) = two_tools();
    let registry = Registry::from_artifact(artifact, files.path(), hosts(native())).unwrap();
    let snapshot = registry.snapshot();
    assert_eq!((snapshot.len(), snapshot.find("other").is_some()), (1, false));
    let [problem] = snapshot.left_out() else { panic!("{:?}", snapshot.left_out()) };
    assert_eq!(problem.left_out_tool(), Some("other"));
    assert!(problem.to_string().contains("its handler.rs is not compiled into this binary"), "{problem}");
}

#[test]
fn an_artifact_that_was_altered_is_refused_with_everything_that_is_wrong() {
    let (files, mut artifact) = two_tools();
    artifact.tools[1].metadata.description.push('!');
    artifact.content_hash = artifact_hash(&artifact.response_schema_version, &artifact.tools);
    let refused = Registry::from_artifact(artifact, files.path(), hosts(native())).err().unwrap().to_string();
    assert!(refused.contains("was altered after it was built"), "{refused}");
    assert!(refused.contains("other: the handler cannot be loaded"), "{refused}");
}
