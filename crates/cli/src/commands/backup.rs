//! `quarterdeck backup`.

use crate::arguments::operator::BackupOptions;
use crate::backup::{self, Manifest, Part};
use crate::config::LocalConfig;
use crate::terminal::{count, info};
use crate::{ExitStatus, wire};

pub(crate) fn run(options: &BackupOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let node = options.data.node(&config);
    let manifest = wire::block_on(backup::write(&node, &options.folder))??;
    info(&format!(
        "{} holds {} of {}\n\
         it does not hold the tools, the records of the knowledge base, the configuration and the secrets that it names\n\
         SHA-256 {}",
        options.folder.display(),
        describe(&manifest),
        node.folder.display(),
        manifest.digest(),
    ));
    if node.config.is_shared() {
        info(
            "the knowledge base in the database is not in it: `pg_dump` copies it, or it is built again from the records",
        );
    }
    Ok(ExitStatus::Success)
}

/// The parts of a backup, in words.
pub(super) fn describe(manifest: &Manifest) -> String {
    let format = |part: Part| {
        let found = manifest.files.iter().find(|entry| entry.part == part).and_then(|entry| entry.format);
        found.map_or(String::new(), |format| format!(" (format {format})"))
    };
    let mut parts = vec![format!("the store{}", format(Part::Store))];
    match manifest.count(Part::AuditLog) {
        0 => {}
        files => parts.push(format!("the audit trail ({})", count(files, "file"))),
    }
    for (part, words) in [
        (Part::Knowledge, "the index of the knowledge base"),
        (Part::Key, "the key of cookies and tokens"),
        (Part::Registry, "the registry"),
    ] {
        if manifest.count(part) > 0 {
            parts.push(format!("{words}{}", format(part)));
        }
    }
    match manifest.count(Part::Other) {
        0 => {}
        files => parts.push(format!("{} more", count(files, "file"))),
    }
    match parts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => parts.concat(),
    }
}
