//! Any text as a bundle of artifact and handlers: a bundle that is written as it was read, or a reason, never a panic.
//! And any text as rules of a rollout: rules that are stored as they were read, or a reason.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quarterdeck_runtime::{Bundle, Rollout};

fuzz_target!(|data: &str| {
    match Bundle::from_json(data) {
        Ok(bundle) => assert_eq!(Bundle::from_json(&bundle.to_json()).expect("it was read"), bundle),
        Err(error) => assert!(!error.problems.is_empty()),
    }
    if let Ok(rollout) = serde_json::from_str::<Rollout>(data) {
        let _ = rollout.check();
        let stored = serde_json::to_string(&rollout).expect("rules are JSON");
        assert_eq!(serde_json::from_str::<Rollout>(&stored).expect("it was written"), rollout);
    }
});
