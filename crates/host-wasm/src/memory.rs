//! Reads and writes an instance's memory. Addresses and lengths are a module's own, and may be anything.

use std::fmt;
use std::ops::Range;

use wasmtime::{Caller, Extern, Memory};

use crate::call_state::CallState;
use crate::interface::MEMORY;

/// What a module did that its interface does not allow. It ends the call.
#[derive(Debug)]
pub(crate) struct InterfaceFault(pub(crate) String);

impl fmt::Display for InterfaceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InterfaceFault {}

/// The memory of the instance that calls the host. Its start function may call before the host has seen its exports.
pub fn memory_of(caller: &mut Caller<'_, CallState>) -> wasmtime::Result<Memory> {
    match caller.get_export(MEMORY) {
        Some(Extern::Memory(memory)) => Ok(memory),
        _ => Err(fault("it does not export its memory")),
    }
}

/// Where a text lies, if that is within the memory.
pub(crate) fn range(memory: &[u8], address: u32, length: u32) -> Option<Range<usize>> {
    let start = usize::try_from(address).ok()?;
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    (end <= memory.len()).then_some(start..end)
}

/// The bytes of a text that a module has told the host of; `what` names it.
pub fn bytes<'a>(memory: &'a [u8], address: u32, length: u32, what: &str) -> wasmtime::Result<&'a [u8]> {
    let range = range(memory, address, length).ok_or_else(|| fault(outside(what)))?;
    Ok(&memory[range])
}

/// The same, to be written.
pub fn bytes_mut<'a>(
    memory: &'a mut [u8],
    address: u32,
    length: u32,
    what: &str,
) -> wasmtime::Result<&'a mut [u8]> {
    let range = range(memory, address, length).ok_or_else(|| fault(outside(what)))?;
    Ok(&mut memory[range])
}

/// An error of a host function that ends the call.
pub fn fault(message: impl Into<String>) -> wasmtime::Error {
    wasmtime::Error::new(InterfaceFault(message.into()))
}

fn outside(what: &str) -> String {
    format!("{what} lies outside its memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_end_within_the_memory() {
        let memory = [0; 10];
        assert_eq!(range(&memory, 0, 10), Some(0..10));
        assert_eq!(range(&memory, 10, 0), Some(10..10));
        assert_eq!(range(&memory, 10, 1), None);
        assert_eq!(range(&memory, u32::MAX, u32::MAX), None);
    }
}
