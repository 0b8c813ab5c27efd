//! The compiled code of a module, and the image that its memory begins as.

use wasmtime::{Engine, InstancePre, Linker, Module};

use crate::call_state::CallState;

/// A module that is compiled and linked to the host's functions. Handlers with the same bytes share one.
///
/// Instances are made here and nowhere else. wasmtime keeps the module's data as an image that each instance maps copy-on-write;
/// a kind of handlers that shares its code, as those in JavaScript could, would have an image of its own for each handler: a
/// module with nothing but a memory, which is instantiated first and imported by the code.
pub(crate) struct Code {
    linked: InstancePre<CallState>,
}

impl Code {
    pub(crate) fn compile(engine: &Engine, linker: &Linker<CallState>, bytes: &[u8]) -> Result<Self, String> {
        let module = Module::new(engine, bytes)
            .map_err(|error| format!("the module cannot be compiled: {error:#}"))?;
        // Otherwise the first call would wait for it.
        module
            .initialize_copy_on_write_image()
            .map_err(|error| format!("the module has no image: {error:#}"))?;
        let linked = linker
            .instantiate_pre(&module)
            .map_err(|error| format!("the module does not meet the interface: {error:#}"))?;
        Ok(Self { linked })
    }

    /// A new instance in the store, in the state that the module describes.
    pub(crate) async fn instantiate(
        &self,
        store: &mut wasmtime::Store<CallState>,
    ) -> wasmtime::Result<wasmtime::Instance> {
        self.linked.instantiate_async(store).await
    }
}
