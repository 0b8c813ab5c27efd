use expect_test::{Expect, expect};

use super::*;

/// What a module with these fields is told, beyond a good one.
fn check(text: &str, expected: &Expect) {
    let problems = problems(&wat::parse_str(text).unwrap());
    let lines: Vec<_> = problems.iter().map(|problem| format!("{problem:?}")).collect();
    expected.assert_eq(&lines.join("\n"));
}

/// The exports that every module has.
const GOOD: &str = r#"(memory (export "memory") 1)
    (func (export "allocate") (param i32) (result i32) (i32.const 1))
    (func (export "execute") (param i32 i32) (result i64) (i64.const 0))"#;

#[test]
fn smallest_handler_has_three_exports() {
    check(&format!("(module {GOOD})"), &expect![""]);
}

#[test]
fn what_linkers_export_is_let_pass() {
    check(
        &format!(
            r#"(module {GOOD} (global (export "__heap_base") i32 (i32.const 1)) (func (export "_initialize")))"#
        ),
        &expect![""],
    );
}

#[test]
fn every_missing_export_is_told() {
    check(
        r#"(module (import "quarterdeck" "call" (func (param i32 i32 i32 i32) (result i32))))"#,
        &expect![[r#"
            Interface("it does not export `memory`")
            Interface("it does not export `allocate`")
            Interface("it does not export `execute`")
            Interface("it imports `call` and does not export `resume`, which takes the results")"#]],
    );
}

#[test]
fn imports_are_those_of_the_interface() {
    check(
        &format!(
            r#"(module
              (import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))
              (import "quarterdeck" "now" (func (result f64)))
              (import "quarterdeck" "log" (global i32))
              (import "env" "memory" (memory 1))
              {})"#,
            GOOD.replace("(memory (export \"memory\") 1)", "(export \"memory\" (memory 0))")
        ),
        &expect![[r#"
            Interface("it imports `fd_write` of `wasi_snapshot_preview1`, which does not exist; there are `call`, `log`, `now`, `random` of `quarterdeck`")
            Interface("it imports `now` in another form than () -> (i64)")
            Interface("it imports `log`, which is a function")
            Interface("it imports `memory` of `env`, which does not exist; there are `call`, `log`, `now`, `random` of `quarterdeck`")"#]],
    );
}

#[test]
fn exports_are_those_of_the_interface_in_their_form() {
    check(
        r#"(module
          (global (export "memory") i32 (i32.const 1))
          (func (export "allocate") (param i64) (result i64) (i64.const 1))
          (func (export "execute"))
          (global (export "resume") i32 (i32.const 1))
          (func (export "main")))"#,
        &expect![[r#"
            Interface("its export `memory` is not a memory")
            Interface("it exports `allocate` in another form than (i32) -> (i32)")
            Interface("it exports `execute` in another form than (i32, i32) -> (i64)")
            Interface("it exports `resume` in another form than (i32, i32, i32) -> (i64)")
            Interface("it exports `main`, which is no part of the interface; there are `memory`, `_initialize`, `allocate`, `execute`, `resume`")"#]],
    );
}

#[test]
fn parts_of_the_language_that_are_not_taken_are_named() {
    for (fields, reason) in [
        ("(memory 1)", "multiple memories"),
        ("(memory i64 1)", "memory64"),
        ("(memory 1 1 shared)", "threads"),
        ("(tag $t)", "exceptions"),
        ("(global externref (ref.null extern))", "gc types"),
    ] {
        let text = format!("(module {} {fields})", if fields == "(memory 1)" { GOOD } else { "" });
        let problems = problems(&wat::parse_str(text).unwrap());
        let told = problems[0].message();
        let expected = format!("the file is not a WebAssembly module that handlers may be: {reason}");
        assert!(told.starts_with(&expected), "{told}");
    }
}

#[test]
fn memory_and_tables_begin_within_their_limits() {
    check(
        &format!(
            "(module {} (table 1 funcref) (table 1 funcref))",
            GOOD.replace("\"memory\") 1", "\"memory\") 1025")
        ),
        &expect![[r#"
            Module("its memory begins with 1025 pages of 64 KiB, and a handler has 64 MiB")
            Module("it has 2 tables, and a handler has one")"#]],
    );
    check(
        &format!("(module {GOOD} (table 20001 funcref))"),
        &expect![[r#"Module("its table has more than 20000 elements")"#]],
    );
}

/// A module of so many functions with so many locals each, all in a few bytes.
fn crowded(functions: u32, locals: u32) -> Vec<u8> {
    let number = |mut number: u32| {
        let mut bytes = Vec::new();
        while number > 0x7f {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    };
    let section = |id: u8, content: &[u8]| [&[id], number(content.len() as u32).as_slice(), content].concat();
    let body = [&[1], number(locals).as_slice(), &[0x7e, 0x0b]].concat();
    let bodies = [number(body.len() as u32), body].concat().repeat(functions as usize);
    [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, &[1, 0x60, 0, 0]),
        section(3, &[number(functions), vec![0; functions as usize]].concat()),
        section(10, &[number(functions), bodies].concat()),
    ]
    .concat()
}

#[test]
fn few_bytes_that_keep_a_compiler_busy_are_refused() {
    let told = |functions, locals| problems(&crowded(functions, locals)).remove(0);
    let problem = |message: &str| Problem::Module(message.into());
    let too_many_locals = "the functions of the module have more than 500000 local variables";
    assert_eq!(told(11, 50_000), problem(too_many_locals));
    assert_eq!(told(20_001, 0), problem("the module has more than 20000 functions"));
    // What is within the limits lacks only its exports.
    assert_eq!(told(10, 50_000), Problem::Interface("it does not export `memory`".into()));
    assert_eq!(told(20_000, 25), Problem::Interface("it does not export `memory`".into()));
}

#[test]
fn what_is_no_module_is_told_with_its_place() {
    let told = |bytes: &[u8]| problems(bytes).remove(0).message().to_owned();
    assert_eq!(told(b"export function execute() {}"), "the file is not a WebAssembly module");
    assert_eq!(told(b""), "the file is not a WebAssembly module");
    let component = b"\0asm\x0d\0\x01\0";
    assert_eq!(told(component), "the file is a component, and a handler is a core module");
    assert_eq!(
        told(b"\0asm\x01\0\0\0\x01"),
        "the file is not a WebAssembly module that handlers may be: unexpected end-of-file at offset 0x9"
    );
    assert_eq!(told(&vec![0; (1 << 20) + 1]), "the module is larger than 1 MiB");
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_a_module_or_have_a_problem(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
        let _ = problems(&bytes);
        let _ = problems(&[b"\0asm\x01\0\0\0", bytes.as_slice()].concat());
    }
}
