//! `quarterdeck audit export`.

use std::io::Write;

use quarterdeck_runtime::audit::matches_filter;

use super::query::during;
use super::trail::{Trail, each};
use crate::Verdict;
use crate::arguments::operating::AuditExportOptions;
use crate::config::Site;
use crate::output::Output;
use crate::terminal::{count, say};

/// Lines go out as they were written, so that each still fits its hash.
pub(crate) fn run(options: &AuditExportOptions) -> anyhow::Result<Verdict> {
    let site = Site::load()?;
    let mut trail = Trail::open(options.data.or(&site))?;
    let mut out = Output::to(options.out.as_deref())?;
    let filter = during(&options.period);
    let mut lines = 0;
    let damaged = each(&mut trail, |line, value| {
        if matches_filter(value, &filter) {
            lines += 1;
            writeln!(out, "{line}")?;
        }
        Ok(())
    })?;
    out.finish()?;
    if let Some(file) = &options.out {
        say(&format!("{} written to {}", count(lines, "line"), file.display()));
    }
    if damaged > 0 {
        say(
            "the lines warned about were left out; `quarterdeck audit verify` says what is wrong with the first",
        );
        return Ok(Verdict::Problems);
    }
    Ok(Verdict::Fine)
}
