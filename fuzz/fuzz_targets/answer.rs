//! Any JSON as a handler's answer: an envelope that survives the round trip, or a reason why not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quarterdeck_contracts::HandlerAnswer;

fuzz_target!(|data: &str| {
    let Ok(value) = serde_json::from_str(data) else { return };
    if let Ok(answer) = HandlerAnswer::parse(value) {
        let again = serde_json::to_value(&answer).expect("an answer is JSON");
        assert_eq!(HandlerAnswer::parse(again).expect("what we write is an answer"), answer);
    }
});
