//! A handler's modules, compiled, and the rules by which they find each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quarterdeck_contracts::handler::{HandlerToLoad, HostError};
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Error, Module};

use crate::bytecode::{Bytecode, Compiler, DebugInfo};
use crate::fault::HandlerSources;
use crate::modules::{QUARTERDECK, Target, resolve, scripts};

pub(crate) const PRELUDE: &str = "quarterdeck:prelude";
pub(crate) const WEB: &str = "quarterdeck:web";
pub(crate) const ABORT: &str = "quarterdeck:abort";
pub(crate) const QUARTERDECK_NAME: &str = "quarterdeck";
/// What `web.js` installs.
const WEB_NAMES: [&str; 6] = ["URL", "TextEncoder", "TextDecoder", "Headers", "fetch", "structuredClone"];
/// What `abort.js` installs: `context.signal` and what begins with `Abort`.
const ABORT_NAMES: [&str; 3] = ["signal", "Abort", "DOMException"];

/// The host's own modules, compiled once for all handlers.
pub(crate) struct HostModules(BTreeMap<&'static str, Bytecode>);

impl HostModules {
    pub(crate) fn compile() -> Result<Self, String> {
        let compiler = Compiler::new().map_err(|error| error.to_string())?;
        let sources = [
            (PRELUDE, include_str!("prelude.js")),
            (WEB, include_str!("web.js")),
            (ABORT, include_str!("abort.js")),
            (QUARTERDECK_NAME, QUARTERDECK),
        ];
        let modules = sources
            .into_iter()
            .map(|(name, source)| Ok((name, compiler.compile(name, source, DebugInfo::Stripped)?)));
        modules.collect::<Result<_, String>>().map(Self)
    }
}

/// One handler, ready to be put into engines.
pub(crate) struct Program {
    pub(crate) entry: String,
    /// Whether its text names anything of `web.js`. Engines of handlers that do not are made without it.
    pub(crate) uses_web: bool,
    /// The same for `abort.js`.
    pub(crate) uses_abort: bool,
    /// Whether its text has the word `import`, without which it reaches no module but its entry.
    imports: bool,
    files: BTreeMap<String, Bytecode>,
    /// What its author sees of a fault.
    pub(crate) sources: HandlerSources,
    host_modules: Arc<HostModules>,
}

impl Program {
    pub(crate) fn compile(
        handler: HandlerToLoad<'_>,
        host_modules: Arc<HostModules>,
    ) -> Result<Self, HostError> {
        let compiler = Compiler::new().map_err(|error| HostError::Unloadable(error.to_string()))?;
        let mut files = BTreeMap::new();
        let mut texts = BTreeMap::new();
        let (mut uses_web, mut uses_abort, mut imports) = (false, false, false);
        for (path, source) in scripts(handler.files) {
            let bytecode = compiler.compile(path, &source, DebugInfo::Kept).map_err(HostError::Unloadable)?;
            files.insert(path.to_owned(), bytecode);
            uses_web |= WEB_NAMES.iter().any(|name| source.contains(name));
            uses_abort |= ABORT_NAMES.iter().any(|name| source.contains(name));
            imports |= source.contains("import");
            texts.insert(path.to_owned(), source.into_owned());
        }
        if !files.contains_key(handler.entry) {
            return Err(HostError::Unloadable(format!("there is no file {}", handler.entry)));
        }
        let sources = HandlerSources::new(handler, texts);
        Ok(Self {
            entry: handler.entry.to_owned(),
            uses_web,
            uses_abort,
            imports,
            files,
            sources,
            host_modules,
        })
    }

    /// One of the host's own modules.
    pub(crate) fn host_module(&self, name: &str) -> rquickjs::Result<&Bytecode> {
        self.host_modules.0.get(name).ok_or_else(|| Error::new_loading(name))
    }
}

/// Finds modules while an engine links or follows an `import()`.
pub(crate) struct ModuleResolver(pub(crate) Arc<Program>);

impl Resolver for ModuleResolver {
    fn resolve<'js>(
        &mut self,
        _: &Ctx<'js>,
        base: &str,
        specifier: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        // The host's own imports use names that no handler can import, or come from no module.
        if (matches!(base, WEB | ABORT) && specifier == PRELUDE)
            || (base.is_empty() && specifier == self.0.entry)
        {
            return Ok(specifier.into());
        }
        let refused = |reason: String| Error::new_resolving_message(base, specifier, reason);
        match resolve(base, specifier).map_err(refused)? {
            Target::Quarterdeck => Ok(QUARTERDECK_NAME.into()),
            Target::File(path) if self.0.files.contains_key(&path) => Ok(path),
            Target::File(path) => Err(refused(format!("there is no file {path}"))),
        }
    }
}

/// Which modules an engine has read. ModuleReader one reads what it imports.
#[derive(Clone)]
pub(crate) struct ModuleReader(Arc<Mutex<ReaderState>>);

struct ReaderState {
    program: Arc<Program>,
    names: BTreeSet<String>,
    done: bool,
}

impl ModuleReader {
    pub(crate) fn new(program: Arc<Program>) -> Self {
        Self(Arc::new(Mutex::new(ReaderState { program, names: BTreeSet::new(), done: false })))
    }

    /// Reads every module that the handler may import, now or later, and no more after that.
    pub(crate) fn read_all(&self, ctx: &Ctx<'_>, program: &Program) -> rquickjs::Result<()> {
        let ours = program.imports.then_some(QUARTERDECK_NAME);
        for name in program.files.keys().map(String::as_str).chain(ours) {
            if !self.state().names.contains(name) {
                self.clone().load(ctx, name, None)?;
            }
        }
        self.state().done = true;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, ReaderState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Loader for ModuleReader {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        let mut state = self.state();
        let program = state.program.clone();
        let module = program.host_modules.0.get(name).or_else(|| program.files.get(name));
        let module = module.filter(|_| !state.done).ok_or_else(|| Error::new_loading(name))?;
        state.names.insert(name.to_owned());
        drop(state);
        module.load(ctx)
    }
}
