//! The compiled code of a handler, and the image that its memory begins as.

use wasmtime::{Engine, Instance, InstancePre, Linker, Module, ModuleExport, Store};

use crate::call_state::CallState;
use crate::engine::WasmEngine;
use crate::interface::{ALLOCATE, EXECUTE, INITIALIZE, MEMORY, RESUME};
use crate::memory::fault;

/// Code that is linked to the host's functions, and an image. Instances are made here and nowhere else; wasmtime maps the image
/// copy-on-write into each.
pub struct Code {
    parts: Parts,
    pub(crate) exports: ExportPlaces,
}

enum Parts {
    /// A module with its own data. Handlers with the same bytes share one.
    Whole(InstancePre<CallState>),
    /// Code that many handlers share, and a module with nothing but the memory of this one, which the code imports.
    Shared { code: Module, imports: Vec<Import>, image: InstancePre<CallState>, memory: ModuleExport },
}

/// What shared code imports, in its order.
enum Import {
    Memory,
    Function { module: String, name: String },
}

/// Where a module has what the host uses of it. Looked up by name once, and not for each call.
#[derive(Clone, Copy)]
pub(crate) struct ExportPlaces {
    pub(crate) memory: ModuleExport,
    pub(crate) allocate: ModuleExport,
    pub(crate) execute: ModuleExport,
    pub(crate) resume: Option<ModuleExport>,
    pub(crate) initialize: Option<ModuleExport>,
}

impl ExportPlaces {
    fn of(module: &Module) -> Result<Self, String> {
        let find = |name: &str| module.get_export_index(name);
        let needed = |name: &str| find(name).ok_or_else(|| format!("the module does not export `{name}`"));
        Ok(Self {
            memory: needed(MEMORY)?,
            allocate: needed(ALLOCATE)?,
            execute: needed(EXECUTE)?,
            resume: find(RESUME),
            initialize: find(INITIALIZE),
        })
    }
}

impl Code {
    pub(crate) fn compile(engine: &Engine, linker: &Linker<CallState>, bytes: &[u8]) -> Result<Self, String> {
        let module = Module::new(engine, bytes)
            .map_err(|error| format!("the module cannot be compiled: {error:#}"))?;
        let exports = ExportPlaces::of(&module)?;
        Ok(Self { parts: Parts::Whole(linked(linker, &module)?), exports })
    }

    /// The code of many handlers with the memory of one.
    pub fn with_image(engine: &WasmEngine, code: &Module, image: &Module) -> Result<Self, String> {
        let memory = image.get_export_index(MEMORY).ok_or("the image has no memory")?;
        let imports = code.imports().map(|import| match import.ty().memory() {
            Some(_) => Import::Memory,
            None => Import::Function { module: import.module().to_owned(), name: import.name().to_owned() },
        });
        let (code, imports) = (code.clone(), imports.collect());
        let exports = ExportPlaces::of(&code)?;
        let image = linked(engine.linker(), image)?;
        Ok(Self { parts: Parts::Shared { code, imports, image, memory }, exports })
    }

    /// A new instance in the store, in the state that the module or the image describes.
    pub(crate) async fn instantiate(
        &self,
        engine: &WasmEngine,
        store: &mut Store<CallState>,
    ) -> wasmtime::Result<Instance> {
        match &self.parts {
            Parts::Whole(linked) => linked.instantiate_async(store).await,
            Parts::Shared { code, imports, image, memory } => {
                let image = image.instantiate_async(&mut *store).await?;
                let memory = image.get_module_export(&mut *store, memory);
                let memory = memory.ok_or_else(|| fault("its image has no memory"))?;
                let mut found = Vec::with_capacity(imports.len());
                for import in imports {
                    found.push(match import {
                        Import::Memory => memory.clone(),
                        Import::Function { module, name } => {
                            engine.linker().get(&mut *store, module, name)?
                        }
                    });
                }
                Instance::new_async(store, code, &found).await
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
