//! `quarterdeck check`.

use crate::arguments::{CheckOptions, Format};
use crate::config::LocalConfig;
use crate::{ExitStatus, report, terminal, wire};

pub(crate) fn run(options: &CheckOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let tools = options.tools.or(&config);
    let compilation = wire::compile_configured(tools, options.deny_lossy, &config.mcp)?;
    match options.format {
        Format::Json => terminal::print(&format!("{:#}\n", report::as_json(&compilation, None)))?,
        Format::Human => {
            report::problems(&compilation, tools);
            terminal::print(&format!("{}\n{}\n", report::lines(&compilation), report::totals(&compilation)))?;
        }
    }
    Ok(if compilation.artifact.is_some() { ExitStatus::Success } else { ExitStatus::Problems })
}
