//! Finds every `handler.rs` beside this file and writes the table of native handlers.
//!
//! Adding a tool folder is enough: there is no list to edit. The generated file lives in `OUT_DIR` and holds, for
//! each folder, a module that points at its `handler.rs` and an entry with the hash of the folder's Rust files.

use std::env;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use quarterdeck_contracts::native_source_hash;

#[expect(clippy::disallowed_methods, reason = "Cargo speaks to build scripts through the environment")]
fn main() -> Result<(), Box<dyn Error>> {
    let tools = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    // The folder itself, so that a new tool is noticed. Cargo looks at everything below it.
    println!("cargo::rerun-if-changed={}", tools.display());

    let mut handlers = Vec::new();
    for folder in tool_folders(&tools)? {
        match read_handler(&tools, &folder)? {
            Ok(handler) => handlers.push(handler),
            // One run reports every handler that is wrong; Cargo fails the build after it.
            Err(problem) => println!("cargo::error=tools/{folder}/handler.rs {problem}"),
        }
    }

    let table = PathBuf::from(env::var("OUT_DIR")?).join("handlers.rs");
    Ok(fs::write(table, generate(&handlers))?)
}

struct Handler {
    /// The folder's name with `-` as `_`: the tool's id and the module's name.
    tool_id: String,
    path: PathBuf,
    source_hash: String,
    /// Whether it looks at a call before the user is asked to approve it.
    has_precheck: bool,
}

/// Names of the folders with a `handler.rs`, sorted so that the same sources give the same table.
fn tool_folders(tools: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(tools)? {
        let name = entry?.file_name().into_string().map_err(|name| format!("{name:?} is not UTF-8"))?;
        if !name.starts_with(['_', '.']) && tools.join(&name).join("handler.rs").is_file() {
            folders.push(name);
        }
    }
    folders.sort();
    Ok(folders)
}

/// The handler of one folder, or what its author must change.
fn read_handler(tools: &Path, folder: &str) -> Result<Result<Handler, &'static str>, Box<dyn Error>> {
    let path = tools.join(folder).join("handler.rs");
    let source = fs::read(&path)?;
    let tool_id = folder.replace('-', "_");

    if !is_module_name(&tool_id) {
        return Ok(Err("stands in a folder whose name is not lower-case letters, digits and dashes"));
    }
    let source = String::from_utf8_lossy(&source);
    if !source.contains("pub async fn execute(") {
        return Ok(Err("has no `pub async fn execute(args: Args, context: Arc<dyn Context>)`"));
    }
    let has_precheck = source.contains("pub async fn precheck(");
    Ok(Ok(Handler { tool_id, path, source_hash: source_hash(&tools.join(folder))?, has_precheck }))
}

/// The hash that tells the compiler whether a binary is older than the folder.
fn source_hash(folder: &Path) -> Result<String, Box<dyn Error>> {
    let mut files = Vec::new();
    rust_files(folder, String::new(), &mut files)?;
    let contents: Vec<Vec<u8>> =
        files.iter().map(|file| fs::read(folder.join(file))).collect::<Result<_, _>>()?;
    Ok(native_source_hash(files.iter().map(String::as_str).zip(&contents)))
}

fn rust_files(folder: &Path, prefix: String, found: &mut Vec<String>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|name| format!("{name:?} is not UTF-8"))?;
        if entry.file_type()?.is_dir() {
            rust_files(&entry.path(), format!("{prefix}{name}/"), found)?;
        } else if name.ends_with(".rs") {
            found.push(format!("{prefix}{name}"));
        }
    }
    Ok(())
}

fn is_module_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

fn generate(handlers: &[Handler]) -> String {
    let mut modules = String::new();
    let mut entries = String::new();
    for Handler { tool_id, path, source_hash, has_precheck } in handlers {
        let precheck =
            if *has_precheck { format!(".with_precheck({tool_id}::precheck)") } else { String::new() };
        let _ = writeln!(modules, "#[path = {path:?}]\npub mod {tool_id};");
        let _ = writeln!(
            entries,
            "        NativeHandler::new({tool_id:?}, {source_hash:?}, {tool_id}::execute){precheck},"
        );
    }
    format!(
        "{modules}\n\
         /// Every native handler of this build, sorted by tool id.\n\
         pub fn handlers() -> Vec<NativeHandler> {{\n    vec![\n{entries}    ]\n}}\n"
    )
}
