//! Nothing of a call is left for the next.

use quarterdeck_host_wasm::{HostConfig, WasmHost};
use serde_json::json;

use crate::world::{data, load};

/// Searches all of its memory for a text of the first call, then writes its arguments all over it, and plants them in a global and
/// in the table. The text is looked for only behind the place where this call's own arguments are written.
const PLANTING: &str = r#"
    (global $planted (mut i32) (i32.const 0))
    (table $table 4 100 funcref)
    (elem declare func $wrap)
    (func $contains_canary (param $from i32) (param $to i32) (result i32)
      (block $none
        (loop $next
          (br_if $none (i32.ge_u (local.get $from) (local.get $to)))
          (if (i64.eq (i64.load (local.get $from)) (i64.const 0x5952414e41434558))
            (then (return (i32.const 1))))
          (local.set $from (i32.add (local.get $from) (i32.const 1)))
          (br $next)))
      (i32.const 0))
    (func (export "execute") (param $text i32) (param $length i32) (result i64)
      (local $at i32) (local $end i32) (local $is_first i32)
      (local.set $is_first (call $contains_canary (local.get $text)
        (i32.sub (i32.add (local.get $text) (local.get $length)) (i32.const 8))))
      (if (global.get $planted) (then (unreachable)))
      (if (i32.ne (table.size $table) (i32.const 4)) (then (unreachable)))
      (if (i32.eqz (ref.is_null (table.get $table (i32.const 3)))) (then (unreachable)))
      (if (i32.ne (memory.size) (i32.const 2)) (then (unreachable)))
      (drop (memory.grow (i32.const 30)))
      (local.set $end (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 8)))
      (if (call $contains_canary (i32.const 0) (i32.sub (local.get $text) (i32.const 8))) (then (unreachable)))
      (if (call $contains_canary (i32.add (local.get $text) (local.get $length)) (local.get $end))
        (then (unreachable)))
      (if (local.get $is_first)
        (then
          (global.set $planted (i32.const 1))
          (drop (table.grow $table (ref.func $wrap) (i32.const 50)))
          (table.set $table (i32.const 3) (ref.func $wrap))
          (local.set $at (i32.add (local.get $text) (local.get $length)))
          (block $full
            (loop $more
              (br_if $full (i32.gt_u (i32.add (local.get $at) (local.get $length)) (local.get $end)))
              (memory.copy (local.get $at) (local.get $text) (local.get $length))
              (local.set $at (i32.add (local.get $at) (local.get $length)))
              (br $more)))
          (memory.copy (i32.const 4096) (local.get $text) (local.get $length))))
      (call $wrap (local.get $text) (local.get $length)))
    (func (export "resume") (param i32 i32 i32) (result i64) (unreachable))"#;

/// One slot, so that every call has the memory that the one before has left.
fn one_slot() -> WasmHost {
    WasmHost::new(HostConfig { max_calls: 1, ..HostConfig::default() })
}

#[tokio::test]
async fn canary_of_one_call_is_in_the_memory_of_no_later_one() {
    let host = one_slot();
    let handler = load(&host, PLANTING);
    let planted = data(&handler, json!({ "secret": "XECANARY".repeat(32) })).await;
    assert_eq!(planted["args"]["secret"].as_str().map(str::len), Some(256));
    // Each scans two mebibytes, of which the first is cleared by hand and the second given back.
    for n in 0..1_000 {
        assert_eq!(data(&handler, json!({ "n": n })).await["args"]["n"], n);
    }
    assert_eq!(host.stats().instances, 0);
}

#[tokio::test]
async fn canary_is_not_in_the_memory_of_another_handler() {
    let host = one_slot();
    let handler = load(&host, PLANTING);
    let other = load(&host, &format!("{PLANTING} (global $unlike (export \"__unlike\") i32 (i32.const 1))"));
    for n in 0..20 {
        data(&handler, json!({ "secret": "XECANARY".repeat(32) })).await;
        assert_eq!(data(&other, json!({ "n": n })).await["args"]["n"], n);
        assert_eq!(data(&handler, json!({ "n": n })).await["args"]["n"], n);
    }
    assert_eq!(host.stats().modules, 2);
}
