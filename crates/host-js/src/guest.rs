//! The guest: QuickJS and our glue as a WebAssembly module, taken apart into the code that all handlers share and the memory
//! that it begins with.

use wasm_encoder::{
    ConstExpr, DataSection, ExportKind, ExportSection, MemorySection, MemoryType, Module as Encoder,
    RawSection,
};
use wasmparser::{DataKind, Operator, Parser, Payload, TypeRef};

/// What `build.rs` has made of `guest/` and QuickJS.
#[cfg(not(test))]
pub(crate) const GUEST: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guest.wasm"));
/// The same with `guest/faults.c`, which tests of this crate's inside set off. Those in `tests/` have the guest of the product.
#[cfg(test)]
pub(crate) const GUEST: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/faulty_guest.wasm"));

/// Differs where the guest does.
pub(crate) const GUEST_HASH: &str = env!("GUEST_HASH");

/// The stack of the guest's C, which lies first in its memory. `build.rs` has the same number.
pub(crate) const STACK_BYTES: usize = 256 << 10;
/// How much of it JavaScript may use: what C needs beyond its own last check is left.
pub(crate) const JS_STACK_BYTES: u32 = 224 << 10;

const WASM_PAGE_BYTES: usize = 64 << 10;
/// The name that the memory is exported by, and imported from an image.
const MEMORY: &str = "memory";

/// The parts of the guest.
pub(crate) struct Guest {
    /// All of the module but its data, and what sets up a memory without.
    pub(crate) code: Vec<u8>,
    /// The memory as the data make it.
    pub(crate) memory: Vec<u8>,
}

impl Guest {
    /// Takes a module apart whose memory is imported.
    pub(crate) fn take_apart(module: &[u8]) -> Result<Self, String> {
        let mut code = Encoder::new();
        let mut memory = Vec::new();
        for payload in Parser::new(0).parse_all(module) {
            let payload = payload.map_err(|error| error.to_string())?;
            match &payload {
                Payload::ImportSection(imports) => {
                    memory = vec![0; initial_pages(imports.clone())? * WASM_PAGE_BYTES];
                }
                Payload::DataSection(segments) => {
                    write_data(segments.clone(), &mut memory)?;
                    continue;
                }
                // The start function clears what has no data, which an image has.
                Payload::DataCountSection { .. } | Payload::StartSection { .. } => continue,
                _ => {}
            }
            if let Some((id, range)) = payload.as_section() {
                code.section(&RawSection { id, data: &module[range] });
            }
        }
        Ok(Self { code: code.finish(), memory })
    }
}

fn initial_pages(imports: wasmparser::ImportSectionReader<'_>) -> Result<usize, String> {
    for import in imports.into_imports() {
        let import = import.map_err(|error| error.to_string())?;
        if let TypeRef::Memory(memory) = import.ty {
            return usize::try_from(memory.initial).map_err(|error| error.to_string());
        }
    }
    Err("the guest imports no memory".into())
}

fn write_data(segments: wasmparser::DataSectionReader<'_>, memory: &mut [u8]) -> Result<(), String> {
    for segment in segments {
        let segment = segment.map_err(|error| error.to_string())?;
        let DataKind::Active { offset_expr, .. } = segment.kind else {
            return Err("the guest has data that are not placed".into());
        };
        let operator = offset_expr.get_operators_reader().read().map_err(|error| error.to_string())?;
        let Operator::I32Const { value } = operator else {
            return Err("the guest has data at a place that is not constant".into());
        };
        let start = value.cast_unsigned() as usize;
        let target = memory.get_mut(start..start + segment.data.len());
        target.ok_or("the guest has data outside of its memory")?.copy_from_slice(segment.data);
    }
    Ok(())
}

/// A module with nothing but a memory that begins with these bytes. wasmtime maps it copy-on-write into each instance.
pub(crate) fn image_module(memory: &[u8]) -> Vec<u8> {
    let mut memories = MemorySection::new();
    memories.memory(MemoryType {
        minimum: memory.len().div_ceil(WASM_PAGE_BYTES) as u64,
        maximum: None,
        memory64: false,
        shared: false,
        page_size_log2: None,
    });
    let mut exports = ExportSection::new();
    exports.export(MEMORY, ExportKind::Memory, 0);
    let mut data = DataSection::new();
    // Pages of nothing before and after the rest are not kept.
    let start = memory.iter().position(|byte| *byte != 0).unwrap_or(0);
    let end = memory.iter().rposition(|byte| *byte != 0).map_or(start, |last| last + 1);
    let offset = ConstExpr::i32_const(u32::try_from(start).unwrap_or(0).cast_signed());
    data.active(0, &offset, memory[start..end].iter().copied());
    let mut module = Encoder::new();
    module.section(&memories).section(&exports).section(&data);
    module.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guest_comes_apart_into_code_and_memory() {
        let guest = Guest::take_apart(GUEST).unwrap();
        assert!(guest.code.len() > 500_000 && guest.memory.len() > STACK_BYTES);
        assert!(guest.memory[..STACK_BYTES].iter().all(|byte| *byte == 0), "the stack comes first");
        let imports: Vec<_> = Parser::new(0)
            .parse_all(&guest.code)
            .filter_map(|payload| match payload.unwrap() {
                Payload::ImportSection(imports) => Some(imports),
                _ => None,
            })
            .flat_map(|imports| imports.into_imports().map(|import| import.unwrap().name.to_owned()))
            .collect();
        for import in &imports {
            assert!(
                ["memory", "call", "log", "now", "random", "ask", "take"].contains(&import.as_str()),
                "the guest reaches for {import}"
            );
        }
    }

    #[test]
    fn image_has_the_memory_and_no_code() {
        let mut memory = vec![0; 3 * WASM_PAGE_BYTES];
        memory[70_000] = 7;
        let image = image_module(&memory);
        assert!(image.len() < 100, "{} bytes", image.len());
        let again = Parser::new(0).parse_all(&image).find_map(|payload| match payload.unwrap() {
            Payload::DataSection(segments) => {
                let mut again = vec![0; memory.len()];
                write_data(segments, &mut again).unwrap();
                Some(again)
            }
            _ => None,
        });
        assert_eq!(again, Some(memory));
    }
}
