//! Looks at a handler with the engine that will run it, and runs none of it.
//!
//! The engine parses and links. Evaluation would be the next step; it is cut off by a module that stands first in
//! line and throws, so the handler's own code is never reached.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quarterdeck_contracts::RESPONSE_SCHEMA_VERSIONS;
use quarterdeck_contracts::handler::{
    FileType, Finding, FindingKind, HandlerSource, Inspection, Inspector, Position,
};
use quarterdeck_typescript::TypeScriptProblem;

use crate::dynamic;
use crate::js_engine::JsEngine;
use crate::modules::{self, QUARTERDECK, Script, Target, resolve};
use crate::node_words;
use crate::offline::{Imports, OfflineInstance, length};
use crate::parser::Parser;

/// Its name cannot be written in an import that we let pass.
const HALT: &str = "quarterdeck:halt";
/// What the names of the modules begin with that import the handler.
const PROBE: &str = "quarterdeck:probe:";
/// Stands in for a module that was refused, so that the rest is still looked at.
const NOTHING: &str = "quarterdeck:nothing";

/// Looks at `handler.js` files.
#[derive(Debug, Default)]
pub struct JsInspector;

impl Inspector for JsInspector {
    fn entry_file(&self) -> &'static str {
        "handler.js"
    }

    fn file_types(&self) -> &'static [FileType] {
        FILE_TYPES
    }

    fn inspect(&self, source: HandlerSource<'_>) -> Inspection {
        inspect(source)
    }
}

/// Looks at `handler.ts` files, as at what is left of them without their types.
#[derive(Debug, Default)]
pub struct TsInspector;

impl Inspector for TsInspector {
    fn entry_file(&self) -> &'static str {
        "handler.ts"
    }

    fn file_types(&self) -> &'static [FileType] {
        FILE_TYPES
    }

    fn inspect(&self, source: HandlerSource<'_>) -> Inspection {
        inspect(source)
    }
}

/// Files in either language may import those in the other.
const FILE_TYPES: &[FileType] = &[FileType::text("js"), FileType::text("mjs"), FileType::text("ts")];

fn inspect(source: HandlerSource<'_>) -> Inspection {
    match Probe::new(source) {
        Ok(probe) => probe.inspect(),
        Err(error) => Inspection {
            files: vec![source.entry.to_owned()],
            findings: vec![Finding {
                kind: FindingKind::Syntax,
                file: source.entry.to_owned(),
                position: None,
                message: error,
            }],
        },
    }
}

/// Inspects one handler in an engine of its own.
struct Probe {
    entry: String,
    engine: RefCell<OfflineInstance>,
    parser: Parser,
    graph: SharedGraph,
}

/// The graph, which the engine's questions change.
#[derive(Clone)]
struct SharedGraph(Arc<Mutex<ModuleGraph>>);

impl SharedGraph {
    fn lock(&self) -> MutexGuard<'_, ModuleGraph> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The modules that the engine met while it parsed and linked.
struct ModuleGraph {
    /// In JavaScript, by path.
    sources: BTreeMap<String, String>,
    /// What keeps files in TypeScript from being taken.
    problems: BTreeMap<String, Vec<TypeScriptProblem>>,
    loaded: BTreeSet<String>,
    findings: Vec<Finding>,
    /// Why the last probe did not link.
    link_error: String,
}

impl ModuleGraph {
    /// The module that an import leads to, or why there is none.
    fn resolve(&self, base: &str, specifier: &str) -> Result<String, String> {
        match resolve(base, specifier)? {
            Target::Quarterdeck => Ok("quarterdeck".into()),
            Target::File(path) if self.sources.contains_key(&path) => Ok(path),
            Target::File(path) => Err(format!("\"{specifier}\" cannot be imported: there is no file {path}")),
        }
    }

    fn report(&mut self, kind: FindingKind, file: &str, position: Option<Position>, message: String) {
        let finding = Finding { kind, file: file.to_owned(), position, message };
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }
}

impl Probe {
    fn new(source: HandlerSource<'_>) -> Result<Self, String> {
        let (mut sources, mut problems) = (BTreeMap::new(), BTreeMap::new());
        for Script { path, javascript, .. } in modules::scripts(source.files) {
            let javascript = javascript.unwrap_or_else(|found| {
                problems.insert(path.to_owned(), found);
                String::new()
            });
            sources.insert(path.to_owned(), javascript);
        }
        let graph = SharedGraph(Arc::new(Mutex::new(ModuleGraph {
            sources,
            problems,
            loaded: BTreeSet::new(),
            findings: Vec::new(),
            link_error: String::new(),
        })));
        let engine = JsEngine::get()?.compiler(graph.clone())?;
        Ok(Self {
            entry: source.entry.to_owned(),
            engine: RefCell::new(engine),
            parser: Parser::new()?,
            graph,
        })
    }

    fn inspect(self) -> Inspection {
        let linked = self.link("import HANDLER;");
        self.follow_dynamic_imports();
        // A module that was refused or does not parse has been replaced by an empty one; what fails to link then
        // says nothing new.
        if self.graph.lock().findings.is_empty() {
            match linked {
                Err(reason) => self.report_link_error(reason),
                Ok(()) => self.check_exports(),
            }
            self.check_node_words();
        }
        let graph = self.graph.lock();
        Inspection { files: graph.loaded.iter().cloned().collect(), findings: graph.findings.clone() }
    }

    /// Loads what the handler imports only when it runs, so that it is checked and recorded like everything else.
    fn follow_dynamic_imports(&self) {
        let mut followed = BTreeSet::new();
        loop {
            let next = self.graph.lock().loaded.difference(&followed).next().cloned();
            let Some(file) = next else { break };
            followed.insert(file.clone());
            let text = self.graph.lock().sources.get(&file).cloned().unwrap_or_default();
            for import in dynamic::find(&text, |source| self.parser.parses(source)) {
                let position = Some(Position::of(&text, import.offset));
                let refusal = match import
                    .specifier
                    .map(|specifier| self.graph.lock().resolve(&file, specifier))
                {
                    Some(Ok(name)) => {
                        // What fails to link is found when the import runs; that it parses is found here.
                        let _ = self.link_module(&format!("import {name:?};"));
                        continue;
                    }
                    Some(Err(refusal)) => refusal,
                    None => "an import must name its file as a plain text, so that it can be checked".into(),
                };
                self.graph.lock().report(FindingKind::Import, &file, position, refusal);
            }
        }
    }

    /// An import of a name that its module does not export, with the place of that name.
    fn report_link_error(&self, reason: String) {
        let name = reason.split('\'').nth(1).unwrap_or_default();
        let text = self.graph.lock().sources.get(&self.entry).cloned().unwrap_or_default();
        let position = text.find(name).filter(|_| !name.is_empty()).map(|offset| Position::of(&text, offset));
        let known = match reason.ends_with("in module 'quarterdeck'") {
            true => "; it has ToolError, ErrorType, IntentType and validateToolResponse",
            false => "",
        };
        self.report(FindingKind::Import, position, format!("{reason}{known}"));
    }

    fn check_exports(&self) {
        if self.link("import { execute } from HANDLER;").is_err() {
            self.report_no_execute();
        }
        if self.link("import { responseSchemaVersion } from HANDLER;").is_ok() {
            self.check_response_version();
        }
    }

    fn report_no_execute(&self) {
        let text = self.graph.lock().sources.get(&self.entry).cloned().unwrap_or_default();
        let words = node_words::find(&text, |source| self.parser.parses(source));
        if let Some(found) = words.iter().find(|found| found.kind == FindingKind::CommonJs) {
            let position = Position::of(&text, found.offset);
            let message = format!("the handler does not export `execute`: `{}` exports nothing", found.word);
            return self.report(FindingKind::CommonJs, Some(position), message);
        }
        let (position, message) = match text.find("export default") {
            Some(offset) if self.link("import handler from HANDLER;").is_ok() => (
                Some(Position::of(&text, offset)),
                "the handler exports a default and no `execute`: write `export async function execute`",
            ),
            _ => (None, "the handler does not export `execute`"),
        };
        self.report(FindingKind::NoExecute, position, message.into());
    }

    /// Warns of what will fail when it runs. Of a handler without `execute` there is more to say first.
    fn check_node_words(&self) {
        let files: Vec<_> = self.graph.lock().loaded.iter().cloned().collect();
        for file in files {
            let text = self.graph.lock().sources.get(&file).cloned().unwrap_or_default();
            for found in node_words::find(&text, |source| self.parser.parses(source)) {
                let kind = match found.kind {
                    // An export in the wrong form is an error where it is the only one.
                    FindingKind::CommonJs => continue,
                    kind => kind,
                };
                let message = format!("handlers have no `{}`: this line will throw", found.word);
                self.graph.lock().report(kind, &file, Some(Position::of(&text, found.offset)), message);
            }
        }
    }

    /// Links a module that imports the handler, in which `HANDLER` stands for its name.
    fn link(&self, import: &str) -> Result<(), String> {
        self.link_module(&import.replace("HANDLER", &format!("{:?}", self.entry)))
    }

    fn link_module(&self, import: &str) -> Result<(), String> {
        let source = format!("import {HALT:?}; {import}");
        let mut engine = self.engine.borrow_mut();
        let name = engine.write(&format!("{PROBE}{import}"))?;
        let (at, size) = (engine.write(&source)?, length(&source)?);
        match engine.call::<_, u32>("link", (name, at, size))? {
            0 => Err(std::mem::take(&mut self.graph.lock().link_error)),
            // That evaluation was halted only shows in the promise.
            _ => Ok(()),
        }
    }

    fn check_response_version(&self) {
        let text = self.graph.lock().sources.get(&self.entry).cloned().unwrap_or_default();
        let Some((offset, version)) = declared_version(&text) else {
            let message = "`responseSchemaVersion` cannot be read without running the handler".into();
            return self.report(FindingKind::ResponseVersion, None, message);
        };
        if !RESPONSE_SCHEMA_VERSIONS.contains(&version) {
            let message =
                format!("response schema version \"{version}\" is not one of 1.0.0, 1.1.0 and 2.0.0");
            self.report(FindingKind::ResponseVersion, Some(Position::of(&text, offset)), message);
        }
    }

    fn report(&self, kind: FindingKind, position: Option<Position>, message: String) {
        self.graph.lock().report(kind, &self.entry, position, message);
    }
}

impl Imports for SharedGraph {
    fn resolve(&mut self, base: &str, specifier: &str) -> Result<String, String> {
        if base.starts_with(PROBE) {
            return Ok(specifier.to_owned());
        }
        let mut graph = self.lock();
        let refusal = match graph.resolve(base, specifier) {
            Ok(name) => return Ok(name),
            Err(refusal) => refusal,
        };
        let position = graph.sources.get(base).and_then(|text| {
            let quoted =
                ['"', '\''].into_iter().find_map(|quote| text.find(&format!("{quote}{specifier}{quote}")));
            quoted.map(|offset| Position::of(text, offset))
        });
        graph.report(FindingKind::Import, base, position, refusal);
        Ok(NOTHING.into())
    }

    fn source(&mut self, name: &str) -> String {
        match name {
            HALT => "throw 0;".to_owned(),
            NOTHING => String::new(),
            "quarterdeck" => QUARTERDECK.to_owned(),
            path => {
                let mut graph = self.lock();
                graph.loaded.insert(path.to_owned());
                for problem in graph.problems.remove(path).unwrap_or_default() {
                    graph.report(FindingKind::Syntax, path, Some(problem.position), problem.to_string());
                }
                graph.sources.get(path).cloned().unwrap_or_default()
            }
        }
    }

    fn report(&mut self, name: &str, message: &str, stack: &str) {
        let mut graph = self.lock();
        match name {
            "" => message.clone_into(&mut graph.link_error),
            file => {
                let position = place_in(stack, file);
                graph.report(FindingKind::Syntax, file, position, message.to_owned());
            }
        }
    }
}

/// Where a syntax error is, from the first line of its stack: `    at tool/handler.js:3:10`.
fn place_in(stack: &str, file: &str) -> Option<Position> {
    let (_, place) = stack.split_once(&format!("{file}:"))?;
    let mut numbers = place.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(line)), Some(Ok(column))) => Some(Position { line, column }),
        (Some(Ok(line)), _) => Some(Position { line, column: 1 }),
        _ => None,
    }
}

/// The string that `responseSchemaVersion` is set to, and where it stands.
fn declared_version(text: &str) -> Option<(usize, &str)> {
    const NAME: &str = "responseSchemaVersion";
    text.match_indices(NAME).find_map(|(start, _)| {
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        if text[line_start..start].trim_start().starts_with(['/', '*']) {
            return None; // A comment.
        }
        let after = text[start + NAME.len()..].trim_start().strip_prefix('=')?.trim_start();
        let quote = after.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
        let value = after[1..].split(quote).next()?;
        Some((text.len() - after.len(), value))
    })
}

#[cfg(test)]
mod tests;
