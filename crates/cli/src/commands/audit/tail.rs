//! `quarterdeck audit tail`.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use quarterdeck_runtime::audit::{AuditEntry, AuditReader};

use super::line::show;
use super::reader::{self, for_each_line};
use crate::ExitStatus;
use crate::arguments::operator::{AuditTailOptions, LineFormat};
use crate::config::LocalConfig;
use crate::output::Output;
use crate::terminal::info;

const POLL_INTERVAL: Duration = Duration::from_millis(200);

pub(crate) fn run(options: &AuditTailOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let data = options.data.or(&config);
    let mut reader = reader::open_last(data, options.lines)?;
    let mut out = Output::to(None)?;
    if options.follow {
        return follow(reader, data, options.format, out);
    }
    let damaged = for_each_line(&mut reader, |line, value| {
        Ok(out.write_all(show(line, value, options.format).as_bytes())?)
    })?;
    out.finish()?;
    Ok(if damaged > 0 { ExitStatus::Problems } else { ExitStatus::Success })
}

fn follow(
    mut reader: AuditReader,
    data: &Path,
    format: LineFormat,
    mut out: Output,
) -> anyhow::Result<ExitStatus> {
    loop {
        match reader.next_entry()? {
            AuditEntry::Line(line, value) => out.write_all(show(&line, &value, format).as_bytes())?,
            AuditEntry::Damaged(what) => info(&format!("warning: {what}")),
            // The rest of a partial line is still being written.
            AuditEntry::Partial(_) | AuditEntry::End => {
                out.flush()?;
                std::thread::sleep(POLL_INTERVAL);
                if reader.is_cut_off() {
                    info("warning: the trail was cut off or replaced; reading it from the start:");
                    reader = reader::open(data)?;
                }
            }
        }
    }
}
