//! Formats, against what ajv-formats accepts.

use quarterdeck_schema::Schema;
use quarterdeck_testkit::jsonl;
use serde_json::{Value, json};

use crate::compare::summary;

#[test]
fn formats_accept_what_ajv_formats_accepts() {
    let Some(rows) = jsonl("schemas/ajv-formats.jsonl") else { return };
    let differing: Vec<String> = rows
        .iter()
        .filter(|row| accepts(&row["format"], &row["value"]) != row["accepted"].as_bool().expect("a verdict"))
        .map(Value::to_string)
        .collect();
    assert!(differing.is_empty(), "{}", summary("formats", &differing, rows.len()));
}

#[test]
fn a_format_for_text_ignores_numbers_and_the_other_way_round() {
    assert!(accepts(&json!("email"), &json!(3)));
    assert!(accepts(&json!("int32"), &json!("x")));
    assert!(!accepts(&json!("int32"), &json!(2_147_483_648_u64)));
    assert!(!accepts(&json!("int64"), &json!(1.5)));
}

#[test]
fn a_hint_admits_everything() {
    for format in ["password", "binary", "float", "double"] {
        assert!(accepts(&json!(format), &json!("x")) && accepts(&json!(format), &json!(1.5)));
    }
}

fn accepts(format: &Value, value: &Value) -> bool {
    Schema::compile(&json!({ "format": format })).expect("a format alone compiles").accepts(value)
}
