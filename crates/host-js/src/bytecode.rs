//! Modules compiled once, so that making an engine parses nothing.

use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::{Declared, WriteOptions};
use rquickjs::{CatchResultExt, Context, Ctx, Module, Runtime};

/// A module as the engine's own bytecode. It can only be made by [`Compiler::compile`], in this process: bytecode
/// from anywhere else could do anything to the engine.
#[derive(Debug)]
pub(crate) struct Bytecode(Vec<u8>);

impl Bytecode {
    /// Declares the module in an engine.
    pub(crate) fn load<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<Module<'js, Declared>> {
        #[expect(unsafe_code, reason = "the bytes are what this very engine wrote; see the type")]
        // SAFETY: `Compiler::compile` is the only maker of a `Bytecode`, with the engine that is linked here.
        unsafe {
            Module::load(ctx.clone(), &self.0)
        }
    }
}

/// Whether bytecode remembers lines and columns, for stack traces. It loads faster without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DebugInfo {
    Kept,
    Stripped,
}

/// An engine that parses and runs nothing.
pub(crate) struct Compiler(Context);

impl Compiler {
    pub(crate) fn new() -> rquickjs::Result<Self> {
        let runtime = Runtime::new()?;
        runtime.set_memory_limit(256 << 20);
        runtime.set_loader(EmptyResolver, EmptyLoader);
        Ok(Self(Context::full(&runtime)?))
    }

    /// Compiles a module under the name that imports will know it by.
    pub(crate) fn compile(
        &self,
        name: &str,
        source: &str,
        debug_info: DebugInfo,
    ) -> Result<Bytecode, String> {
        self.0.with(|ctx| {
            let strip_debug = debug_info == DebugInfo::Stripped;
            let options = WriteOptions { strip_source: true, strip_debug, ..WriteOptions::default() };
            Module::declare(ctx.clone(), name, source)
                .and_then(|module| module.write(options))
                .catch(&ctx)
                .map(Bytecode)
                .map_err(|error| error.to_string())
        })
    }
}

/// An engine that is asked whether a source parses.
pub(crate) struct Parser(Runtime);

impl Parser {
    pub(crate) fn new() -> rquickjs::Result<Self> {
        let runtime = Runtime::new()?;
        runtime.set_memory_limit(256 << 20);
        runtime.set_loader(EmptyResolver, EmptyLoader);
        Ok(Self(runtime))
    }

    /// Whether the engine takes a source for a module.
    pub(crate) fn parses(&self, source: &str) -> bool {
        // What was declared stays in its context, so that each source has one of its own.
        Context::full(&self.0).is_ok_and(|context| {
            context.with(|ctx| {
                let declared = Module::declare(ctx.clone(), "quarterdeck:parsed", source).catch(&ctx);
                declared.is_ok()
            })
        })
    }
}

/// Declaring a module resolves what it imports. While compiling, every import is an empty module: names are bound
/// when an engine links the real ones.
struct EmptyResolver;

impl Resolver for EmptyResolver {
    fn resolve<'js>(
        &mut self,
        _: &Ctx<'js>,
        _: &str,
        _: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        Ok("quarterdeck:nothing".into())
    }
}

struct EmptyLoader;

impl Loader for EmptyLoader {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        Module::declare(ctx.clone(), name, "")
    }
}
