//! Real tool schemas and calls, with what Ajv made of them. They lie beside the repository.

use std::collections::HashMap;

use quarterdeck_schema::{Schema, lint};
use quarterdeck_testkit::jsonl;
use serde_json::Value;

use crate::compare::{pairs, recorded_pairs, same, summary};

/// Probes on which we differ from Ajv, each with the reason.
const DIFFERING_PROBES: &[(&str, &str)] = &[
    ("$schema draft-07 in 2020 build", "another draft is a warning for us"),
    ("pattern backreference", "a back-reference has no bound, so it is refused"),
    ("multipleOf 0.01 float", "decimals are exact here: 0.07 is a multiple of 0.01"),
    ("multipleOf 0.1", "decimals are exact here: 0.3 is a multiple of 0.1"),
];

#[test]
fn lint_agrees_with_ajv_strict_on_real_tools() {
    let Some(rows) = jsonl("schemas/corpus.jsonl") else { return };
    let differing: Vec<String> = rows
        .iter()
        .filter(|row| is_clean(&row["parameters"]) != row["ajv"]["strict_ok"].as_bool().expect("a verdict"))
        .map(|row| format!("{}: ajv says {}, we say {:?}", row["id"], row["ajv"], lint(&row["parameters"])))
        .collect();
    assert!(differing.is_empty(), "{}", summary("strict verdicts", &differing, rows.len()));
}

#[test]
fn every_real_tool_compiles() {
    let Some(rows) = jsonl("schemas/corpus.jsonl") else { return };
    for row in &rows {
        assert!(Schema::compile(&row["parameters"]).is_ok(), "{}", row["id"]);
    }
}

#[test]
fn calls_are_judged_as_ajv_judges_them() {
    let (Some(tools), Some(cases)) = (jsonl("schemas/corpus.jsonl"), jsonl("schemas/ajv-cases.jsonl")) else {
        return;
    };
    let schemas: HashMap<&str, Schema> = tools
        .iter()
        .filter_map(|tool| Some((tool["id"].as_str()?, Schema::compile(&tool["parameters"]).ok()?)))
        .collect();
    let cases: Vec<&Value> = cases.iter().filter(|case| case.get("ajv_artifact").is_none()).collect();
    let (mut verdicts, mut values, mut lists) = (Vec::new(), Vec::new(), Vec::new());
    for case in &cases {
        let schema = &schemas[case["schema"].as_str().expect("a schema's id")];
        let judged = Evaluation::new(schema, case);
        verdicts.extend(judged.verdict);
        values.extend(judged.value);
        lists.extend(judged.list);
    }
    assert!(verdicts.is_empty(), "{}", summary("verdicts", &verdicts, cases.len()));
    assert!(values.is_empty(), "{}", summary("values after defaults", &values, cases.len()));
    assert!(lists.is_empty(), "{}", summary("error lists", &lists, cases.len()));
}

#[test]
fn probes_are_judged_as_ajv_judges_them() {
    let Some(probes) = jsonl("schemas/ajv-probes.jsonl") else { return };
    let mut differing = Vec::new();
    for probe in &probes {
        let name = probe["probe"].as_str().expect("a name");
        let excuse = DIFFERING_PROBES.iter().find(|(known, _)| *known == name);
        let schema = &probe["schema"];
        let mut found: Vec<String> = Vec::new();
        if is_clean(schema) != probe["strict_ok"].as_bool().expect("a verdict") {
            found.push(format!("{name}: strict is {} but we say {:?}", probe["strict_ok"], lint(schema)));
        }
        if let (Ok(schema), Some(_)) = (Schema::compile(schema), probe.get("accepted")) {
            let judged = Evaluation::new(&schema, probe);
            found.extend([judged.verdict, judged.value, judged.list].into_iter().flatten());
        }
        match excuse {
            Some((_, reason)) => assert!(!found.is_empty(), "{name} no longer differs ({reason})"),
            None => differing.extend(found),
        }
    }
    assert!(differing.is_empty(), "{}", summary("probes", &differing, probes.len()));
}

/// How one recorded case differs from what we do.
struct Evaluation {
    verdict: Option<String>,
    value: Option<String>,
    list: Option<String>,
}

impl Evaluation {
    fn new(schema: &Schema, case: &Value) -> Self {
        let mut value = case["args"].clone();
        let found = schema.admit(&mut value).err().unwrap_or_default();
        let accepted = case["accepted"].as_bool().expect("a verdict");
        let after = case.get("args_after").unwrap_or(&case["args"]);
        let (ours, recorded) = (pairs(&found), recorded_pairs(&case["errors"]));
        let told = |what: &str| Some(format!("{what}: {case}\n  we: {value} {found:?}"));
        Self {
            verdict: if found.is_empty() == accepted { None } else { told("verdict") },
            value: if same(&value, after) { None } else { told("value") },
            list: if ours == recorded || found.is_empty() != accepted { None } else { told("list") },
        }
    }
}

fn is_clean(schema: &Value) -> bool {
    !lint(schema).iter().any(|issue| issue.is_error())
}
