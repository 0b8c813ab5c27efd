//! `quarterdeck audit verify`.

use std::path::Path;

use anyhow::{anyhow, bail};
use quarterdeck_contracts::Store;
use quarterdeck_runtime::audit::{Verification, verify};
use serde_json::json;

use crate::arguments::Format;
use crate::arguments::operating::AuditVerifyOptions;
use crate::config::Site;
use crate::terminal::{count, print};
use crate::{Verdict, data, wire};

pub(crate) fn run(options: &AuditVerifyOptions) -> anyhow::Result<Verdict> {
    let site = Site::load()?;
    let data = options.data.or(&site);
    let found = wire::block_on(look(data))??;
    match options.format {
        Format::Json => {
            let Verification { lines, unconfirmed, fault } = &found;
            let found = json!({
                "whole": fault.is_none(), "lines": lines, "unconfirmed": unconfirmed, "fault": fault,
            });
            print(&format!("{found:#}\n"))?;
        }
        Format::Human => print(&as_text(&data::trail_file(data), &found))?,
    }
    Ok(if found.fault.is_some() { Verdict::Problems } else { Verdict::Fine })
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
            "the last {} came after the end that the store knows: a crash or a store from a backup leaves such lines,\n\
             but so does any process that can write the file\n",
            lines(found.unconfirmed)
        ));
    }
    text
}

async fn look(data: &Path) -> anyhow::Result<Verification> {
    let (trail, store) = (data::trail_file(data), data::store_file(data));
    // The store keeps the end of the chain: without it, nobody could tell that lines were cut off.
    if trail.exists() && !store.exists() {
        bail!(
            "cannot tell whether {} is whole: {}, which knows where it ends, is missing\n\
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
