//! What a module and the host are to each other: names, types and limits. `docs/WASM.md` is its description for authors.

use wasmparser::{ValType, WasmFeatures};

/// The name that every import is made from.
pub(crate) const IMPORT_MODULE: &str = "quarterdeck";

/// The linear memory, which the host reads and writes.
pub(crate) const MEMORY: &str = "memory";
/// Sets the module up, where its language needs that. Called once, before anything else.
pub(crate) const INITIALIZE: &str = "_initialize";
/// Gives the host room to write into: bytes in, address out, zero for none.
pub(crate) const ALLOCATE: &str = "allocate";
/// Starts the call: address and length of its JSON in, an [`Outcome`] out.
pub(crate) const EXECUTE: &str = "execute";
/// Goes on with the result of a request: its id, address and length of the JSON in, an [`Outcome`] out.
pub(crate) const RESUME: &str = "resume";
/// The import that begins a request, for which a module needs [`RESUME`].
pub(crate) const CALL: &str = "call";

/// A function of the interface.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) params: &'static [ValType],
    pub(crate) results: &'static [ValType],
}

const I32: ValType = ValType::I32;
const I64: ValType = ValType::I64;

/// The functions that a module may import.
pub(crate) const IMPORTS: [Function; 4] = [
    Function { name: CALL, params: &[I32, I32, I32, I32], results: &[I32] },
    Function { name: "log", params: &[I32, I32, I32], results: &[] },
    Function { name: "now", params: &[], results: &[I64] },
    Function { name: "random", params: &[I32, I32], results: &[] },
];

/// The functions that a module exports.
pub(crate) const EXPORTS: [Function; 4] = [
    Function { name: INITIALIZE, params: &[], results: &[] },
    Function { name: ALLOCATE, params: &[I32], results: &[I32] },
    Function { name: EXECUTE, params: &[I32, I32], results: &[I64] },
    Function { name: RESUME, params: &[I32, I32, I32], results: &[I64] },
];

/// What modules may use of the language: the second edition of the specification, and what compilers of today write without being
/// asked. Not threads, because an instance has one; not a second or a 64-bit memory, because the slots are small; not the
/// parts of the language whose result depends on the processor; not references to the host's objects, of which it gives none.
pub(crate) const FEATURES: WasmFeatures = WasmFeatures::WASM2
    .difference(WasmFeatures::GC_TYPES)
    .union(WasmFeatures::TAIL_CALL)
    .union(WasmFeatures::EXTENDED_CONST);

/// Size of a file. The compiler of folders has the same limit for every file.
pub(crate) const MAX_MODULE_BYTES: usize = 1 << 20;
/// Functions of a module.
pub(crate) const MAX_FUNCTIONS: u32 = 20_000;
/// Local variables of all functions together. A few bytes declare fifty thousand, each of which costs the compiler time.
pub(crate) const MAX_LOCALS: u64 = 500_000;
/// Elements of a module's table.
pub(crate) const MAX_TABLE_ELEMENTS: usize = 20_000;
/// Size of a memory, in bytes.
pub(crate) const MAX_MEMORY_BYTES: usize = 64 << 20;
/// What the runtime may need to keep of an instance besides its memory, in bytes: globals, tables of functions.
pub(crate) const MAX_INSTANCE_BYTES: usize = 1 << 20;

/// What `execute` and `resume` return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The module waits for a request.
    Waiting,
    /// The answer lies there.
    Finished { address: u32, length: u32 },
}

impl Outcome {
    /// Zero, or the address in the upper half and the length in the lower one.
    pub(crate) fn decode(value: i64) -> Self {
        let value = value.cast_unsigned();
        match value {
            0 => Self::Waiting,
            _ => Self::Finished { address: (value >> 32) as u32, length: (value & 0xffff_ffff) as u32 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcome_has_the_address_above_the_length() {
        assert_eq!(Outcome::decode(0), Outcome::Waiting);
        assert_eq!(Outcome::decode((7 << 32) | 9), Outcome::Finished { address: 7, length: 9 });
        assert_eq!(Outcome::decode(-1), Outcome::Finished { address: u32::MAX, length: u32::MAX });
    }
}
