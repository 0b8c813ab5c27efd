//! `quarterdeck new`.

mod language;

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use quarterdeck_contracts::{ToolId, definition_schema_with};

use self::language::Language;
use crate::arguments::{CategoryChoice, NewOptions};
use crate::config::LocalConfig;
use crate::terminal::info;
use crate::{ExitStatus, handler_kinds};

/// Type declarations for editors, shared by all JavaScript and TypeScript tools of a folder.
const DECLARATIONS: (&str, &str) = ("quarterdeck.d.ts", include_str!("../../../../tools/quarterdeck.d.ts"));
/// Has editors report what cannot be erased, and imports of types that do not say so.
const TYPESCRIPT_CONFIG: (&str, &str) = ("tsconfig.json", include_str!("../../templates/tsconfig.json.txt"));

pub(crate) fn run(options: &NewOptions) -> anyhow::Result<ExitStatus> {
    let name = &options.name;
    if name.starts_with(['_', '.']) {
        bail!("a folder that begins with `_` or `.` is not a tool; choose another name");
    }
    let id = ToolId::from_folder(name).with_context(|| format!("{name:?} cannot name a tool"))?;
    let config = LocalConfig::load()?;
    let tools = options.tools.or(&config);
    let folder = tools.join(name);
    if folder.exists() {
        bail!("{} exists already; choose another name, or remove it first", folder.display());
    }
    let language = Language::from(options.language());
    if let Language::Wasm(language) = language
        && options.category != CategoryChoice::Utility
    {
        bail!(
            "in {} there is a template for a utility only; leave `--category` out, or choose another language",
            language.name
        );
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let scaffold = Scaffold::new(&id, options.category, language, editor_schema(tools)?);
    for (file, text) in scaffold.files() {
        write(&folder.join(file), &text)?;
    }
    write_for_editors(language, tools)?;
    print_next_steps(language, options, &config, &folder);
    Ok(ExitStatus::Success)
}

/// What editors find beside the tools. Authors may have changed it, so nothing is replaced.
fn write_for_editors(language: Language, tools: &Path) -> anyhow::Result<()> {
    let files: &[(&str, &str)] = match language {
        Language::Js => &[DECLARATIONS],
        Language::TypeScript => &[DECLARATIONS, TYPESCRIPT_CONFIG],
        Language::Rust | Language::Wasm(_) => &[],
    };
    for (name, text) in files {
        if !tools.join(name).exists() {
            write(&tools.join(name), text)?;
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn print_next_steps(language: Language, options: &NewOptions, config: &LocalConfig, folder: &Path) {
    let other = options.tools.path.as_ref().filter(|tools| **tools != config.folders.tools);
    let flag = other.map_or_else(String::new, |tools| format!(" --tools {}", tools.display()));
    info(&format!("created {}", folder.display()));
    info("  schema.json   the contract: parameters, category, modes, limits");
    info("  guide.md      what the model reads, with example calls that are checked");
    let test = format!("quarterdeck test {}{flag}", options.name);
    let next = match language {
        Language::Js => {
            info("  handler.js    the handler");
            test
        }
        Language::TypeScript => {
            info("  handler.ts    the handler; its types are erased when it is loaded");
            test
        }
        Language::Wasm(language) => {
            let (source, _) = language.handler;
            info(&format!("  {source:<14}the handler, to be compiled to handler.wasm"));
            format!("{} && {test}", language.compile_line(folder))
        }
        Language::Rust => {
            info("  handler.rs    the handler");
            next_for_rust(options, config, folder, &flag)
        }
    };
    info("  basic.case.json   calls with the answers you expect");
    info(&format!("next: {next}"));
}

fn next_for_rust(options: &NewOptions, config: &LocalConfig, folder: &Path, flag: &str) -> String {
    // The handlers' crate is part of Quarterdeck's source tree.
    if options.tools.or(config).join("Cargo.toml").is_file() {
        return format!("cargo build && quarterdeck test {}{flag}", options.name);
    }
    format!(
        "move {} into `tools/` of Quarterdeck's source and run `cargo build` there: nothing compiles it here.\n      \
         A handler in JavaScript (`quarterdeck new {} --js`) needs no build.",
        folder.display(),
        options.name
    )
}

/// The files of a new folder, with the blanks of the templates filled in.
struct Scaffold {
    id: String,
    title: String,
    /// Where editors find the schema of `schema.json`, from the tool's folder.
    schema: &'static str,
    template: Template,
}

/// The files of one kind of tool, with blanks.
struct Template {
    schema: &'static str,
    guide: &'static str,
    cases: &'static str,
    handler: (&'static str, &'static str),
}

/// Each is a small tool that works, to be changed into another.
macro_rules! template {
    ($folder:literal, $handler:literal) => {
        Template {
            schema: include_str!(concat!("../../templates/", $folder, "/schema.json.txt")),
            guide: include_str!(concat!("../../templates/", $folder, "/guide.md.txt")),
            cases: include_str!(concat!("../../templates/", $folder, "/basic.case.json.txt")),
            handler: ($handler, include_str!(concat!("../../templates/", $folder, "/", $handler, ".txt"))),
        }
    };
}

impl Scaffold {
    fn new(id: &ToolId, category: CategoryChoice, language: Language, schema: &'static str) -> Self {
        let words = id.as_str().replace('_', " ");
        let words = words.trim();
        let mut letters = words.chars();
        let title = match letters.next() {
            Some(first) => first.to_uppercase().chain(letters).collect(),
            None => "Tool".into(),
        };
        let template = match (category, language) {
            (_, Language::Wasm(language)) => {
                Template { handler: language.handler, ..template!("utility", "handler.js") }
            }
            (CategoryChoice::Retrieval, Language::TypeScript) => template!("retrieval", "handler.ts"),
            (CategoryChoice::Action, Language::TypeScript) => template!("action", "handler.ts"),
            (CategoryChoice::Utility, Language::TypeScript) => template!("utility", "handler.ts"),
            (CategoryChoice::Retrieval, Language::Js) => template!("retrieval", "handler.js"),
            // A handler in Rust has no `fetch`; it looks things up in the knowledge base.
            (CategoryChoice::Retrieval, Language::Rust) => template!("retrieval-kb", "handler.rs"),
            (CategoryChoice::Action, Language::Js) => template!("action", "handler.js"),
            (CategoryChoice::Action, Language::Rust) => template!("action", "handler.rs"),
            (CategoryChoice::Utility, Language::Js) => template!("utility", "handler.js"),
            (CategoryChoice::Utility, Language::Rust) => template!("utility", "handler.rs"),
        };
        Self { id: id.to_string(), title, schema, template }
    }

    fn files(&self) -> Vec<(&'static str, String)> {
        let Template { schema, guide, cases, handler: (handler, source) } = self.template;
        vec![
            ("schema.json", self.fill(schema)),
            ("guide.md", self.fill(guide)),
            ("basic.case.json", self.fill(cases)),
            (handler, self.fill(source)),
        ]
    }

    fn fill(&self, template: &str) -> String {
        let filled = template.replace("{{id}}", &self.id).replace("{{title}}", &self.title);
        filled.replace("{{schema}}", self.schema)
    }
}

/// The schema of `schema.json` for editors: that of this repository, or a copy beside the tools, which needs no network and
/// is that of the program in use.
pub(crate) fn editor_schema(tools: &Path) -> anyhow::Result<&'static str> {
    if tools.join("../schemas/tool.schema.json").is_file() {
        return Ok("../../schemas/tool.schema.json");
    }
    let schema = format!("{:#}\n", definition_schema_with(&handler_kinds::capability_specs()));
    let path = tools.join("tool.schema.json");
    // Generated, so that an older copy is replaced.
    if fs::read_to_string(&path).is_ok_and(|known| known == schema) {
        return Ok("../tool.schema.json");
    }
    write(&path, &schema)?;
    Ok("../tool.schema.json")
}
