//! `quarterdeck audit export`.

use std::io::Write;

use quarterdeck_runtime::audit::matches_filter;

use super::ocsf;
use super::query::period_filter;
use super::reader::{self, for_each_line};
use crate::ExitStatus;
use crate::arguments::operator::{AuditExportOptions, ExportFormat};
use crate::config::LocalConfig;
use crate::output::Output;
use crate::terminal::{count, info};

/// JSON Lines are copied byte for byte, so that each still has its hash; an event of OCSF carries its line in `raw_data`.
pub(crate) fn run(options: &AuditExportOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let filter = period_filter(&options.period);
    let mut reader = reader::open_for(options.data.or(&config), &filter)?;
    let mut out = Output::to(options.out.as_deref())?;
    let mut lines = 0;
    let damaged = for_each_line(&mut reader, |line, value| {
        if matches_filter(value, &filter) {
            lines += 1;
            match options.format {
                ExportFormat::Jsonl => writeln!(out, "{line}")?,
                ExportFormat::Ocsf => writeln!(out, "{}", ocsf::event(line, value))?,
            }
        }
        Ok(())
    })?;
    out.finish()?;
    if let Some(file) = &options.out {
        info(&format!("{} written to {}", count(lines, "line"), file.display()));
    }
    if damaged > 0 {
        info("damaged lines were left out; `quarterdeck audit verify` reports the first fault");
        return Ok(ExitStatus::Problems);
    }
    Ok(ExitStatus::Success)
}
