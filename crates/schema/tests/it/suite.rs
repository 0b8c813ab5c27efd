//! The official test suite: nothing that we add may cost a verdict that the validator crate gets right.

use quarterdeck_schema::Schema;
use quarterdeck_testkit::jsonl;
use serde_json::Value;

use crate::compare::summary;

/// Where we deliberately judge otherwise than the suite, by file, with the reason.
const DIFFERING_FILES: &[(&str, &str)] =
    &[("optional/format/", "formats follow ajv-formats, which is not the RFCs")];

/// The same by group.
const DIFFERING_GROUPS: &[(&str, &str)] =
    &[("remote ref, containing refs itself", "references never leave the document")];

#[test]
fn no_verdict_is_worse_than_the_validator_crates_own() {
    let Some(rows) = jsonl("schemas/json-schema-test-suite.jsonl") else { return };
    let mut worse = Vec::new();
    for row in &rows {
        let file = row["file"].as_str().expect("a file");
        if DIFFERING_FILES.iter().any(|(known, _)| file.starts_with(known))
            || DIFFERING_GROUPS.iter().any(|(known, _)| row["group"] == *known)
        {
            continue;
        }
        let expected = row["suite_valid"].as_bool();
        let ours = Schema::compile(&row["schema"]).ok().map(|schema| schema.accepts(&row["data"]));
        if raw_verdict(&row["schema"], &row["data"]) == expected && ours != expected {
            worse.push(format!("{row} we: {ours:?}"));
        }
    }
    assert!(worse.is_empty(), "{}", summary("suite", &worse, rows.len()));
}

fn raw_verdict(schema: &Value, data: &Value) -> Option<bool> {
    let options =
        jsonschema::options().with_draft(jsonschema::Draft::Draft202012).should_validate_formats(true);
    options.build(schema).ok().map(|validator| validator.is_valid(data))
}
