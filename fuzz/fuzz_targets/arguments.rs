//! Any text as a schema and as arguments: accepted or refused within the bound, never a panic, and the two ways to ask
//! agree.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quarterdeck_contracts::parse_json;
use quarterdeck_schema::{MAX_STEPS, Schema, lint};

fuzz_target!(|data: &str| {
    let (schema, args) = data.split_once('\0').unwrap_or((data, "{}"));
    let (Ok(schema), Ok(mut args)) = (serde_json::from_str(schema), parse_json(args)) else { return };
    let faults = lint(&schema);
    match Schema::compile(&schema) {
        Ok(schema) => {
            let judged = schema.judge(&mut args);
            assert!(judged.steps <= MAX_STEPS);
            // Filling and judging share one budget, so only what is far from its end must agree with judging alone.
            if judged.steps < MAX_STEPS / 4 {
                let is_admitted = judged.violations.is_empty();
                assert_eq!(is_admitted, schema.accepts(&args));
                assert_eq!(is_admitted, schema.violations(&args).is_empty());
            }
        }
        Err(_) => assert!(faults.iter().any(|fault| fault.is_error()), "what does not compile has a fault"),
    }
});
