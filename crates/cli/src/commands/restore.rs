//! `quarterdeck restore`.

use serde_json::json;

use super::backup::describe;
use crate::arguments::operator::RestoreOptions;
use crate::backup::Restore;
use crate::config::LocalConfig;
use crate::operator::OperatorSession;
use crate::terminal::info;
use crate::{ExitStatus, data, wire};

pub(crate) fn run(options: &RestoreOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let node = options.data.node(&config);
    let restore = Restore::check(&options.backup)?;
    let manifest = restore.manifest();
    let what = format!(
        "{}, made {} by quarterdeck {}, with {}",
        options.backup.display(),
        manifest.made_at,
        manifest.program,
        describe(manifest)
    );
    if options.check {
        info(&format!("complete and undamaged: {what}\nSHA-256 {}", manifest.digest()));
        return Ok(ExitStatus::Success);
    }
    restore.run(&node)?;
    info(&format!("{} is restored from {what}", node.folder.display()));
    if node.config.is_shared() {
        info(&format!(
            "the configuration names {}, which was left as it is\n\
             help: `quarterdeck store copy --from sqlite:{} --to URL` copies the restored store into an empty database",
            node.url,
            data::store_file(&node.folder).display()
        ));
        return Ok(ExitStatus::Success);
    }
    // The trail says that its server has gone back in time, and from which moment it goes on.
    let details =
        json!({ "madeAt": manifest.made_at, "program": manifest.program, "sha256": manifest.digest() });
    wire::block_on(async { OperatorSession::open(&node).await?.record("restore_backup", details).await })??;
    info(
        "what was done after the backup is not known any more: `quarterdeck audit verify` checks the trail; then start the server",
    );
    Ok(ExitStatus::Success)
}
