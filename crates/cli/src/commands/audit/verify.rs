//! `quarterdeck audit verify`.

use std::path::Path;

use anyhow::{anyhow, bail};
use quarterdeck_contracts::Store;
use quarterdeck_runtime::audit::{Verification, verify};
use serde_json::json;

use crate::arguments::Format;
use crate::arguments::operator::AuditVerifyOptions;
use crate::config::LocalConfig;
use crate::terminal::{count, print};
use crate::{ExitStatus, data, wire};

pub(crate) fn run(options: &AuditVerifyOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let data = options.data.or(&config);
    let found = wire::block_on(verify_trail(data))??;
    match options.format {
        Format::Json => {
            let Verification { lines, unconfirmed, fault } = &found;
            let found = json!({
                "whole": fault.is_none(), "lines": lines, "unconfirmed": unconfirmed, "fault": fault,
            });
            print(&format!("{found:#}\n"))?;
        }
        Format::Human => print(&as_text(&data::audit_file(data), &found))?,
    }
    Ok(if found.fault.is_some() { ExitStatus::Problems } else { ExitStatus::Success })
}

fn as_text(path: &Path, found: &Verification) -> String {
    let lines = |number: u64| count(usize::try_from(number).unwrap_or(usize::MAX), "line");
    let mut text = match &found.fault {
        None => format!("{}: {}, whole\n", path.display(), lines(found.lines)),
        Some(fault) => {
            format!("{}: {fault}\nthe chain holds for {}\n", path.display(), lines(found.lines))
        }
    };
    if found.fault.is_none() && found.unconfirmed > 0 {
        text.push_str(&format!(
            "the last {} came after the end that the store knows: a crash or a restored backup leaves such lines,\n\
             but so does any process that can write the file\n",
            lines(found.unconfirmed)
        ));
    }
    text
}

async fn verify_trail(data: &Path) -> anyhow::Result<Verification> {
    let (trail, store) = (data::audit_file(data), data::store_file(data));
    // The store keeps the end of the chain: without it, a cut-off end would go unnoticed.
    if trail.exists() && !store.exists() {
        bail!(
            "cannot verify {}: {}, which keeps the end of the chain, is missing\n\
             help: put the store back from a backup, and run this again",
            trail.display(),
            store.display()
        );
    }
    let store = wire::find_store(data)?;
    let found = verify(&trail, data::NODE, &*store).await.map_err(|error| anyhow!(error))?;
    store.close().await?;
    Ok(found)
}
