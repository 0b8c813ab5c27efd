//! Looks at a handler with the engine that will run it, and runs none of it.
//!
//! The engine parses and links. Evaluation would be the next step; it is cut off by a module that stands first in
//! line and throws, so the handler's own code is never reached.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use quarterdeck_contracts::RESPONSE_SCHEMA_VERSIONS;
use quarterdeck_contracts::handler::{
    FileType, Finding, FindingKind, HandlerSource, Inspection, Inspector, Position,
};
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, Module, Runtime};

use crate::bytecode::Parser;
use crate::dynamic;
use crate::modules::{self, QUARTERDECK, Target, resolve};
use crate::node_words;

const MEMORY_LIMIT: usize = 64 << 20;
/// Its name cannot be written in an import that we let pass.
const HALT: &str = "quarterdeck:halt";
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
        const { &[FileType::text("js"), FileType::text("mjs")] }
    }

    fn inspect(&self, source: HandlerSource<'_>) -> Inspection {
        match Probe::new(source) {
            Ok(probe) => probe.inspect(),
            Err(error) => Inspection {
                files: vec![source.entry.to_owned()],
                findings: vec![Finding {
                    kind: FindingKind::Syntax,
                    file: source.entry.to_owned(),
                    position: None,
                    message: format!("the JavaScript engine could not start: {error}"),
                }],
            },
        }
    }
}

/// Inspects one handler in an engine of its own.
struct Probe {
    entry: String,
    context: Context,
    parser: Parser,
    graph: Rc<RefCell<ModuleGraph>>,
}

/// The modules that the engine met while it parsed and linked.
struct ModuleGraph {
    sources: BTreeMap<String, String>,
    loaded: BTreeSet<String>,
    findings: Vec<Finding>,
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
    fn new(source: HandlerSource<'_>) -> rquickjs::Result<Self> {
        let graph = Rc::new(RefCell::new(ModuleGraph {
            sources: modules::scripts(source.files)
                .map(|(path, text)| (path.to_owned(), text.into_owned()))
                .collect(),
            loaded: BTreeSet::new(),
            findings: Vec::new(),
        }));
        let runtime = Runtime::new()?;
        runtime.set_memory_limit(MEMORY_LIMIT);
        runtime.set_loader(ModuleResolver(graph.clone()), Sources(graph.clone()));
        let context = Context::full(&runtime)?;
        Ok(Self { entry: source.entry.to_owned(), context, parser: Parser::new()?, graph })
    }

    fn inspect(self) -> Inspection {
        let linked = self.link("import HANDLER;");
        self.follow_dynamic_imports();
        // A module that was refused or does not parse has been replaced by an empty one; what fails to link then
        // says nothing new.
        if self.graph.borrow().findings.is_empty() {
            match linked {
                Err(reason) => self.report_link_error(reason),
                Ok(()) => self.check_exports(),
            }
            self.check_node_words();
        }
        let graph = self.graph.borrow();
        Inspection { files: graph.loaded.iter().cloned().collect(), findings: graph.findings.clone() }
    }

    /// Loads what the handler imports only when it runs, so that it is checked and recorded like everything else.
    fn follow_dynamic_imports(&self) {
        let mut followed = BTreeSet::new();
        loop {
            let next = self.graph.borrow().loaded.difference(&followed).next().cloned();
            let Some(file) = next else { break };
            followed.insert(file.clone());
            let text = self.graph.borrow().sources.get(&file).cloned().unwrap_or_default();
            for import in dynamic::find(&text, |source| self.parser.parses(source)) {
                let position = Some(Position::of(&text, import.offset));
                let refusal = match import
                    .specifier
                    .map(|specifier| self.graph.borrow().resolve(&file, specifier))
                {
                    Some(Ok(name)) => {
                        // What fails to link is found when the import runs; that it parses is found here.
                        let _ = self.link_module(&format!("import {name:?};"));
                        continue;
                    }
                    Some(Err(refusal)) => refusal,
                    None => "an import must name its file as a plain text, so that it can be checked".into(),
                };
                self.graph.borrow_mut().report(FindingKind::Import, &file, position, refusal);
            }
        }
    }

    /// An import of a name that its module does not export, with the place of that name.
    fn report_link_error(&self, reason: String) {
        let name = reason.split('\'').nth(1).unwrap_or_default();
        let text = self.graph.borrow().sources.get(&self.entry).cloned().unwrap_or_default();
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
        let text = self.graph.borrow().sources.get(&self.entry).cloned().unwrap_or_default();
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
        let files: Vec<_> = self.graph.borrow().loaded.iter().cloned().collect();
        for file in files {
            let text = self.graph.borrow().sources.get(&file).cloned().unwrap_or_default();
            for found in node_words::find(&text, |source| self.parser.parses(source)) {
                let kind = match found.kind {
                    // An export in the wrong form is an error where it is the only one.
                    FindingKind::CommonJs => continue,
                    kind => kind,
                };
                let message = format!("handlers have no `{}`: this line will throw", found.word);
                self.graph.borrow_mut().report(kind, &file, Some(Position::of(&text, found.offset)), message);
            }
        }
    }

    /// Links a module that imports the handler, in which `HANDLER` stands for its name.
    fn link(&self, import: &str) -> Result<(), String> {
        self.link_module(&import.replace("HANDLER", &format!("{:?}", self.entry)))
    }

    fn link_module(&self, import: &str) -> Result<(), String> {
        let source = format!("import {HALT:?}; {import}");
        self.context.with(|ctx| {
            let module = Module::declare(ctx.clone(), format!("quarterdeck:probe:{import}"), source);
            // An error here is one of linking; that evaluation was halted only shows in the promise.
            match module.and_then(Module::eval).catch(&ctx) {
                Ok(_) => Ok(()),
                Err(error) => Err(describe(&error)),
            }
        })
    }

    fn check_response_version(&self) {
        let text = self.graph.borrow().sources.get(&self.entry).cloned().unwrap_or_default();
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
        self.graph.borrow_mut().report(kind, &self.entry, position, message);
    }
}

/// Resolves imports for the engine.
struct ModuleResolver(Rc<RefCell<ModuleGraph>>);

impl Resolver for ModuleResolver {
    fn resolve<'js>(
        &mut self,
        _: &Ctx<'js>,
        base: &str,
        specifier: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        let mut graph = self.0.borrow_mut();
        if base.starts_with("quarterdeck:probe:") {
            return Ok(specifier.to_owned());
        }
        let refusal = match graph.resolve(base, specifier) {
            Ok(name) => return Ok(name),
            Err(refusal) => refusal,
        };
        let position = graph.sources.get(base).and_then(|text| {
            let quoted =
                ['"', '\''].into_iter().find_map(|quote| text.find(&format!("{quote}{specifier}{quote}")));
            quoted.map(|offset| Position::of(text, offset))
        });
        let finding =
            Finding { kind: FindingKind::Import, file: base.to_owned(), position, message: refusal };
        if !graph.findings.contains(&finding) {
            graph.findings.push(finding);
        }
        Ok(NOTHING.into())
    }
}

/// Loads the source of a module.
struct Sources(Rc<RefCell<ModuleGraph>>);

impl Loader for Sources {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        let source = match name {
            HALT => "throw 0;".to_owned(),
            NOTHING => String::new(),
            "quarterdeck" => QUARTERDECK.to_owned(),
            path => {
                let mut graph = self.0.borrow_mut();
                graph.loaded.insert(path.to_owned());
                graph.sources.get(path).cloned().unwrap_or_default()
            }
        };
        // The borrow has ended: declaring a module makes the engine resolve its imports, which borrows again.
        match Module::declare(ctx.clone(), name, source).catch(ctx) {
            Ok(module) => Ok(module),
            Err(error) => {
                self.0.borrow_mut().findings.push(Finding {
                    kind: FindingKind::Syntax,
                    file: name.to_owned(),
                    position: thrown_at(&error, name),
                    message: describe(&error),
                });
                Module::declare(ctx.clone(), name, "")
            }
        }
    }
}

fn describe(error: &CaughtError<'_>) -> String {
    match error {
        CaughtError::Exception(exception) => exception.message().unwrap_or_else(|| "unknown error".into()),
        other => other.to_string(),
    }
}

/// Where a syntax error is, from the first line of its stack: `    at tool/handler.js:3:10`.
fn thrown_at(error: &CaughtError<'_>, file: &str) -> Option<Position> {
    let CaughtError::Exception(exception) = error else { return None };
    let stack = exception.stack()?;
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
