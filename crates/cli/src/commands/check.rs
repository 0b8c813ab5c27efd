//! `quarterdeck check`.

use crate::arguments::{CheckOptions, Format};
use crate::config::Site;
use crate::{Verdict, report, terminal, wire};

pub(crate) fn run(options: &CheckOptions) -> anyhow::Result<Verdict> {
    let site = Site::load()?;
    let tools = options.tools.or(&site);
    let compilation = wire::compile_folder(tools, options.deny_lossy)?;
    match options.format {
        Format::Json => terminal::print(&format!("{:#}\n", report::as_json(&compilation, None)))?,
        Format::Human => {
            report::problems(&compilation, tools);
            terminal::print(&format!("{}\n{}\n", report::lines(&compilation), report::totals(&compilation)))?;
        }
    }
    Ok(if compilation.artifact.is_some() { Verdict::Fine } else { Verdict::Problems })
}
