//! The Gemini dialect against the recorded reference conversions, where they are present.

use std::collections::HashMap;

use quarterdeck_compiler::adapters::gemini_native::convert;
use quarterdeck_testkit::jsonl;
use serde_json::Value;

#[test]
fn every_row_of_the_corpus_converts_as_recorded() {
    let (Some(corpus), Some(expected)) =
        (jsonl("schemas/corpus.jsonl"), jsonl("schemas/gemini-expected.jsonl"))
    else {
        return;
    };
    let sources: HashMap<_, _> = corpus.iter().map(|row| (text(row, "id"), &row["parameters"])).collect();
    let rows = expected.iter().map(|row| (text(row, "id"), sources[text(row, "id")], row));
    assert_equal(rows);
}

#[test]
fn every_probe_converts_as_recorded() {
    let Some(probes) = jsonl("schemas/gemini-probes.jsonl") else { return };
    assert_equal(probes.iter().map(|row| (text(row, "probe"), &row["parameters"], row)));
}

fn assert_equal<'a>(rows: impl Iterator<Item = (&'a str, &'a Value, &'a Value)>) {
    let mut differences = Vec::new();
    for (name, source, row) in rows {
        let converted = convert(source).unwrap();
        let lossy: Vec<_> = converted.notes.keys().copied().collect();
        let recorded: Vec<_> = row["lossy"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        // As text, because the order of keys is part of what is recorded.
        let parameters = converted.parameters.map(|parameters| parameters.to_string());
        let expected = row["expected"].get("parameters").map(ToString::to_string);
        if parameters != expected || lossy != recorded {
            differences.push(format!("{name}\n  {parameters:?} {lossy:?}\n  {expected:?} {recorded:?}"));
        }
    }
    assert!(differences.is_empty(), "{} rows differ:\n{}", differences.len(), differences.join("\n"));
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap()
}
