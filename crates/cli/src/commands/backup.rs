//! `quarterdeck backup`.

use quarterdeck_contracts::Store;

use crate::arguments::operating::BackupOptions;
use crate::config::Site;
use crate::output::check_new;
use crate::terminal::say;
use crate::{Verdict, data, wire};

pub(crate) fn run(options: &BackupOptions) -> anyhow::Result<Verdict> {
    let site = Site::load()?;
    let data = options.data.or(&site);
    let store = wire::find_store(data)?;
    check_new(&options.file)?;
    wire::block_on(async {
        store.backup(&options.file).await?;
        store.close().await
    })??;
    say(&format!(
        "{} holds sessions, calls, confirmations, blocks, rate limits, values of tools and the calendar\n\
         it does not hold the audit trail ({}), the tools, the knowledge base and the configuration",
        options.file.display(),
        data::trail_file(data).display(),
    ));
    Ok(Verdict::Fine)
}
