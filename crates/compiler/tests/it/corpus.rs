//! Schemas of real tools, through the whole compiler. The corpus is not part of the repository.

use std::collections::BTreeMap;

use quarterdeck_compiler::Tree;
use quarterdeck_contracts::{Provider, Renames};
use serde_json::{Value, json};

use crate::world::compile_tree;

/// A folder around parameters from elsewhere. The two things that we ask of every root and Ajv does not are added.
fn folder(name: &str, parameters: &Value) -> Vec<(String, String)> {
    let mut parameters = parameters.clone();
    parameters["type"] = json!("object");
    parameters["additionalProperties"] = json!(false);
    let definition = json!({
        "toolId": name, "version": "1.0.0", "description": format!("Does what {name} does."), "category": "utility",
        "sideEffects": "none", "idempotent": true, "requiresConfirmation": false, "allowedModes": ["text"],
        "latencyBudgetMs": 100, "parameters": parameters,
    });
    vec![
        (format!("{name}/schema.json"), definition.to_string()),
        (format!("{name}/guide.md"), format!("# {name}\n\nOne of many tools found in the wild.\n")),
        (format!("{name}/handler.js"), "export function execute() { return { ok: true }; }\n".into()),
    ]
}

#[test]
fn real_schemas_compile_exactly_when_ajv_accepts_them() {
    let Some(rows) = quarterdeck_testkit::jsonl("schemas/corpus.jsonl") else { return };
    let expected: BTreeMap<String, bool> = rows
        .iter()
        .map(|row| (row["id"].as_str().unwrap().to_owned(), row["ajv"]["strict_ok"].as_bool().unwrap()))
        .collect();
    let tree =
        Tree::from_texts(rows.iter().flat_map(|row| folder(row["id"].as_str().unwrap(), &row["parameters"])));
    let compilation = compile_tree(&tree, false);
    let actual: BTreeMap<String, bool> =
        compilation.tools.into_iter().map(|tool| (tool.folder, tool.errors == 0)).collect();
    assert_eq!(actual, expected);
}

#[test]
fn declarations_of_real_tools_are_the_recorded_ones() {
    let (Some(rows), Some(expected)) = (
        quarterdeck_testkit::jsonl("schemas/corpus.jsonl"),
        quarterdeck_testkit::jsonl("schemas/gemini-expected.jsonl"),
    ) else {
        return;
    };
    let expected: BTreeMap<&str, &Value> =
        expected.iter().map(|row| (row["id"].as_str().unwrap(), &row["expected"])).collect();
    let (mut same, mut renamed) = (0, 0);
    for row in rows.iter().filter(|row| row["ajv"]["strict_ok"] == json!(true)) {
        let id = row["id"].as_str().unwrap();
        let compilation = compile_tree(&Tree::from_texts(folder(id, &row["parameters"])), false);
        let tool = compilation.artifact.unwrap().tools.remove(0);
        let declaration = &tool.provider_schemas[&Provider::GeminiNative];
        // The recorded ones keep property names for which Gemini would refuse the whole request.
        if Renames::of(&tool, Provider::GeminiNative).is_empty() {
            assert_eq!(declaration.get("parameters"), expected[id].get("parameters"), "{id}");
            same += 1;
        } else {
            renamed += 1;
        }
    }
    assert_eq!(same + renamed, rows.iter().filter(|row| row["ajv"]["strict_ok"] == json!(true)).count());
    assert!(renamed > 0 && renamed * 10 < same, "names of {renamed} tools are changed");
}
