//! The compiled code of a handler, and the image that its memory begins as.

use wasmtime::{Engine, Instance, InstancePre, Linker, Module, Store};

use crate::call_state::CallState;
use crate::engine::WasmEngine;
use crate::interface::MEMORY;
use crate::memory::fault;

/// Code that is linked to the host's functions, and an image. Instances are made here and nowhere else; wasmtime maps the image
/// copy-on-write into each.
pub struct Code(Parts);

enum Parts {
    /// A module with its own data. Handlers with the same bytes share one.
    Whole(InstancePre<CallState>),
    /// Code that many handlers share, and a module with nothing but the memory of this one, which the code imports.
    Shared { code: Module, image: InstancePre<CallState> },
}

impl Code {
    pub(crate) fn compile(engine: &Engine, linker: &Linker<CallState>, bytes: &[u8]) -> Result<Self, String> {
        let module = Module::new(engine, bytes)
            .map_err(|error| format!("the module cannot be compiled: {error:#}"))?;
        let linked = linked(linker, &module)?;
        Ok(Self(Parts::Whole(linked)))
    }

    /// The code of many handlers with the memory of one.
    pub fn with_image(engine: &WasmEngine, code: &Module, image: &Module) -> Result<Self, String> {
        let image = linked(engine.linker(), image)?;
        Ok(Self(Parts::Shared { code: code.clone(), image }))
    }

    /// A new instance in the store, in the state that the module or the image describes.
    pub(crate) async fn instantiate(
        &self,
        engine: &WasmEngine,
        store: &mut Store<CallState>,
    ) -> wasmtime::Result<Instance> {
        match &self.0 {
            Parts::Whole(linked) => linked.instantiate_async(store).await,
            Parts::Shared { code, image } => {
                let image = image.instantiate_async(&mut *store).await?;
                let memory = image.get_memory(&mut *store, MEMORY);
                let memory = memory.ok_or_else(|| fault("its image has no memory"))?;
                let mut imports = Vec::with_capacity(code.imports().len());
                for import in code.imports() {
                    imports.push(match import.ty().memory() {
                        Some(_) => memory.into(),
                        None => engine
                            .linker()
                            .get_by_import(&mut *store, &import)
                            .ok_or_else(|| fault(format!("there is no function {}", import.name())))?,
                    });
                }
                Instance::new_async(store, code, &imports).await
            }
        }
    }
}

fn linked(linker: &Linker<CallState>, module: &Module) -> Result<InstancePre<CallState>, String> {
    // Otherwise the first call would wait for it.
    module.initialize_copy_on_write_image().map_err(|error| format!("the module has no image: {error:#}"))?;
    linker
        .instantiate_pre(module)
        .map_err(|error| format!("the module does not meet the interface: {error:#}"))
}
