//! `quarterdeck build`.

use std::path::Path;

use quarterdeck_compiler::{Compilation, write_artifact};

use super::watch;
use crate::arguments::{BuildOptions, Format};
use crate::config::LocalConfig;
use crate::{ExitStatus, report, terminal, wire};

const ARTIFACT: &str = "tool_registry.json";

pub(crate) fn run(options: &BuildOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let tools = options.check.tools.or(&config);
    let path = options.out.clone().unwrap_or_else(|| tools.join(ARTIFACT));
    if options.watch {
        return watch::run(tools, &path, || build(options, tools, &path).map(drop));
    }
    build(options, tools, &path)
}

fn build(options: &BuildOptions, tools: &Path, path: &Path) -> anyhow::Result<ExitStatus> {
    let compilation = wire::compile_folder(tools, options.check.deny_lossy)?;
    if let Some(artifact) = &compilation.artifact {
        write_artifact(artifact, path)?;
    }
    match options.check.format {
        Format::Json => {
            let written = compilation.artifact.is_some().then_some(path);
            terminal::print(&format!("{:#}\n", report::as_json(&compilation, written)))?;
        }
        Format::Human => {
            report::problems(&compilation, tools);
            terminal::print(&summary(&compilation, path))?;
        }
    }
    Ok(if compilation.artifact.is_some() { ExitStatus::Success } else { ExitStatus::Problems })
}

fn summary(compilation: &Compilation, path: &Path) -> String {
    let lines = report::lines(compilation);
    let totals = report::totals(compilation);
    let path = path.display();
    match &compilation.artifact {
        Some(artifact) => {
            let commit = artifact.git_commit.as_deref().unwrap_or("none");
            let (version, digest) = (&artifact.version, &artifact.content_hash);
            format!(
                "{lines}\nregistry {version} (commit {commit}) written to {path}\ndigest {digest}\n{totals}\n"
            )
        }
        None => format!(
            "{lines}\nno registry: {path} was left as it was\n{totals}; `quarterdeck explain CODE` tells more about each\n"
        ),
    }
}
