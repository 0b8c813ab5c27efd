//! `quarterdeck backup`.

use quarterdeck_contracts::Store;

use crate::arguments::operator::BackupOptions;
use crate::config::LocalConfig;
use crate::output::check_new;
use crate::terminal::info;
use crate::{ExitStatus, data, wire};

pub(crate) fn run(options: &BackupOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let data = options.data.or(&config);
    let store = wire::find_store(data)?;
    check_new(&options.file)?;
    wire::block_on(async {
        store.backup(&options.file).await?;
        store.close().await
    })??;
    info(&format!(
        "{} holds sessions, calls, confirmations, blocks, rate limits, values of tools, images and the calendar\n\
         it does not hold the audit trail ({}), the tools, the knowledge base or the configuration",
        options.file.display(),
        data::audit_file(data).display(),
    ));
    Ok(ExitStatus::Success)
}
