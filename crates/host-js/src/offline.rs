//! An instance of the guest outside of any call: it compiles, is asked about sources, or loads a handler to become an image.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::FutureExt;
use quarterdeck_host_wasm::{RunningStep, WasmEngine, bytes, bytes_mut, fault};
use wasmtime::{
    Caller, Engine, Extern, Instance, Linker, Memory, Module, Store, Trap, UpdateDeadline, WasmParams,
    WasmResults,
};

use crate::guest::STACK_BYTES;
use crate::js_engine::DebugInfo;
use crate::question::{IMPORT_MODULE, Places, Question, texts};

/// How long one function of the guest may take when no code of a handler's runs.
const USUAL_TIMEOUT: Duration = Duration::from_secs(10);

/// How imports are followed.
pub(crate) trait Imports: Send {
    /// The module that an import leads to, or why there is none.
    fn resolve(&mut self, base: &str, specifier: &str) -> Result<String, String>;

    /// The source of a module, while a handler is inspected.
    fn source(&mut self, _: &str) -> String {
        String::new()
    }

    /// Something is wrong with the module of this name, or with the probe itself if that is empty.
    fn report(&mut self, _: &str, _: &str, _: &str) {}
}

/// For instances that follow none but the host's own.
pub(crate) struct NoImports;

impl Imports for NoImports {
    fn resolve(&mut self, _: &str, specifier: &str) -> Result<String, String> {
        Ok(specifier.to_owned())
    }
}

/// What the guest's imports see.
pub(crate) struct OfflineState {
    imports: Box<dyn Imports>,
    memory: Option<Memory>,
    reply: Vec<u8>,
    until: Instant,
    /// Whether the clock or randomness was asked for: what was computed from it must not be the same in every call.
    is_impure: bool,
}

/// The functions of an instance outside of a call.
pub(crate) fn linker(engine: &Engine) -> wasmtime::Result<Linker<OfflineState>> {
    let mut linker = Linker::new(engine);
    linker.func_wrap("quarterdeck", "call", |_: u32, _: u32, _: u32, _: u32| 0_u32)?;
    linker.func_wrap("quarterdeck", "log", |_: u32, _: u32, _: u32| {})?;
    linker.func_wrap("quarterdeck", "now", now)?;
    linker.func_wrap("quarterdeck", "random", random)?;
    linker.func_wrap(IMPORT_MODULE, "ask", ask)?;
    linker.func_wrap(IMPORT_MODULE, "take", take)?;
    Ok(linker)
}

#[expect(clippy::disallowed_methods, reason = "before there is a call there is no clock of a call")]
fn now(mut caller: Caller<'_, OfflineState>) -> i64 {
    caller.data_mut().is_impure = true;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn random(mut caller: Caller<'_, OfflineState>, address: u32, length: u32) -> wasmtime::Result<()> {
    caller.data_mut().is_impure = true;
    let (memory, _) = memory_of(&mut caller)?;
    getrandom::fill(bytes_mut(memory, address, length, "the place for its random bytes")?)
        .map_err(|error| fault(format!("there is no randomness: {error}")))
}

#[expect(clippy::too_many_arguments, reason = "an import of WebAssembly takes numbers")]
fn ask(
    mut caller: Caller<'_, OfflineState>,
    question: u32,
    a: u32,
    a_length: u32,
    b: u32,
    b_length: u32,
    c: u32,
    c_length: u32,
) -> wasmtime::Result<u32> {
    let places: Places = (a, a_length, b, b_length, c, c_length);
    let (memory, state) = memory_of(&mut caller)?;
    let [a, b, c] = texts(memory, places)?;
    let question = Question::from_number(question).ok_or_else(|| fault("it asks an unknown question"))?;
    let answer = match question {
        Question::Resolve => crate::program::resolution(state.imports.resolve(&a, &b)),
        Question::Source => state.imports.source(&a),
        Question::SyntaxError => {
            state.imports.report(&a, &b, &c);
            String::new()
        }
        other => other.pure_answer([&a, &b, &c]).unwrap_or_default(),
    };
    state.reply = answer.into_bytes();
    u32::try_from(state.reply.len()).map_err(|_| fault("the answer is larger than any memory"))
}

fn take(mut caller: Caller<'_, OfflineState>, target: u32) -> wasmtime::Result<()> {
    let (memory, state) = memory_of(&mut caller)?;
    let reply = std::mem::take(&mut state.reply);
    let length = u32::try_from(reply.len()).map_err(|_| fault("the answer is larger than any memory"))?;
    bytes_mut(memory, target, length, "the room for an answer")?.copy_from_slice(&reply);
    Ok(())
}

fn memory_of<'a>(
    caller: &'a mut Caller<'_, OfflineState>,
) -> wasmtime::Result<(&'a mut [u8], &'a mut OfflineState)> {
    let memory = caller.data().memory.ok_or_else(|| fault("it has no memory"))?;
    Ok(memory.data_and_store_mut(caller))
}

/// An instance outside of any call.
pub(crate) struct OfflineInstance {
    store: Store<OfflineState>,
    memory: Memory,
    instance: Instance,
    _running: RunningStep,
}

impl OfflineInstance {
    pub(crate) fn new(
        engine: &WasmEngine,
        linker: &Linker<OfflineState>,
        code: &Module,
        image: &Module,
        imports: impl Imports + 'static,
    ) -> Result<Self, String> {
        let state = OfflineState {
            imports: Box::new(imports),
            memory: None,
            reply: Vec::new(),
            until: Instant::now() + USUAL_TIMEOUT,
            is_impure: false,
        };
        let mut store = Store::new(engine.wasmtime(), state);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|context| match Instant::now() < context.data().until {
            true => Ok(UpdateDeadline::Continue(1)),
            false => Err(Trap::Interrupt.into()),
        });
        let (memory, instance) = instantiate(&mut store, linker, code, image)
            .map_err(|error| format!("the JavaScript engine could not start: {error:#}"))?;
        Ok(Self { store, memory, instance, _running: engine.count_step() })
    }

    /// Calls a function of the guest.
    pub(crate) fn call<P: WasmParams + Sync, R: WasmResults + Sync>(
        &mut self,
        name: &str,
        params: P,
    ) -> Result<R, String> {
        self.store.data_mut().until = Instant::now() + USUAL_TIMEOUT;
        self.enter(name, params).map_err(|error| format!("the JavaScript engine failed: {error:#}"))
    }

    /// The same for a function that returns whether it has done its work.
    pub(crate) fn call_checked(&mut self, name: &str, params: impl WasmParams + Sync) -> Result<(), String> {
        match self.call::<_, u32>(name, params)? {
            0 => Err(format!("the JavaScript engine failed: `{name}` had no memory")),
            _ => Ok(()),
        }
    }

    fn enter<P: WasmParams + Sync, R: WasmResults + Sync>(
        &mut self,
        name: &str,
        params: P,
    ) -> wasmtime::Result<R> {
        let function = self.instance.get_typed_func::<P, R>(&mut self.store, name)?;
        at_once(function.call_async(&mut self.store, params))
    }

    /// Compiles a module to bytecode, under the name that imports will know it by.
    pub(crate) fn compile(
        &mut self,
        name: &str,
        source: &str,
        debug_info: DebugInfo,
    ) -> Result<Vec<u8>, String> {
        let (name, source_at) = (self.write(name)?, self.write(source)?);
        let is_stripped = u32::from(debug_info == DebugInfo::Stripped);
        let place = self.call::<_, u64>("compile", (name, source_at, length(source)?, is_stripped))?;
        match place {
            0 => Err("it cannot be compiled".into()),
            place => self.read(place),
        }
    }

    /// Declares a module.
    pub(crate) fn declare(&mut self, name: &str, bytecode: &[u8]) -> Result<(), String> {
        let (name, at) = (self.write(name)?, self.write_bytes(bytecode)?);
        let length = u32::try_from(bytecode.len()).map_err(|error| error.to_string())?;
        self.call_checked("declare", (name, at, length))
    }

    /// Reads the modules of a handler. Nothing, or the ending that says why it cannot be loaded.
    pub(crate) fn prepare(&mut self, entry: &str, memory_bytes: u32) -> Result<Option<Vec<u8>>, String> {
        let entry = self.write(entry)?;
        match self.call::<_, u64>("prepare", (entry, memory_bytes))? {
            0 => Ok(None),
            place => self.read(place).map(Some),
        }
    }

    /// Runs the top level of a handler that was prepared, within a time. `None` if it did not end; otherwise nothing, or the
    /// ending that says why it cannot be loaded.
    pub(crate) fn load(&mut self, timeout: Duration) -> Option<Option<Vec<u8>>> {
        self.store.data_mut().until = Instant::now() + timeout;
        let ending = match self.enter::<_, u64>("load", ()) {
            Ok(0) => None,
            Ok(place) => self.read(place).ok(),
            Err(error) if error.downcast_ref::<Trap>() == Some(&Trap::Interrupt) => return None,
            Err(error) => {
                Some(crate::answer::crash(&format!("the JavaScript engine failed: {:#}", error.root_cause())))
            }
        };
        Some(ending)
    }

    pub(crate) fn is_impure(&self) -> bool {
        self.store.data().is_impure
    }

    /// Writes a text, with a zero after it.
    pub(crate) fn write(&mut self, text: &str) -> Result<u32, String> {
        self.write_bytes(text.as_bytes())
    }

    fn write_bytes(&mut self, text: &[u8]) -> Result<u32, String> {
        let length = u32::try_from(text.len()).map_err(|error| error.to_string())?;
        let address = self.call::<_, u32>("allocate", length)?;
        let target = bytes_mut(self.memory.data_mut(&mut self.store), address, length, "the room for a text");
        target.map_err(|error| error.to_string())?.copy_from_slice(text);
        Ok(address)
    }

    fn read(&self, place: u64) -> Result<Vec<u8>, String> {
        let (address, length) = ((place >> 32) as u32, (place & 0xffff_ffff) as u32);
        let found = bytes(self.memory.data(&self.store), address, length, "its answer");
        Ok(found.map_err(|error| error.to_string())?.to_vec())
    }

    /// The memory as it is between two calls of functions, when nothing is on the stack.
    pub(crate) fn memory(&self) -> Vec<u8> {
        let mut memory = self.memory.data(&self.store).to_vec();
        memory[..STACK_BYTES].fill(0);
        memory
    }
}

/// Runs what waits for nothing on a stack of its own: that of a caller may be smaller than the guest needs.
fn at_once<T>(running: impl Future<Output = wasmtime::Result<T>>) -> wasmtime::Result<T> {
    running.now_or_never().unwrap_or_else(|| Err(fault("it waits outside of a call")))
}

pub(crate) fn length(text: &str) -> Result<u32, String> {
    u32::try_from(text.len()).map_err(|error| error.to_string())
}

fn instantiate(
    store: &mut Store<OfflineState>,
    linker: &Linker<OfflineState>,
    code: &Module,
    image: &Module,
) -> wasmtime::Result<(Memory, Instance)> {
    let image = at_once(Instance::new_async(&mut *store, image, &[]))?;
    let memory = image.get_memory(&mut *store, "memory").ok_or_else(|| fault("its image has no memory"))?;
    store.data_mut().memory = Some(memory);
    let mut imports = Vec::with_capacity(code.imports().len());
    for import in code.imports() {
        imports.push(match import.ty().memory() {
            Some(_) => Extern::Memory(memory),
            None => linker
                .get_by_import(&mut *store, &import)
                .ok_or_else(|| fault(format!("there is no function {}", import.name())))?,
        });
    }
    let instance = at_once(Instance::new_async(store, code, &imports))?;
    Ok((memory, instance))
}
