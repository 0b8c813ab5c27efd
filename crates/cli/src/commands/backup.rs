//! `quarterdeck backup`.

use crate::arguments::operator::BackupOptions;
use crate::config::LocalConfig;
use crate::output::check_new;
use crate::terminal::info;
use crate::{ExitStatus, wire};

pub(crate) fn run(options: &BackupOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let node = options.data.node(&config);
    wire::block_on(async {
        let store = wire::find_store(&node).await?;
        check_new(&options.file)?;
        store.backup(&options.file).await?;
        anyhow::Ok(store.close().await?)
    })??;
    info(&format!(
        "{} holds sessions, calls, confirmations, blocks, rate limits, values of tools, images and the calendar\n\
         it does not hold the audit trail ({}), the tools, the knowledge base or the configuration",
        options.file.display(),
        node.audit_file().display(),
    ));
    Ok(ExitStatus::Success)
}
