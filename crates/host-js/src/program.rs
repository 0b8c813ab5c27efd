//! A handler's modules, and the memory that its calls begin with.

use std::collections::BTreeSet;
use std::time::Duration;

use quarterdeck_contracts::handler::{HandlerToLoad, HostError, Position};
use quarterdeck_contracts::{CapabilitySpec, Methods, sha256};
use quarterdeck_host_wasm::HostConfig;
use quarterdeck_typescript::TypeScriptProblem;
use serde_json::{Value, json};

use crate::answer::Ending;
use crate::fault::HandlerSources;
use crate::guest::GUEST_HASH;
use crate::js_engine::{DebugInfo, JsEngine};
use crate::modules::{QUARTERDECK, Script, Target, resolve, scripts};
use crate::offline::{Imports, length};

const PRELUDE: &str = "quarterdeck:prelude";
const WEB: &str = "quarterdeck:web";
const ABORT: &str = "quarterdeck:abort";
const QUARTERDECK_NAME: &str = "quarterdeck";

/// The host's own modules, by name.
pub(crate) const HOST_MODULES: [(&str, &str); 4] = [
    (PRELUDE, include_str!("prelude.js")),
    (WEB, include_str!("web.js")),
    (ABORT, include_str!("abort.js")),
    (QUARTERDECK_NAME, QUARTERDECK),
];

/// What `web.js` installs.
const WEB_NAMES: [&str; 6] = ["URL", "TextEncoder", "TextDecoder", "Headers", "fetch", "structuredClone"];
/// What `abort.js` installs: `context.signal` and what begins with `Abort`.
const ABORT_NAMES: [&str; 3] = ["signal", "Abort", "DOMException"];
/// `install` in `runner.c`.
const INSTALL_WEB: u32 = 1;
const INSTALL_ABORT: u32 = 2;

/// One handler, ready to become an image.
pub(crate) struct Program {
    entry: String,
    /// What of the host's modules its text names. Images of handlers that name nothing of one are made without it.
    installs: u32,
    files: Vec<(String, Vec<u8>)>,
    /// What its author sees of a fault.
    pub(crate) sources: HandlerSources,
    settings: String,
    memory_bytes: u32,
    load_timeout: Duration,
}

/// The memory that calls begin with.
pub(crate) struct Image(pub(crate) Vec<u8>);

impl Program {
    pub(crate) fn compile(handler: HandlerToLoad<'_>, config: &HostConfig) -> Result<Self, HostError> {
        let engine = JsEngine::get().map_err(HostError::Unloadable)?;
        let mut compiler = engine.compiler(crate::offline::NoImports).map_err(HostError::Unloadable)?;
        let mut files = Vec::new();
        let mut texts = std::collections::BTreeMap::new();
        let mut installs = 0;
        for Script { path, text, javascript } in scripts(handler.files) {
            let source = javascript.map_err(|problems| HostError::Unloadable(described(path, &problems)))?;
            let bytecode = compiler.compile(path, &source, DebugInfo::Kept).map_err(HostError::Unloadable)?;
            files.push((path.to_owned(), bytecode));
            let names_any = |names: &[&str]| names.iter().any(|name| source.contains(name));
            installs |= if names_any(&WEB_NAMES) { INSTALL_WEB } else { 0 };
            installs |= if names_any(&ABORT_NAMES) { INSTALL_ABORT } else { 0 };
            texts.insert(path.to_owned(), text.into_owned());
        }
        if !texts.contains_key(handler.entry) {
            return Err(HostError::Unloadable(format!("there is no file {}", handler.entry)));
        }
        Ok(Self {
            entry: handler.entry.to_owned(),
            installs,
            files,
            sources: HandlerSources::new(handler, texts),
            settings: settings(config),
            memory_bytes: u32::try_from(config.memory_bytes).unwrap_or(u32::MAX),
            load_timeout: config.load_timeout,
        })
    }

    /// Loads the handler in an engine of its own, and takes the memory as it is then. A handler whose top level reads the clock or
    /// randomness is taken as it was before: its top level runs once for each call.
    pub(crate) fn image(&self) -> Result<Image, HostError> {
        let unmade = HostError::Unloadable;
        let engine = JsEngine::get().map_err(unmade)?;
        let imports = HandlerImports(self.files.iter().map(|(path, _)| path.clone()).collect());
        let mut runner = engine.runner(imports).map_err(unmade)?;
        let settings = runner.write(&self.settings).map_err(unmade)?;
        let size = length(&self.settings).map_err(unmade)?;
        runner.call_checked("install", (settings, size, self.installs)).map_err(unmade)?;
        for (path, bytecode) in &self.files {
            runner.declare(path, bytecode).map_err(unmade)?;
        }
        if let Some(ending) = runner.prepare(&self.entry, self.memory_bytes).map_err(unmade)? {
            return Err(self.failure_of_loading(&ending));
        }
        let before = runner.memory();
        match runner.load(self.load_timeout) {
            None => return Err(HostError::Unloadable("its top level takes too long".into())),
            Some(Some(ending)) => return Err(self.failure_of_loading(&ending)),
            Some(None) => {}
        }
        Ok(Image(if runner.is_impure() { before } else { runner.memory() }))
    }

    fn failure_of_loading(&self, ending: &[u8]) -> HostError {
        match Ending::parse(ending) {
            Ending::Crashed(thrown) => HostError::FailedToLoad(Box::new(self.fault(&thrown))),
            Ending::OverLimit(what) => {
                HostError::Unloadable(format!("its top level goes over the limit for {what}"))
            }
            _ => HostError::Unloadable("its top level never ends".into()),
        }
    }
}

/// The first problem of a file, with its place. A build tells all of them.
fn described(path: &str, problems: &[TypeScriptProblem]) -> String {
    problems.first().map_or_else(String::new, |problem| {
        let Position { line, column } = problem.position;
        format!("{path}:{line}:{column}: {problem}")
    })
}

/// Where imports of a handler's modules lead.
struct HandlerImports(BTreeSet<String>);

impl Imports for HandlerImports {
    fn resolve(&mut self, base: &str, specifier: &str) -> Result<String, String> {
        // The host's own imports use names that no handler can import.
        if matches!(base, WEB | ABORT) && specifier == PRELUDE {
            return Ok(specifier.into());
        }
        let reason = match resolve(base, specifier) {
            Ok(Target::Quarterdeck) => return Ok(QUARTERDECK_NAME.into()),
            Ok(Target::File(path)) if self.0.contains(&path) => return Ok(path),
            Ok(Target::File(path)) => format!("there is no file {path}"),
            Err(reason) => reason,
        };
        Err(format!("cannot import '{specifier}' from '{base}': {reason}"))
    }
}

/// Follows an `import()` of a handler that runs. What it leads to was declared when the handler was loaded, or is not there.
pub(crate) fn resolve_in_call(base: &str, specifier: &str) -> String {
    resolution(match resolve(base, specifier) {
        Ok(Target::Quarterdeck) => Ok(QUARTERDECK_NAME.into()),
        Ok(Target::File(path)) => Ok(path),
        Err(reason) => Err(format!("cannot import '{specifier}' from '{base}': {reason}")),
    })
}

/// As `resolve_import` in `exchange.c` reads it.
pub(crate) fn resolution(found: Result<String, String>) -> String {
    match found {
        Ok(name) => format!("+{name}"),
        Err(reason) => format!("-{reason}"),
    }
}

/// Names everything that decides whether a handler can be loaded: its files, the engine, and what it is told of the host.
pub(crate) fn fingerprint(handler: HandlerToLoad<'_>, config: &HostConfig) -> String {
    let mut parts = vec![GUEST_HASH.as_bytes().to_vec(), handler.entry.as_bytes().to_vec()];
    parts.extend(HOST_MODULES.iter().map(|(_, source)| source.as_bytes().to_vec()));
    parts.push(settings(config).into_bytes());
    parts.push(format!("{} {:?}", config.memory_bytes, config.load_timeout).into_bytes());
    for (path, bytes) in handler.files {
        parts.extend([path.as_bytes().to_vec(), bytes.clone()]);
    }
    // Each with its length, so that no two lists have the same text.
    let joined: Vec<u8> =
        parts.iter().flat_map(|part| [&part.len().to_le_bytes(), &part[..]].concat()).collect();
    sha256(&joined)
}

/// What the prelude is told of the host.
fn settings(config: &HostConfig) -> String {
    json!({ "answerLimit": config.max_answer_bytes, "capabilities": members(&config.capabilities) })
        .to_string()
}

/// What the prelude puts into a handler's context: for each member its name, the capability behind it and its methods,
/// of which a function has one.
fn members(capabilities: &[CapabilitySpec]) -> Value {
    let members = capabilities.iter().filter_map(|spec| match spec.methods {
        Methods::None => None,
        Methods::Object(member, methods) => Some(json!([member, spec.name, methods])),
        Methods::Function(member, method) => Some(json!([member, spec.name, method])),
    });
    members.collect()
}
