//! One instance: a module's code with a memory, globals and a table that no other call has used, for one call.

use std::sync::Arc;

use wasmtime::{
    Extern, Func, Instance, Memory, ModuleExport, Store, Trap, TypedFunc, WasmBacktrace, WasmParams,
    WasmResults,
};

use crate::call_slot::CallSlot;
use crate::call_state::CallState;
use crate::code::{Code, ExportPlaces};
use crate::ending::Ending;
use crate::engine::WasmEngine;
use crate::fetch::FetchResponse;
use crate::interface::{ALLOCATE, Outcome};
use crate::memory::{InterfaceFault, bytes, bytes_mut, fault};
use crate::request::Request;

/// A memory above this takes milliseconds to give back.
const LARGE_MEMORY_BYTES: usize = 4 << 20;
/// Functions of a trap that are named, the innermost first.
const MAX_NAMED_FRAMES: usize = 8;

/// The instance of a call. It is made with the first step and dropped with the call.
pub(crate) struct CallInstance {
    store: Store<CallState>,
    exports: Option<Exports>,
    code: Arc<Code>,
    engine: Arc<WasmEngine>,
    /// Free again only when the store is gone, which holds the memory. So it stands last.
    slot: Option<CallSlot>,
}

/// What the host uses of an instance.
#[derive(Clone)]
struct Exports {
    memory: Memory,
    allocate: TypedFunc<u32, u32>,
    execute: TypedFunc<(u32, u32), i64>,
    /// Few calls come to need its type, which takes a while to check.
    resume: Option<Func>,
}

/// What an instance goes on with.
pub(crate) enum Input {
    /// The call's JSON.
    Start(String),
    /// The result of a request, as JSON.
    Result { id: u32, text: String },
}

/// Where an instance stands after a step.
pub(crate) enum StepOutcome {
    Ended(Ending),
    Waiting,
}

impl CallInstance {
    pub(crate) fn new(engine: Arc<WasmEngine>, code: Arc<Code>, state: CallState, slot: CallSlot) -> Self {
        let mut store = Store::new(engine.wasmtime(), state);
        store.limiter(|state| &mut state.limiter);
        // A step yields after each time slice; what polls it decides whether it goes on.
        store.epoch_deadline_async_yield_and_update(1);
        Self { store, exports: None, code, engine, slot: Some(slot) }
    }

    /// Runs until the module has ended or waits for something. Between two polls it may move to another thread; dropped, it
    /// stops where it is.
    pub(crate) async fn step(mut self, input: Input) -> (Self, StepOutcome) {
        let _running = self.engine.count_step();
        let outcome = self.enter(input).await;
        let outcome = outcome.unwrap_or_else(|error| StepOutcome::Ended(self.ending_of(&error)));
        (self, outcome)
    }

    /// Whether it is one of this code.
    pub(crate) fn runs(&self, code: &Arc<Code>) -> bool {
        Arc::ptr_eq(&self.code, code)
    }

    /// Gives the place among the calls up, although the memory is not cleared yet.
    pub(crate) fn release_slot(&mut self) {
        self.slot = None;
    }

    /// The requests of the last step.
    pub(crate) fn take_begun(&mut self) -> Vec<(u32, Request)> {
        self.store.data_mut().take_begun()
    }

    /// Requests that the handler does not wait for any more.
    pub(crate) fn take_cancelled(&mut self) -> Vec<u32> {
        self.store.data_mut().take_cancelled()
    }

    /// Whether the handler still waits for a request.
    pub(crate) fn is_open(&self, id: u32) -> bool {
        self.store.data().is_open(id)
    }

    /// A response as the handler is told of it.
    pub(crate) fn present(&mut self, id: u32, response: FetchResponse) -> String {
        self.store.data_mut().present(id, response)
    }

    /// Whether dropping it takes longer than a task should be held up.
    pub(crate) fn is_large(&self) -> bool {
        self.exports
            .as_ref()
            .is_some_and(|exports| exports.memory.data_size(&self.store) > LARGE_MEMORY_BYTES)
    }

    async fn enter(&mut self, input: Input) -> wasmtime::Result<StepOutcome> {
        self.store.set_epoch_deadline(1);
        let returned = match input {
            Input::Start(text) => {
                let exports = self.instantiate().await?;
                let (address, length) = self.write(&exports, &text).await?;
                exports.execute.call_async(&mut self.store, (address, length)).await?
            }
            Input::Result { id, text } => {
                self.store.data_mut().close(id);
                let exports = self.exports.clone().ok_or_else(|| fault("it has not been started"))?;
                let resume = exports.resume.ok_or_else(|| fault("it does not export `resume`"))?;
                let resume = resume.typed::<(u32, u32, u32), i64>(&self.store)?;
                let (address, length) = self.write(&exports, &text).await?;
                resume.call_async(&mut self.store, (id, address, length)).await?
            }
        };
        self.read(Outcome::decode(returned))
    }

    async fn instantiate(&mut self) -> wasmtime::Result<Exports> {
        let instance = self.code.instantiate(&self.engine, &mut self.store).await?;
        let exports = Exports::of(&instance, &self.code.exports, &mut self.store)?;
        self.exports = Some(exports.clone());
        if let Some(initialize) = &self.code.exports.initialize {
            let initialize = typed::<(), ()>(&instance, initialize, &mut self.store)?;
            initialize.call_async(&mut self.store, ()).await?;
        }
        Ok(exports)
    }

    /// Writes a text where the module wants it.
    async fn write(&mut self, exports: &Exports, text: &str) -> wasmtime::Result<(u32, u32)> {
        let length = u32::try_from(text.len()).map_err(|_| fault("the text is larger than any memory"))?;
        let address = exports.allocate.call_async(&mut self.store, length).await?;
        if address == 0 {
            return Err(fault(format!("`{ALLOCATE}` has no room for {length} bytes")));
        }
        let memory = exports.memory.data_mut(&mut self.store);
        let what = format!("the room that `{ALLOCATE}` returned");
        bytes_mut(memory, address, length, &what)?.copy_from_slice(text.as_bytes());
        Ok((address, length))
    }

    fn read(&self, outcome: Outcome) -> wasmtime::Result<StepOutcome> {
        let (address, length) = match outcome {
            Outcome::Waiting => return Ok(StepOutcome::Waiting),
            Outcome::Finished { address, length } => (address, length),
        };
        let memory = self.exports.as_ref().map_or(&[][..], |exports| exports.memory.data(&self.store));
        let answer = bytes(memory, address, length, "its answer")?;
        // Before it is copied.
        if answer.len() > self.store.data().max_returned_bytes {
            return Ok(StepOutcome::Ended(Ending::OverLimit("answer size")));
        }
        Ok(StepOutcome::Ended(Ending::Returned(answer.to_vec())))
    }

    /// What an error inside a step means for the call.
    fn ending_of(&self, error: &wasmtime::Error) -> Ending {
        if error.downcast_ref::<Trap>() == Some(&Trap::StackOverflow) {
            return Ending::OverLimit("stack");
        }
        // What a module does that got no memory is beside the point.
        if self.store.data().limiter.has_refused_memory {
            return Ending::OverLimit("memory");
        }
        let message = match (error.downcast_ref::<InterfaceFault>(), error.downcast_ref::<Trap>()) {
            (Some(fault), _) => fault.to_string(),
            (None, Some(trap)) => trap.to_string(),
            (None, None) => format!("{:#}", error.root_cause()),
        };
        Ending::Crashed(message + &place_of(error))
    }
}

impl Exports {
    fn of(instance: &Instance, at: &ExportPlaces, store: &mut Store<CallState>) -> wasmtime::Result<Self> {
        let memory = instance.get_module_export(&mut *store, &at.memory).and_then(Extern::into_memory);
        let resume = at.resume.and_then(|resume| instance.get_module_export(&mut *store, &resume));
        Ok(Self {
            memory: memory.ok_or_else(|| fault("it does not export its memory"))?,
            allocate: typed(instance, &at.allocate, store)?,
            execute: typed(instance, &at.execute, store)?,
            resume: resume.and_then(Extern::into_func),
        })
    }
}

fn typed<P: WasmParams, R: WasmResults>(
    instance: &Instance,
    at: &ModuleExport,
    store: &mut Store<CallState>,
) -> wasmtime::Result<TypedFunc<P, R>> {
    let function = instance.get_module_export(&mut *store, at).and_then(Extern::into_func);
    function.ok_or_else(|| fault("what it exports is no function"))?.typed(store)
}

/// The functions that a trap happened in, by the names that the module has for them.
fn place_of(error: &wasmtime::Error) -> String {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else { return String::new() };
    let frames = backtrace.frames().iter().take(MAX_NAMED_FRAMES).map(|frame| match frame.func_name() {
        Some(name) => format!("`{}`", name.escape_debug()),
        None => format!("function {}", frame.func_index()),
    });
    let frames: Vec<_> = frames.collect();
    if frames.is_empty() { String::new() } else { format!(", in {}", frames.join(", called by ")) }
}
