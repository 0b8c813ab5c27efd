//! `quarterdeck mcp import`: a folder for each tool. A folder that is there is never written to.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use quarterdeck_compiler::{Compilation, Severity, Style, Tree, compile, render};
use quarterdeck_host_mcp::{Import, McpInspector, PublishedTool, ToolFolder, UpstreamConfig, tool_id};

use super::catalog::Catalog;
use super::imported::ToolsFolderContent;
use super::relax::relax;
use crate::arguments::mcp::McpImportOptions;
use crate::config::LocalConfig;
use crate::terminal::{count, info, plain, warn};
use crate::{ExitStatus, environment, handler_kinds};

pub(crate) fn run(options: &McpImportOptions) -> anyhow::Result<ExitStatus> {
    if let Some(file) = &options.catalog {
        return run_catalog(file, options);
    }
    let config = LocalConfig::load()?;
    let name = options.name.as_deref().unwrap_or_default();
    let server = super::find(&config, name)?;
    let mut importer = Importer::new(options.tools.or(&config), options.dry_run)?;
    importer.import(server, &options.only)?;
    importer.finish()
}

/// Adds the servers of a catalog that are not configured, then imports each. One that fails does not keep the others.
fn run_catalog(file: &Path, options: &McpImportOptions) -> anyhow::Result<ExitStatus> {
    let catalog = Catalog::read(file)?;
    let servers = catalog.configure(options.dry_run)?;
    let config = LocalConfig::load()?;
    let mut importer = Importer::new(options.tools.or(&config), options.dry_run)?;
    for (name, only) in &catalog.tools {
        let imported =
            super::find_in(&servers, name.as_str()).and_then(|server| importer.import(server, only));
        if let Err(error) = imported {
            warn(&format!("{error:#}"));
            importer.failed += 1;
        }
    }
    importer.finish()
}

/// Writes folders, and counts.
struct Importer<'a> {
    tools: &'a Path,
    editor_schema: Option<&'static str>,
    content: ToolsFolderContent,
    is_dry_run: bool,
    written: usize,
    failed: usize,
}

impl<'a> Importer<'a> {
    fn new(tools: &'a Path, is_dry_run: bool) -> anyhow::Result<Self> {
        let editor_schema = match is_dry_run {
            true => None,
            false => {
                fs::create_dir_all(tools).with_context(|| format!("cannot create {}", tools.display()))?;
                Some(crate::commands::new::editor_schema(tools)?)
            }
        };
        let content = ToolsFolderContent::read(tools)?;
        Ok(Self { tools, editor_schema, content, is_dry_run, written: 0, failed: 0 })
    }

    /// Imports the tools of a server, or those of these names.
    fn import(&mut self, server: &UpstreamConfig, only: &[String]) -> anyhow::Result<()> {
        let listing = super::published(server)?;
        if let Some(unknown) = only.iter().find(|name| listing.find(name).is_none()) {
            let name = &server.name;
            bail!("{name} has no tool {unknown:?}; `quarterdeck mcp tools {name}` lists what it has");
        }
        info(&format!(
            "{}: {} {}, {}",
            server.name,
            plain(&listing.server.name),
            plain(&listing.server.version),
            count(listing.tools.len(), "tool")
        ));
        let is_wanted = |tool: &&PublishedTool| only.is_empty() || only.contains(&tool.name);
        for tool in listing.tools.iter().filter(is_wanted) {
            self.import_tool(server, tool)?;
        }
        Ok(())
    }

    fn import_tool(&mut self, server: &UpstreamConfig, tool: &PublishedTool) -> anyhow::Result<()> {
        let shown = plain(&tool.name);
        if let Some(known) = self.content.find(&server.name, &tool.name) {
            let hint = match known.binding.digest == tool.digest() {
                true => String::new(),
                false => {
                    format!(", and has changed since; `quarterdeck mcp update {}` shows how", server.name)
                }
            };
            info(&format!("  {shown}: is imported already, in {}{hint}", known.folder.display()));
            return Ok(());
        }
        let id = tool_id(&server.name, &tool.name, |id| self.content.is_taken(id));
        let folder = id.and_then(|id| {
            let (server, id) = (&server.name, &id);
            Import { server, tool, id, editor_schema: self.editor_schema }.to_folder()
        });
        match folder {
            Ok(folder) => self.write(&shown, &relax(folder)),
            Err(error) => {
                warn(&format!("{shown} is not imported: {error}"));
                self.failed += 1;
                Ok(())
            }
        }
    }

    /// A folder that the compiler refuses is written under a name that is not built, for its author to correct.
    fn write(&mut self, shown: &str, folder: &ToolFolder) -> anyhow::Result<()> {
        let compilation = compile_alone(folder)?;
        let is_sound = compilation.artifact.is_some();
        let name = if is_sound { folder.name.clone() } else { format!("_{}", folder.name) };
        let path = self.tools.join(&name);
        if path.exists() {
            warn(&format!("{shown} is not imported: {} is there already and was left alone", path.display()));
            self.failed += 1;
            return Ok(());
        }
        let verb = if self.is_dry_run { "would write" } else { "wrote" };
        if !self.is_dry_run {
            write_folder(&path, &folder.files)?;
        }
        self.content.take(&folder.id);
        info(&format!("  {shown}: {verb} {}", path.display()));
        folder.notes.iter().for_each(|note| info(&format!("    {note}")));
        report(&compilation, self.tools);
        if is_sound {
            self.written += 1;
        } else {
            self.failed += 1;
            warn(&format!(
                "{shown} is not built as it is: correct {0}/schema.json, rename the folder to {1}, and run `quarterdeck check`",
                path.display(),
                folder.name
            ));
        }
        Ok(())
    }

    fn finish(self) -> anyhow::Result<ExitStatus> {
        let verb = if self.is_dry_run { "would be written" } else { "written" };
        info(&format!("{} {verb}, {} not imported", count(self.written, "folder"), self.failed));
        if self.written > 0 && !self.is_dry_run {
            info(
                "next: read them like any other code (schema.json: modes, limits, confirmation; guide.md), then `quarterdeck build`",
            );
        }
        Ok(if self.failed == 0 { ExitStatus::Success } else { ExitStatus::Problems })
    }
}

/// What the compiler says of one folder.
fn compile_alone(folder: &ToolFolder) -> anyhow::Result<Compilation> {
    let texts = folder.files.iter().map(|(file, text)| (format!("{}/{file}", folder.name), text.clone()));
    let tree = Tree::from_texts(texts);
    let stamp = environment::stamp(Path::new("."))?;
    let options =
        quarterdeck_compiler::Options::new(handler_kinds::inspectors(McpInspector::default()), stamp);
    Ok(compile(&tree, &options))
}

/// Errors with their source; of the rest, which real servers cause by the dozen, a line each.
fn report(compilation: &Compilation, tools: &Path) {
    let folder = tools.to_string_lossy();
    for problem in &compilation.diagnostics {
        match problem.severity {
            Severity::Error => {
                info(&format!("{}\n", render(problem, &folder, environment::style_of_stderr())))
            }
            _ => {
                let text = render(problem, &folder, Style::Plain);
                info(&format!("    {}", text.lines().next().unwrap_or_default()));
            }
        }
    }
    let lossy = compilation.artifact.iter().flat_map(|artifact| &artifact.tools).flat_map(|tool| &tool.lossy);
    for (provider, losses) in lossy {
        let renamed = losses.iter().flat_map(|loss| &loss.renamed);
        for (name, other) in renamed {
            info(&format!("    {}: {} is declared as {other}", provider.as_str(), plain(name)));
        }
    }
}

/// Writes a folder that does not exist, whole or not at all.
fn write_folder(path: &Path, files: &[(&'static str, String)]) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let parent = path.parent().unwrap_or(Path::new("."));
    let partial = tempfile::Builder::new().prefix(".import-").tempdir_in(parent).with_context(cannot)?;
    for (file, text) in files {
        fs::write(partial.path().join(file), text).with_context(cannot)?;
    }
    open_permissions(partial.path()).with_context(cannot)?;
    fs::rename(partial.path(), path).with_context(cannot)?;
    // What was renamed is not there to be removed any more.
    let _ = partial.keep();
    Ok(())
}

/// A temporary folder is its owner's alone; a tool folder is what the umask makes of it, as far as others may read it.
#[cfg(unix)]
fn open_permissions(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn open_permissions(_: &Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use quarterdeck_host_mcp::ServerName;
    use serde_json::{Value, json};

    use super::*;

    fn folder(name: &str, description: &Value, schema: &Value) -> ToolFolder {
        let published = json!({ "name": name, "description": description, "inputSchema": schema });
        let tool: PublishedTool = serde_json::from_value(published).unwrap();
        let server = ServerName::parse("corpus").unwrap();
        let id = tool_id(&server, name, |_| false).unwrap();
        Import { server: &server, tool: &tool, id: &id, editor_schema: None }.to_folder().unwrap()
    }

    fn errors(folder: &ToolFolder) -> Vec<String> {
        let diagnostics = compile_alone(folder).unwrap().diagnostics;
        let errors = diagnostics.iter().filter(|problem| problem.severity == Severity::Error);
        errors.map(|problem| render(problem, "tools", Style::Plain)).collect()
    }

    #[test]
    fn foreign_markdown_in_a_description_is_neither_a_heading_nor_an_example() {
        let description = json!(
            "# Title\n\n## Examples\n\n```json\n{ \"not\": \"allowed\" }\n```\n\n~~~json\nno json\n~~~\n"
        );
        let folder = folder("x", &description, &json!({ "type": "object", "properties": {} }));
        assert_eq!(errors(&folder), Vec::<String>::new());
    }

    #[test]
    fn every_tool_of_published_servers_becomes_a_folder_that_builds() {
        let Some(rows) = quarterdeck_testkit::jsonl("schemas/corpus.jsonl") else { return };
        let is_published =
            |row: &&Value| row["source"].as_str().is_some_and(|source| source.starts_with("npm:"));
        let (mut all, mut refused) = (0, Vec::new());
        for row in rows.iter().filter(is_published) {
            all += 1;
            let folder = folder(row["name"].as_str().unwrap(), &row["description"], &row["parameters"]);
            refused.extend(errors(&relax(folder)).into_iter().take(1));
        }
        assert!(all > 100, "{all} tools");
        assert!(refused.is_empty(), "{} of {all}:\n{}", refused.len(), refused.join("\n"));
    }
}
