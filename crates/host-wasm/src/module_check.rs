//! Whether a module can be a handler: it is valid, it meets the interface, and its size is within limits. Nothing is run or
//! compiled.

use std::collections::BTreeSet;

use wasmparser::types::{EntityType, TypesRef};
use wasmparser::{CompositeInnerType, MemoryType, Parser, Payload, ValType, Validator};

use crate::interface::{
    ALLOCATE, CALL, EXECUTE, EXPORTS, FEATURES, Function, IMPORT_MODULE, IMPORTS, MAX_FUNCTIONS, MAX_LOCALS,
    MAX_MEMORY_BYTES, MAX_MODULE_BYTES, MAX_TABLE_ELEMENTS, MEMORY, RESUME,
};

const WASM_PAGE_BYTES: u64 = 64 << 10;
/// What is told of a module that is wrong in hundreds of places.
const MAX_PROBLEMS: usize = 20;
/// How much of a foreign name is quoted.
const MAX_QUOTED_CHARS: usize = 64;

/// One thing that is wrong with a module, in one sentence for its author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Problem {
    /// It is no module, or not one of the size and form that is taken.
    Module(String),
    /// Its imports and exports are not those of a handler.
    Interface(String),
}

impl Problem {
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Module(message) | Self::Interface(message) => message,
        }
    }
}

/// Everything that is wrong with a module.
pub(crate) fn problems(bytes: &[u8]) -> Vec<Problem> {
    if bytes.len() > MAX_MODULE_BYTES {
        let limit = MAX_MODULE_BYTES >> 20;
        return vec![Problem::Module(format!("the module is larger than {limit} MiB"))];
    }
    if let Err(problem) = check_header(bytes).and_then(|()| check_size(bytes)) {
        return vec![problem];
    }
    // Only now: the validator makes a table of the locals of each function.
    let types = match Validator::new_with_features(FEATURES).validate_all(bytes) {
        Ok(types) => types,
        Err(error) => return vec![unreadable(&error)],
    };
    let mut problems = Vec::new();
    let mut report = |problem| problems.push(problem);
    check_memory_and_tables(types.as_ref(), &mut report);
    let imports = check_imports(types.as_ref(), &mut report);
    check_exports(types.as_ref(), imports.contains(CALL), &mut report);
    problems.truncate(MAX_PROBLEMS);
    problems
}

fn unreadable(error: &wasmparser::BinaryReaderError) -> Problem {
    Problem::Module(format!(
        "the file is not a WebAssembly module that handlers may be: {} at offset {:#x}",
        error.message(),
        error.offset()
    ))
}

/// What is told of a file of another kind; the parser's own words for it are a list of bytes.
fn check_header(bytes: &[u8]) -> Result<(), Problem> {
    if !bytes.starts_with(b"\0asm") {
        return Err(Problem::Module("the file is not a WebAssembly module".into()));
    }
    if Parser::is_component(bytes) {
        return Err(Problem::Module("the file is a component, and a handler is a core module".into()));
    }
    Ok(())
}

/// What a compiler would be kept busy with for minutes.
fn check_size(bytes: &[u8]) -> Result<(), Problem> {
    let (mut functions, mut locals) = (0, 0);
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(|error| unreadable(&error))? {
            Payload::CodeSectionStart { count, .. } => functions = count,
            Payload::CodeSectionEntry(body) => {
                locals += locals_of(&body).map_err(|error| unreadable(&error))?;
            }
            _ => {}
        }
        if functions > MAX_FUNCTIONS {
            return Err(Problem::Module(format!("the module has more than {MAX_FUNCTIONS} functions")));
        }
        if locals > MAX_LOCALS {
            let message = format!("the functions of the module have more than {MAX_LOCALS} local variables");
            return Err(Problem::Module(message));
        }
    }
    Ok(())
}

fn locals_of(body: &wasmparser::FunctionBody<'_>) -> wasmparser::Result<u64> {
    let mut locals = 0;
    for declared in body.get_locals_reader()? {
        let (count, _) = declared?;
        locals += u64::from(count);
    }
    Ok(locals)
}

fn check_memory_and_tables(types: TypesRef<'_>, report: &mut impl FnMut(Problem)) {
    if types.memory_count() > 0 {
        let MemoryType { initial, .. } = types.memory_at(0);
        if initial.saturating_mul(WASM_PAGE_BYTES) > MAX_MEMORY_BYTES as u64 {
            let limit = MAX_MEMORY_BYTES >> 20;
            report(Problem::Module(format!(
                "its memory begins with {initial} pages of 64 KiB, and a handler has {limit} MiB"
            )));
        }
    }
    if types.table_count() > 1 {
        report(Problem::Module(format!("it has {} tables, and a handler has one", types.table_count())));
    } else if types.table_count() == 1 && types.table_at(0).initial > MAX_TABLE_ELEMENTS as u64 {
        report(Problem::Module(format!("its table has more than {MAX_TABLE_ELEMENTS} elements")));
    }
}

/// Returns the names that are imported.
fn check_imports<'a>(types: TypesRef<'a>, report: &mut impl FnMut(Problem)) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for (module, name, entity) in types.core_imports().into_iter().flatten() {
        let known = IMPORTS.iter().find(|import| module == IMPORT_MODULE && import.name == name);
        match (known, entity) {
            (Some(import), EntityType::Func(_)) => {
                names.insert(name);
                check_signature("imports", import, types, entity, report);
            }
            (Some(_), _) => report(Problem::Interface(format!("it imports `{name}`, which is a function"))),
            (None, _) => report(Problem::Interface(format!(
                "it imports `{}` of `{}`, which does not exist; there are {} of `{IMPORT_MODULE}`",
                quoted(name),
                quoted(module),
                names_of(&IMPORTS)
            ))),
        }
    }
    names
}

fn check_exports(types: TypesRef<'_>, makes_requests: bool, report: &mut impl FnMut(Problem)) {
    let exports: Vec<_> = types.core_exports().into_iter().flatten().collect();
    let is_exported = |name: &str| exports.iter().any(|(exported, _)| *exported == name);
    for required in [MEMORY, ALLOCATE, EXECUTE] {
        if !is_exported(required) {
            report(Problem::Interface(format!("it does not export `{required}`")));
        }
    }
    if makes_requests && !is_exported(RESUME) {
        let message = format!("it imports `{CALL}` and does not export `{RESUME}`, which takes the results");
        report(Problem::Interface(message));
    }
    for (name, entity) in &exports {
        match (EXPORTS.iter().find(|export| export.name == *name), entity) {
            (Some(export), entity) => check_signature("exports", export, types, *entity, report),
            (None, EntityType::Memory(_)) if *name == MEMORY => {}
            (None, _) if *name == MEMORY => {
                report(Problem::Interface(format!("its export `{MEMORY}` is not a memory")));
            }
            // What linkers add, such as `__heap_base`.
            (None, _) if name.starts_with("__") => {}
            (None, _) => report(Problem::Interface(format!(
                "it exports `{}`, which is no part of the interface; there are `{MEMORY}`, {}",
                quoted(name),
                names_of(&EXPORTS)
            ))),
        }
    }
}

fn check_signature(
    verb: &str,
    expected: &Function,
    types: TypesRef<'_>,
    found: EntityType,
    report: &mut impl FnMut(Problem),
) {
    let found = match found {
        EntityType::Func(id) => types.get(id).map(|found| &found.composite_type.inner),
        _ => None,
    };
    let fits = match found {
        Some(CompositeInnerType::Func(found)) => {
            found.params() == expected.params && found.results() == expected.results
        }
        _ => false,
    };
    if !fits {
        report(Problem::Interface(format!(
            "it {verb} `{}` in another form than ({}) -> ({})",
            expected.name,
            list(expected.params),
            list(expected.results)
        )));
    }
}

fn list(types: &[ValType]) -> String {
    types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn names_of(functions: &[Function]) -> String {
    let names: Vec<_> = functions.iter().map(|function| format!("`{}`", function.name)).collect();
    names.join(", ")
}

fn quoted(name: &str) -> String {
    let escaped = name.chars().take(MAX_QUOTED_CHARS).flat_map(char::escape_debug).collect();
    if name.chars().count() > MAX_QUOTED_CHARS { escaped + "…" } else { escaped }
}

#[cfg(test)]
mod tests;
