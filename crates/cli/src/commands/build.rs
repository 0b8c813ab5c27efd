//! `quarterdeck build`.

use std::path::Path;

use quarterdeck_compiler::{Compilation, write_artifact};
use quarterdeck_contracts::Artifact;

use super::watch;
use crate::arguments::{BuildOptions, Format};
use crate::config::LocalConfig;
use crate::registry_changes::RegistryChanges;
use crate::{ExitStatus, environment, report, terminal, wire};

const ARTIFACT: &str = "tool_registry.json";

pub(crate) fn run(options: &BuildOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let tools = options.check.tools.or(&config);
    let path = options.out.clone().unwrap_or_else(|| tools.join(ARTIFACT));
    if options.watch {
        let mut last = None;
        return watch::run(tools, || build_again(options, &config, &path, &mut last));
    }
    let compilation = compile(options, &config, &path)?;
    print(options, tools, &path, &compilation)?;
    Ok(if compilation.artifact.is_some() { ExitStatus::Success } else { ExitStatus::Problems })
}

fn compile(options: &BuildOptions, config: &LocalConfig, path: &Path) -> anyhow::Result<Compilation> {
    let tools = options.check.tools.or(config);
    let compilation = wire::compile_configured(tools, options.check.deny_lossy, &config.mcp)?;
    if let Some(artifact) = &compilation.artifact {
        write_artifact(artifact, path)?;
    }
    Ok(compilation)
}

fn print(options: &BuildOptions, tools: &Path, path: &Path, compilation: &Compilation) -> anyhow::Result<()> {
    match options.check.format {
        Format::Json => {
            let written = compilation.artifact.is_some().then_some(path);
            terminal::print(&format!("{:#}\n", report::as_json(compilation, written)))?;
        }
        Format::Human => {
            report::problems(compilation, tools);
            terminal::print(&summary(compilation, path))?;
        }
    }
    Ok(())
}

/// Builds, and prints what is different from the last build that succeeded. The first one, and one with problems, is
/// printed whole.
fn build_again(
    options: &BuildOptions,
    config: &LocalConfig,
    path: &Path,
    last: &mut Option<Artifact>,
) -> anyhow::Result<()> {
    let tools = options.check.tools.or(config);
    let compilation = compile(options, config, path)?;
    let Some(artifact) = &compilation.artifact else { return print(options, tools, path, &compilation) };
    let Some(before) = last.replace(artifact.clone()) else {
        return print(options, tools, path, &compilation);
    };
    let changes = RegistryChanges::between(&before, artifact);
    match options.check.format {
        Format::Json => {
            let mut report = report::as_json(&compilation, Some(path));
            report["changes"] = changes.to_json();
            terminal::print(&format!("{report:#}\n"))?;
        }
        Format::Human => {
            report::problems(&compilation, tools);
            let style = environment::style_of_stdout();
            let changes =
                if changes.is_empty() { "no tool changed\n".to_owned() } else { changes.to_text(style) };
            let (version, totals) = (&artifact.version, report::totals(&compilation));
            terminal::print(&format!(
                "{changes}registry {version} written to {}\n{totals}\n",
                path.display()
            ))?;
        }
    }
    Ok(())
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
