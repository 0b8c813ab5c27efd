//! `quarterdeck audit export`.

use std::io::Write;

use quarterdeck_runtime::audit::matches_filter;

use super::query::period_filter;
use super::reader::{self, for_each_line};
use crate::ExitStatus;
use crate::arguments::operator::AuditExportOptions;
use crate::config::LocalConfig;
use crate::output::Output;
use crate::terminal::{count, info};

/// Lines are copied byte for byte, so that each still has its hash.
pub(crate) fn run(options: &AuditExportOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let mut reader = reader::open(options.data.or(&config))?;
    let mut out = Output::to(options.out.as_deref())?;
    let filter = period_filter(&options.period);
    let mut lines = 0;
    let damaged = for_each_line(&mut reader, |line, value| {
        if matches_filter(value, &filter) {
            lines += 1;
            writeln!(out, "{line}")?;
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
