//! Modules that do anything: whatever they return, write and ask for, their call ends and the next one is as good as new.

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use quarterdeck_contracts::Capability;
use quarterdeck_contracts::handler::{Handler, HostError};
use quarterdeck_host_wasm::WasmHost;
use quarterdeck_testkit::FakeContext;
use serde_json::json;

use crate::world::{data, host, scripted, within};

static WORLD: LazyLock<(WasmHost, Arc<dyn Handler>)> = LazyLock::new(|| {
    let host = host();
    let handler = scripted(&host);
    (host, handler)
});

/// Numbers around the edges of the memory, of the texts in it, and of the types.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0_u64..8,
        0_u64..100,
        65_530_u64..65_540,
        131_060_u64..131_080,
        196_600_u64..196_620,
        Just(u64::from(u32::MAX)),
        Just(1 << 31),
        any::<u64>(),
        (0_u64..200_000, 0_u64..200).prop_map(|(address, length)| (address << 32) | length),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_script_ends_its_own_call_and_nothing_else(script in prop::collection::vec(number(), 0..24)) {
        let (host, handler) = &*WORLD;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let context = FakeContext::new();
            context.provide(Capability::KB, |_, _| Ok(json!("found")));
            let ended = handler.run(json!(script), context, within(2_000)).await;
            // No instruction of the script loops, so nothing but its end stops it.
            prop_assert!(!matches!(ended, Err(HostError::TimedOut { .. } | HostError::Busy { .. })), "{ended:?}");
            let good = data(handler, json!([0, (46_u64 << 32) | 20])).await;
            prop_assert_eq!(good, json!(7));
            Ok(())
        })?;
        prop_assert!(host.stats().instances <= 1);
    }
}
