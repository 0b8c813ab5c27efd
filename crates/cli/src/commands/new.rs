//! `quarterdeck new`.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use quarterdeck_contracts::ToolId;

use crate::ExitStatus;
use crate::arguments::{CategoryChoice, NewOptions};
use crate::config::LocalConfig;
use crate::terminal::info;

/// Type declarations for editors, shared by all JavaScript tools of a folder.
const DECLARATIONS: &str = include_str!("../../../../tools/quarterdeck.d.ts");

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
    let scaffold = Scaffold::new(&id, options.category, options.rust);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for (file, text) in scaffold.files() {
        write(&folder.join(file), &text)?;
    }
    if !options.rust && !tools.join("quarterdeck.d.ts").exists() {
        write(&tools.join("quarterdeck.d.ts"), DECLARATIONS)?;
    }
    print_next_steps(options, &config, &folder);
    Ok(ExitStatus::Success)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn print_next_steps(options: &NewOptions, config: &LocalConfig, folder: &Path) {
    let other = options.tools.path.as_ref().filter(|tools| **tools != config.folders.tools);
    let flag = other.map_or_else(String::new, |tools| format!(" --tools {}", tools.display()));
    info(&format!("created {}", folder.display()));
    info("  schema.json   the contract: parameters, category, modes, limits");
    info("  guide.md      what the model reads, with example calls that are checked");
    if options.rust {
        info("  handler.rs    the handler");
        info("  basic.case.json   calls with the answers you expect");
        // The handlers' crate is part of Quarterdeck's source tree.
        if options.tools.or(config).join("Cargo.toml").is_file() {
            info(&format!("next: cargo build && quarterdeck test {}{flag}", options.name));
        } else {
            info(&format!(
                "next: move {} into `tools/` of Quarterdeck's source and run `cargo build` there: nothing compiles it here.\n      \
                 A handler in JavaScript (`quarterdeck new {} --js`) needs no build.",
                folder.display(),
                options.name
            ));
        }
    } else {
        info("  handler.js    the handler");
        info("  basic.case.json   calls with the answers you expect");
        info(&format!("next: quarterdeck test {}{flag}", options.name));
    }
}

/// The files of a new folder, with the blanks of the templates filled in.
struct Scaffold {
    id: String,
    title: String,
    category: CategoryChoice,
    is_rust: bool,
}

impl Scaffold {
    fn new(id: &ToolId, category: CategoryChoice, is_rust: bool) -> Self {
        let words = id.as_str().replace('_', " ");
        let words = words.trim();
        let mut letters = words.chars();
        let title = match letters.next() {
            Some(first) => first.to_uppercase().chain(letters).collect(),
            None => "Tool".into(),
        };
        Self { id: id.to_string(), title, category, is_rust }
    }

    fn files(&self) -> Vec<(&'static str, String)> {
        let (handler, source) = match self.is_rust {
            true => ("handler.rs", include_str!("../../templates/handler.rs.txt")),
            false => ("handler.js", include_str!("../../templates/handler.js.txt")),
        };
        vec![
            ("schema.json", self.fill(include_str!("../../templates/schema.json.txt"))),
            ("guide.md", self.fill(include_str!("../../templates/guide.md.txt"))),
            ("basic.case.json", self.fill(include_str!("../../templates/basic.case.json.txt"))),
            (handler, self.fill(source)),
        ]
    }

    fn fill(&self, template: &str) -> String {
        let (category, side_effects, idempotent, confirm) = match self.category {
            CategoryChoice::Retrieval => ("retrieval", "read_only", "true", "false"),
            CategoryChoice::Action => ("action", "writes", "false", "true"),
            CategoryChoice::Utility => ("utility", "none", "true", "false"),
        };
        let approval = match self.category {
            CategoryChoice::Action => "\n    \"confirm\": \"approve\",",
            _ => "",
        };
        template
            .replace("{{id}}", &self.id)
            .replace("{{title}}", &self.title)
            .replace("{{category}}", category)
            .replace("{{sideEffects}}", side_effects)
            .replace("{{idempotent}}", idempotent)
            .replace("{{requiresConfirmation}}", confirm)
            .replace("{{approval}}", approval)
    }
}
