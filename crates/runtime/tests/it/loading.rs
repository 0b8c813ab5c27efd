use std::fs;

use expect_test::{Expect, expect};
use quarterdeck_compiler::write_artifact;
use quarterdeck_contracts::{Category, Mode, Provider};
use quarterdeck_runtime::{NativeHost, Registry, ReloadError};
use quarterdeck_testkit::Tree;
use serde_json::{Value, json};

use crate::probe_tool::{built, compiled, definition, hosts, load};

fn refused(files: &Tree, expected: Expect) {
    expected.assert_eq(&load(files).err().expect("the artifact is refused"));
}

fn altered(alter: impl FnOnce(&mut Value)) -> Tree {
    let files = built();
    let text = fs::read_to_string(files.join("tool_registry.json")).unwrap();
    let mut artifact = serde_json::from_str(&text).unwrap();
    alter(&mut artifact);
    files.write("tool_registry.json", artifact.to_string());
    files
}

#[test]
fn a_sound_artifact_is_loaded_with_everything_that_is_asked_of_it() {
    let snapshot = load(&built()).unwrap().snapshot();
    assert_eq!(snapshot.len(), 1);
    assert!(snapshot.version().starts_with("1.0."));
    assert_eq!(snapshot.commit(), Some("a1b2c3d4"));
    assert_eq!(snapshot.find("probe").unwrap().metadata().version, "1.2.3");
    assert!(snapshot.find("probe").unwrap().documentation().starts_with("# Probe"));
    assert!(snapshot.find("other").is_none());
    assert_eq!(snapshot.in_category(Category::Action).count(), 1);
    assert_eq!(snapshot.in_category(Category::Retrieval).count(), 0);
    assert_eq!(snapshot.summaries(Mode::Text).count(), 1);
    assert_eq!(snapshot.summaries(Mode::Voice).count(), 0);
    assert_eq!(snapshot.declarations(Provider::Openai, Mode::Text).unwrap().len(), 1);
    assert_eq!(snapshot.declarations(Provider::Openai, Mode::Voice).unwrap().len(), 0);
}

#[test]
fn a_provider_that_was_not_built_is_an_error() {
    let files = altered(|artifact| {
        let mut tool: quarterdeck_contracts::CompiledTool =
            serde_json::from_value(artifact["tools"][0].take()).unwrap();
        tool.provider_schemas.remove(&Provider::Mcp);
        tool.hash = quarterdeck_contracts::tool_hash(&tool);
        artifact["contentHash"] =
            json!(quarterdeck_contracts::artifact_hash("1.1.0", std::slice::from_ref(&tool)));
        artifact["tools"][0] = json!(tool);
    });
    let error = load(&files).unwrap().snapshot().declarations(Provider::Mcp, Mode::Text).unwrap_err();
    assert!(error.to_string().contains("no declarations for mcp"));
}

#[test]
fn an_artifact_of_another_format_is_refused_first() {
    refused(
        &altered(|artifact| {
            artifact["formatVersion"] = json!(2);
            artifact["tools"] = json!("?");
        }),
        expect!["the artifact has format version 2, and this quarterdeck reads 1; run `quarterdeck build`"],
    );
    refused(
        &altered(|artifact| *artifact = json!({})),
        expect![
            "the artifact has format version null, and this quarterdeck reads 1; run `quarterdeck build`"
        ],
    );
}

#[test]
fn an_artifact_that_was_altered_is_refused() {
    refused(
        &altered(|artifact| artifact["tools"][0]["description"] = json!("Does more.")),
        expect!["the tool probe in the artifact was altered after it was built; run `quarterdeck build`"],
    );
    refused(
        &altered(|artifact| artifact["tools"][0]["providerSchemas"]["openai"]["x"] = json!(1)),
        expect!["the tool probe in the artifact was altered after it was built; run `quarterdeck build`"],
    );
    refused(
        &altered(|artifact| artifact["tools"][0]["hash"] = json!("0")),
        expect![[r#"
        the artifact was altered after it was built; run `quarterdeck build`
        the tool probe in the artifact was altered after it was built; run `quarterdeck build`"#]],
    );
}

#[test]
fn what_is_not_an_artifact_is_refused() {
    let files = built();
    files.write("tool_registry.json", "{ \"formatVersion\": 1 }");
    refused(
        &files,
        expect![
            "TOOLS/tool_registry.json is not a registry artifact: missing field `version`; run `quarterdeck build`"
        ],
    );
    files.write("tool_registry.json", "hello");
    refused(
        &files,
        expect![
            "TOOLS/tool_registry.json is not a registry artifact: expected value at line 1 column 1; run `quarterdeck build`"
        ],
    );
    fs::remove_file(files.join("tool_registry.json")).unwrap();
    refused(
        &files,
        expect![
            "cannot read TOOLS/tool_registry.json: No such file or directory (os error 2); run `quarterdeck build`"
        ],
    );
}

#[test]
fn a_handler_that_changed_or_went_is_refused() {
    let files = built();
    files.write("probe/handler.rs", "pub async fn execute() { /* changed */ }");
    refused(
        &files,
        expect!["probe/handler.rs has changed since the artifact was built; run `quarterdeck build`"],
    );
    fs::remove_file(files.join("probe/handler.rs")).unwrap();
    refused(
        &files,
        expect!["probe/handler.rs has gone since the artifact was built; run `quarterdeck build`"],
    );
}

#[test]
fn a_native_handler_that_is_not_compiled_in_is_refused() {
    let files = built();
    let error = Registry::load(&files.join("tool_registry.json"), files.path(), hosts(NativeHost::new([])));
    expect!["probe: the handler cannot be loaded: its handler.rs is not compiled into this binary; run `cargo build` and use the new binary"].assert_eq(&error.err().unwrap().to_string());
}

#[test]
fn a_locked_registry_does_not_reload_and_an_unlocked_one_keeps_old_snapshots() {
    let files = built();
    let registry = load(&files).unwrap();
    let before = registry.snapshot();

    let mut changed = definition();
    changed["description"] = json!("Does what it is told, and says so.");
    files.write("probe/schema.json", changed.to_string());
    write_artifact(&compiled(&files), &files.join("tool_registry.json")).unwrap();
    let after = registry.reload().unwrap();
    assert_ne!(before.version(), after.version());
    assert_eq!(before.find("probe").unwrap().metadata().description, "Does what it is told.");
    assert_eq!(registry.snapshot().version(), after.version());

    files.write("tool_registry.json", "broken");
    assert!(matches!(registry.reload(), Err(ReloadError::Load(_))));
    assert_eq!(registry.snapshot().version(), after.version(), "a failed reload changes nothing");

    registry.lock();
    assert!(matches!(registry.reload(), Err(ReloadError::Locked)));
}
