//! The engine of this process: the guest compiled once, and the two memories that its roles begin with.

use std::sync::OnceLock;

use quarterdeck_host_wasm::{HostConfig, WasmEngine};
use wasmtime::{Linker, Module};

use crate::code_cache::CodeCache;
use crate::guest::{GUEST, Guest, JS_STACK_BYTES, image_module};
use crate::offline::{self, Imports, NoImports, OfflineInstance, OfflineState};
use crate::program::HOST_MODULES;

/// Instances outside of calls that there may be at once: handlers that are loaded or inspected.
const MAX_OFFLINE_INSTANCES: usize = 64;
/// What a source may take to be compiled, and a handler to be inspected.
const COMPILER_MEMORY_BYTES: u32 = 256 << 20;
/// Recursion of JavaScript meets QuickJS's own limit before this one.
pub(crate) const WASM_STACK_BYTES: usize = 2 << 20;

/// QuickJS, compiled, with everything that is the same for all handlers.
pub(crate) struct JsEngine {
    wasm: WasmEngine,
    guest: Guest,
    code: Module,
    linker: Linker<OfflineState>,
    /// The memory of the role that parses.
    compiler: Module,
    /// The memory of the role that runs, with the host's own modules.
    runner: Module,
}

impl JsEngine {
    /// The engine, started with the first use in this process.
    pub(crate) fn get() -> Result<&'static Self, String> {
        static ENGINE: OnceLock<Result<JsEngine, String>> = OnceLock::new();
        ENGINE.get_or_init(Self::start).as_ref().map_err(String::clone)
    }

    fn start() -> Result<Self, String> {
        let config = HostConfig {
            max_calls: MAX_OFFLINE_INSTANCES,
            memory_bytes: COMPILER_MEMORY_BYTES as usize + (16 << 20),
            stack_bytes: WASM_STACK_BYTES,
            max_warm_slots: 1,
            ..HostConfig::default()
        };
        let wasm = WasmEngine::new(&config, |_| Ok(()))?;
        let guest = Guest::take_apart(GUEST)?;
        let code = CodeCache::of_user().module(wasm.wasmtime(), &guest.code)?;
        let linker = offline::linker(wasm.wasmtime()).map_err(|error| format!("{error:#}"))?;
        let empty = image(&wasm, &guest.memory)?;
        let mut engine = Self { wasm, guest, code, linker, compiler: empty.clone(), runner: empty };
        engine.compiler = engine.booted_compiler()?;
        engine.runner = engine.booted_runner()?;
        Ok(engine)
    }

    fn booted_compiler(&self) -> Result<Module, String> {
        let mut compiler = self.compiler(NoImports)?;
        compiler.call::<_, ()>("boot_compiler", (COMPILER_MEMORY_BYTES, JS_STACK_BYTES))?;
        image(&self.wasm, &compiler.memory())
    }

    fn booted_runner(&self) -> Result<Module, String> {
        let mut compiler = self.compiler(NoImports)?;
        let mut runner = self.runner(NoImports)?;
        runner.call_checked("boot", JS_STACK_BYTES)?;
        for (name, source) in HOST_MODULES {
            let bytecode = compiler.compile(name, source, DebugInfo::Stripped)?;
            runner.declare(name, &bytecode)?;
        }
        image(&self.wasm, &runner.memory())
    }

    /// An instance that compiles and inspects.
    pub(crate) fn compiler(&self, imports: impl Imports + 'static) -> Result<OfflineInstance, String> {
        OfflineInstance::new(&self.wasm, &self.linker, &self.code, &self.compiler, imports)
    }

    /// An instance that a handler can be loaded into.
    pub(crate) fn runner(&self, imports: impl Imports + 'static) -> Result<OfflineInstance, String> {
        OfflineInstance::new(&self.wasm, &self.linker, &self.code, &self.runner, imports)
    }

    /// The guest's code for another engine, which calls run on.
    pub(crate) fn code_for(&self, wasm: &WasmEngine) -> Result<Module, String> {
        CodeCache::of_user().module(wasm.wasmtime(), &self.guest.code)
    }
}

/// Whether bytecode remembers lines and columns, for stack traces. It is smaller without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DebugInfo {
    Kept,
    Stripped,
}

/// A memory that instances of an engine can begin with.
pub(crate) fn image(wasm: &WasmEngine, memory: &[u8]) -> Result<Module, String> {
    Module::new(wasm.wasmtime(), image_module(memory))
        .map_err(|error| format!("there is no image: {error:#}"))
}
