//! Any text as a schema and as arguments: accepted or refused, never a panic, and the two ways to ask agree.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quarterdeck_contracts::parse_json;
use quarterdeck_schema::{Schema, lint};

fuzz_target!(|data: &str| {
    let (schema, args) = data.split_once('\0').unwrap_or((data, "{}"));
    let (Ok(schema), Ok(mut args)) = (serde_json::from_str(schema), parse_json(args)) else { return };
    let faults = lint(&schema);
    match Schema::compile(&schema) {
        Ok(schema) => {
            let admitted = schema.admit(&mut args).is_ok();
            assert_eq!(admitted, schema.accepts(&args));
            assert_eq!(admitted, schema.violations(&args).is_empty());
        }
        Err(_) => assert!(faults.iter().any(|fault| fault.is_error()), "what does not compile has a fault"),
    }
});
