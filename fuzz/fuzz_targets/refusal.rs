//! Any words of a server that refuses a request, and any list of models: no panic, and nothing is declared that was not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quarterdeck_transports::{openai, read_models};
use serde_json::{Value, json};

fuzz_target!(|data: &[u8]| {
    let words = String::from_utf8_lossy(data);
    let tools = tools();
    let left = openai::declarations_after(&words, &tools);
    assert!(left.len() <= tools.len());
    for tool in &left {
        assert!(tools.iter().any(|declared| declared["function"]["name"] == tool["function"]["name"]));
    }
    if let Some(models) = read_models(data, None) {
        assert!(models.len() <= 20 && models.iter().all(|name| name.len() <= 120));
    }
});

fn tools() -> Vec<Value> {
    let tool = |name: &str, property: Value| {
        let parameters = json!({ "type": "object", "properties": { "pattern": property } });
        json!({ "type": "function", "function": { "name": name, "parameters": parameters } })
    };
    vec![
        tool("tide", json!({ "type": "string", "pattern": "^person:" })),
        tool("mark_buoy", json!({ "type": "string", "format": "uri", "maxLength": 9 })),
    ]
}
