//! Any text as the state that an MCP client brings back, and as a line of one: no state is accepted that was not sealed
//! here, and a line that is not taken is answered with one line of JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quarterdeck_mcp_server::{opens_as_state, refusal_of_line};
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert!(!opens_as_state(text), "a seal was guessed");
    }
    if let Some(refusal) = refusal_of_line(bytes) {
        assert!(!refusal.contains('\n'));
        let answer: Value = serde_json::from_str(&refusal).expect("an answer is JSON");
        assert!(answer["error"]["code"].is_i64());
    }
});
