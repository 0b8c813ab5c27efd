//! How long things take. Printed, not asserted: `cargo test -p quarterdeck-host-js --release speed -- --nocapture`.

use std::time::{Duration, Instant};

use quarterdeck_host_js::{HostConfig, JsHost};
use serde_json::json;

use crate::world::{config, data, load};

const TRIVIAL: &str = "export const execute = ({ args }) => ({ ok: true, data: args.n });";

#[tokio::test]
#[expect(clippy::print_stdout, reason = "the figures are the point")]
async fn a_warm_call_and_a_cold_one() {
    let warm = JsHost::new(config()).unwrap();
    let cold = JsHost::new(HostConfig { stock_per_handler: 0, ..config() }).unwrap();
    for (what, host, pause) in [
        ("warm, at leisure", &warm, 2),
        ("warm, back to back", &warm, 0),
        ("cold, engine made in the call", &cold, 0),
    ] {
        let handler = load(host, TRIVIAL);
        let mut times = Vec::new();
        for n in 0..500 {
            if pause > 0 {
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
            let start = Instant::now();
            assert_eq!(data(&handler, json!({ "n": n })).await, json!(n));
            times.push(start.elapsed());
        }
        times.sort();
        println!("{what}: median {:?}, 90% {:?}", times[250], times[450]);
    }
}
