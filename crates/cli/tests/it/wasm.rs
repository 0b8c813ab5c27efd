//! Tools whose handler is a WebAssembly module, from the folder to the envelope.

mod scaffolds;

use std::fs;

use quarterdeck_testkit::{Tree, tree};
use serde_json::{Value, json};

use crate::terminal::{quarterdeck, stdout_json};

/// What every module needs: room for the host's texts from 65536 on.
const COMMON: &str = r#"
    (memory (export "memory") 4)
    (func (export "allocate") (param i32) (result i32) (i32.const 65536))
    (func $answer (param $address i32) (param $length i32) (result i64)
      (i64.or
        (i64.shl (i64.extend_i32_u (local.get $address)) (i64.const 32))
        (i64.extend_i32_u (local.get $length))))"#;

/// A folder with this handler and this definition in place of a new one's.
fn tool(fields: &str, changes: &Value) -> Tree {
    let files = tree("");
    assert!(quarterdeck(files.path(), &["new", "word-count"]).status.success());
    fs::remove_file(files.join("tools/word-count/handler.js")).unwrap();
    // Functions come after imports.
    let (imports, rest) = fields.split_once("---").unwrap_or(("", fields));
    let module = wat::parse_str(format!("(module {imports} {COMMON} {rest})")).unwrap();
    fs::write(files.join("tools/word-count/handler.wasm"), module).unwrap();
    let path = files.join("tools/word-count/schema.json");
    let mut schema: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    schema.as_object_mut().unwrap().remove("returns");
    for (name, value) in changes.as_object().unwrap() {
        schema[name] = value.clone();
    }
    fs::write(path, schema.to_string()).unwrap();
    files
}

fn call(files: &Tree) -> (i32, Value, String) {
    let output = quarterdeck(files.path(), &["call", "word-count", r#"{ "text": "the ice is thin" }"#]);
    let mut envelope = stdout_json(&output);
    envelope.as_object_mut().unwrap().remove("meta");
    (output.status.code().unwrap(), envelope, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Answers with the input between a prefix and a brace.
const ECHO: &str = r#"
    (data (i32.const 16) "{\"ok\":true,\"data\":")
    (func (export "execute") (param $text i32) (param $length i32) (result i64)
      (memory.copy (i32.const 1024) (i32.const 16) (i32.const 18))
      (memory.copy (i32.const 1042) (local.get $text) (local.get $length))
      (i32.store8 (i32.add (i32.const 1042) (local.get $length)) (i32.const 125))
      (call $answer (i32.const 1024) (i32.add (local.get $length) (i32.const 19))))"#;

/// Asks the store for a value, and passes the result on.
const ASKING: &str = r#"
    (import "quarterdeck" "call" (func $call (param i32 i32 i32 i32) (result i32)))
    --- (data (i32.const 16) "store.get[\"k\"]{\"ok\":true,\"data\":\"asked\"}")
    (func (export "execute") (param i32 i32) (result i64)
      (drop (call $call (i32.const 16) (i32.const 9) (i32.const 25) (i32.const 5)))
      (i64.const 0))
    (func (export "resume") (param $request i32) (param $text i32) (param $length i32) (result i64)
      ;; {"ok":true, has a `t` at its seventh place.
      (if (i32.eq (i32.load8_u (i32.add (local.get $text) (i32.const 6))) (i32.const 116))
        (then (return (call $answer (i32.const 30) (i32.const 26)))))
      (call $answer (local.get $text) (local.get $length)))"#;

#[test]
fn folder_with_a_module_is_checked_built_and_called() {
    let files = tool(ECHO, &json!({}));
    let checked = quarterdeck(files.path(), &["check", "--format", "json"]);
    assert_eq!(stdout_json(&checked)["errors"], 0);
    assert!(quarterdeck(files.path(), &["build"]).status.success());
    let artifact = fs::read_to_string(files.join("tools/tool_registry.json")).unwrap();
    let artifact: Value = serde_json::from_str(&artifact).unwrap();
    assert_eq!(artifact["tools"][0]["handler"]["kind"], "wasm");
    assert_eq!(artifact["tools"][0]["handler"]["path"], "word-count/handler.wasm");
    let (code, envelope, _) = call(&files);
    assert_eq!((code, &envelope["ok"]), (0, &json!(true)));
    assert_eq!(envelope["data"]["args"], json!({ "text": "the ice is thin", "unit": "words" }));
    assert_eq!(envelope["data"]["context"]["tool"]["id"], "word_count");
}

#[test]
fn capability_must_be_declared_to_be_used() {
    let (code, envelope, _) = call(&tool(ASKING, &json!({ "capabilities": ["store"] })));
    assert_eq!((code, envelope), (0, json!({ "ok": true, "data": "asked" })));
    let (code, envelope, _) = call(&tool(ASKING, &json!({})));
    assert_eq!((code, &envelope["error"]["type"]), (1, &json!("PERMANENT")));
    assert_eq!(envelope["error"]["details"]["code"], "NOT_DECLARED");
}

#[test]
fn trap_is_internal_and_told_to_the_author() {
    let fields = r#"(func $parse (unreachable)) (func (export "execute") (param i32 i32) (result i64) (call $parse) (i64.const 1))"#;
    let (code, envelope, told) = call(&tool(fields, &json!({})));
    assert_eq!((code, &envelope["error"]["type"]), (1, &json!("INTERNAL")));
    assert!(
        told.contains("wasm `unreachable` instruction executed, in `parse`, called by function"),
        "{told}"
    );
}

#[test]
fn endless_loop_is_out_of_time() {
    let fields =
        r#"(func (export "execute") (param i32 i32) (result i64) (loop $again (br $again)) (unreachable))"#;
    let (code, envelope, _) = call(&tool(fields, &json!({ "timeoutMs": 600 })));
    assert_eq!((code, &envelope["error"]["type"]), (1, &json!("TRANSIENT")));
    assert_eq!(envelope["error"]["details"], json!({ "reason": "deadline", "computing": true }));
}

#[test]
fn module_with_other_imports_does_not_build() {
    let fields = r#"(import "wasi_snapshot_preview1" "proc_exit" (func (param i32))) ---"#;
    let checked = quarterdeck(tool(fields, &json!({})).path(), &["check"]);
    let told =
        String::from_utf8_lossy(&checked.stderr).into_owned() + &String::from_utf8_lossy(&checked.stdout);
    assert!(told.contains("QD0410 wasm-interface"), "{told}");
    assert!(
        told.contains("it imports `proc_exit` of `wasi_snapshot_preview1`, which does not exist"),
        "{told}"
    );
    assert!(told.contains("it does not export `execute`"), "{told}");
    assert!(!checked.status.success());
}
