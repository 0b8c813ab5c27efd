//! Any text as a pattern and any text to match: accepted or refused, within the bound, and on small inputs with the
//! verdict of another matcher. The input is cut at the first NUL.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quarterdeck_schema::{MAX_STEPS, Schema, lint};
use serde_json::json;

/// The other matcher tries every way, so that it gets only what has few.
const MAX_COMPARED_BYTES: usize = 12;

fuzz_target!(|data: &str| {
    let (pattern, text) = data.split_once('\0').unwrap_or((data, ""));
    let source = json!({ "type": "string", "pattern": pattern });
    let is_refused = lint(&source).iter().any(|fault| fault.is_error());
    let Ok(schema) = Schema::compile(&source) else {
        assert!(is_refused, "what does not compile has a fault");
        return;
    };
    assert!(!is_refused, "what has a fault does not compile");
    let judged = schema.judge(&mut json!(text));
    assert!(judged.steps <= MAX_STEPS);
    // Twice the text takes no more than twice the steps, and what it takes to begin.
    let twice = schema.judge(&mut json!(text.repeat(2)));
    assert!(twice.steps <= judged.steps.saturating_mul(4).saturating_add(100_000).min(MAX_STEPS));
    if judged.steps == MAX_STEPS {
        return;
    }
    let is_match = judged.violations.is_empty();
    let names = Schema::compile(&json!({ "type": "object", "patternProperties": { pattern: false } }));
    assert_eq!(names.unwrap().accepts(&json!({ text: 1 })), !is_match);
    if pattern.len() <= MAX_COMPARED_BYTES && text.len() <= MAX_COMPARED_BYTES {
        let other = regress::Regex::with_flags(pattern, "u").unwrap();
        assert_eq!(is_match, other.find(text).is_some());
    }
});
