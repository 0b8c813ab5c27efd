//! Opens the audit log of a data folder.

use std::path::Path;

use anyhow::Context;
use quarterdeck_runtime::audit::{AuditEntry, AuditReader, Filter, log_size};
use serde_json::Value;

use crate::data;
use crate::terminal::info;

pub(super) fn open(data: &Path) -> anyhow::Result<AuditReader> {
    open_with(data, AuditReader::open)
}

/// Begins where lines may be that the filter wants; earlier segments are not read.
pub(super) fn open_for(data: &Path, filter: &Filter) -> anyhow::Result<AuditReader> {
    open_with(data, |path| AuditReader::open_since(path, filter.since.as_deref()))
}

/// Begins at the last `lines` complete lines.
pub(super) fn open_last(data: &Path, lines: u64) -> anyhow::Result<AuditReader> {
    open_with(data, |path| AuditReader::open_last(path, lines))
}

fn open_with(
    data: &Path,
    open: impl FnOnce(&Path) -> std::io::Result<AuditReader>,
) -> anyhow::Result<AuditReader> {
    let path = data::audit_file(data);
    if !log_size(&path).is_ok_and(|bytes| bytes > 0) {
        data::require_file(&path)?;
    }
    open(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// Calls `handle` with every line up to the end. Damaged lines are warned about and counted. A partial last line is
/// warned about and is no fault, because it may still be being written.
pub(super) fn for_each_line(
    reader: &mut AuditReader,
    mut handle: impl FnMut(&str, &Value) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let mut damaged = 0;
    loop {
        match reader.next_entry()? {
            AuditEntry::Line(line, value) => handle(&line, &value)?,
            AuditEntry::Damaged(what) => {
                damaged += 1;
                info(&format!("warning: {what}"));
            }
            AuditEntry::Partial(what) => {
                info(&format!("warning: {what}"));
                return Ok(damaged);
            }
            AuditEntry::End => return Ok(damaged),
        }
    }
}
