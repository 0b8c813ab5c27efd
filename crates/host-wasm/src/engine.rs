//! The engine that all handlers of a host share: wasmtime within limits, the host's functions, and the code of the modules.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use quarterdeck_contracts::sha256;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, Linker, PoolingAllocationConfig, WasmFeatures,
};

use crate::call_state::CallState;
use crate::code::Code;
use crate::config::HostConfig;
use crate::imports;
use crate::interface::{FEATURES, MAX_INSTANCE_BYTES, MAX_MEMORY_BYTES, MAX_TABLE_ELEMENTS};
use crate::module_check;
use crate::ticker::{RunningStep, Ticker};

/// Room on a stack for the host's own functions, which run on the same stack as the code that calls them.
const HOST_STACK_BYTES: usize = 512 << 10;

/// Addresses of a slot for the memory of an instance.
#[derive(Clone, Copy)]
struct SlotAddresses {
    reserved: u64,
    /// After them, which must not be touched.
    guard: u64,
}

impl SlotAddresses {
    /// All that a 32-bit address can reach, so that code need not check any.
    const WHOLE: Self = Self { reserved: 4 << 30, guard: 32 << 20 };

    /// No more than the memory itself, where addresses are scarce. The code checks each.
    fn scarce(memory_bytes: usize) -> Self {
        Self { reserved: memory_bytes as u64, guard: 64 << 10 }
    }
}

/// Compiles modules, and has the slots that their instances live in.
pub struct WasmEngine {
    engine: Engine,
    linker: Linker<CallState>,
    ticker: Ticker,
    /// What is compiled, by the digest of its bytes. It is kept as long as a handler has it, so that of two registries with the
    /// same tools the second compiles nothing.
    codes: Mutex<HashMap<String, Weak<Code>>>,
}

impl WasmEngine {
    /// Reserves the slots and starts the ticker, or says in one sentence why it cannot. `add_imports` gives the modules more
    /// functions of the host's than every handler has.
    pub fn new(
        config: &HostConfig,
        add_imports: impl FnOnce(&mut Linker<CallState>) -> wasmtime::Result<()>,
    ) -> Result<Self, String> {
        let scarce = SlotAddresses::scarce(config.memory_bytes);
        let engine = Engine::new(&engine_config(config, SlotAddresses::WHOLE))
            .or_else(|_| Engine::new(&engine_config(config, scarce)))
            .map_err(|error| {
                format!(
                    "WebAssembly needs {} GiB of addresses for {} calls, and cannot start: {error:#}. Raise the limit on \
                     virtual memory (`ulimit -v`)",
                    reserved_bytes(config, scarce) >> 30,
                    config.max_calls
                )
            })?;
        let mut linker = Linker::new(&engine);
        imports::add_to(&mut linker)
            .and_then(|()| add_imports(&mut linker))
            .map_err(|error| format!("WebAssembly cannot start: {error:#}"))?;
        let ticker = Ticker::start(engine.clone(), config.time_slice)
            .map_err(|error| format!("WebAssembly cannot start a thread: {error}"))?;
        Ok(Self { engine, linker, ticker, codes: Mutex::default() })
    }

    /// What compiles and instantiates.
    pub fn wasmtime(&self) -> &Engine {
        &self.engine
    }

    /// The code of a module, compiled unless a handler has it already.
    pub(crate) fn code(&self, bytes: &[u8]) -> Result<Arc<Code>, String> {
        let digest = sha256(bytes);
        if let Some(code) = self.known(&digest) {
            return Ok(code);
        }
        if let Some(problem) = module_check::problems(bytes).first() {
            return Err(problem.message().to_owned());
        }
        // Not under the lock: compiling takes up to a second, and two handlers may be loaded at once.
        let code = Arc::new(Code::compile(&self.engine, &self.linker, bytes)?);
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|_, code| code.strong_count() > 0);
        codes.insert(digest, Arc::downgrade(&code));
        Ok(code)
    }

    /// How many modules are compiled at this moment.
    pub(crate) fn compiled(&self) -> usize {
        let codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        codes.values().filter(|code| code.strong_count() > 0).count()
    }

    /// The functions that instances import.
    pub(crate) fn linker(&self) -> &Linker<CallState> {
        &self.linker
    }

    /// Interrupts what runs after each time slice, as long as the result lives.
    pub fn count_step(&self) -> RunningStep {
        self.ticker.count_step()
    }

    fn known(&self, digest: &str) -> Option<Arc<Code>> {
        self.codes.lock().unwrap_or_else(PoisonError::into_inner).get(digest)?.upgrade()
    }
}

fn engine_config(limits: &HostConfig, addresses: SlotAddresses) -> Config {
    let mut config = Config::new();
    config
        .wasm_features(WasmFeatures::all().difference(FEATURES), false)
        .wasm_features(FEATURES, true)
        .epoch_interruption(true)
        .max_wasm_stack(limits.stack_bytes)
        .async_stack_size(limits.stack_bytes + HOST_STACK_BYTES)
        .memory_reservation(addresses.reserved)
        .memory_guard_size(addresses.guard)
        .memory_reservation_for_growth(0)
        .memory_init_cow(can_map_images())
        .allocation_strategy(InstanceAllocationStrategy::Pooling(slots(limits)));
    config
}

/// An image is a file in memory, for which a limit on the size of files holds as well. Where it could not be as large as a memory,
/// instances are made by copying.
#[cfg(unix)]
fn can_map_images() -> bool {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    limit.is_none_or(|bytes| bytes >= MAX_MEMORY_BYTES as u64)
}

#[cfg(not(unix))]
fn can_map_images() -> bool {
    true
}

fn slots(limits: &HostConfig) -> PoolingAllocationConfig {
    // One more than there are calls, for the instance that is still to be cleared.
    let max_instances = u32::try_from(limits.max_calls.saturating_add(1)).unwrap_or(u32::MAX);
    let mut slots = PoolingAllocationConfig::new();
    slots
        // Code and image of a handler in JavaScript are an instance each.
        .total_core_instances(max_instances.saturating_mul(2))
        .total_memories(max_instances)
        .total_tables(max_instances)
        .total_stacks(max_instances)
        .max_core_instance_size(MAX_INSTANCE_BYTES)
        .max_memories_per_module(1)
        .max_tables_per_module(1)
        .table_elements(MAX_TABLE_ELEMENTS)
        .max_memory_size(limits.memory_bytes)
        .max_unused_warm_slots(limits.max_warm_slots)
        .linear_memory_keep_resident(limits.keep_resident_bytes)
        .table_keep_resident(MAX_TABLE_ELEMENTS * size_of::<usize>())
        // It would be faster by a seventh. In this release it does not reset pages that were swapped out, so that the next call
        // would read them.
        .pagemap_scan(Enabled::No);
    slots
}

fn reserved_bytes(config: &HostConfig, addresses: SlotAddresses) -> u64 {
    let table_bytes = MAX_TABLE_ELEMENTS * size_of::<usize>();
    let others = (config.stack_bytes + HOST_STACK_BYTES + table_bytes) as u64;
    (addresses.reserved + addresses.guard + others).saturating_mul(config.max_calls as u64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_beyond_the_address_space_are_refused_with_what_to_do() {
        let config = HostConfig { max_calls: 4 << 20, ..HostConfig::default() };
        let refusal = WasmEngine::new(&config, |_| Ok(())).err().unwrap();
        assert!(
            refusal.starts_with(
                "WebAssembly needs 267121 GiB of addresses for 4194304 calls, and cannot start: "
            ),
            "{refusal}"
        );
        assert!(refusal.ends_with("Raise the limit on virtual memory (`ulimit -v`)"), "{refusal}");
    }

    #[test]
    fn pages_are_never_looked_for_in_the_pagemap() {
        assert_eq!(format!("{:?}", slots(&HostConfig::default()).get_pagemap_scan()), "No");
    }

    #[test]
    fn the_usual_slots_take_less_than_seventy_gibibytes_where_addresses_are_scarce() {
        let config = HostConfig::default();
        assert!(reserved_bytes(&config, SlotAddresses::scarce(config.memory_bytes)) < 70 << 30);
    }
}
