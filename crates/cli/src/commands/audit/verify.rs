//! `quarterdeck audit verify`.

use std::path::Path;

use anyhow::{anyhow, bail};
use quarterdeck_contracts::{Store, Table};
use quarterdeck_runtime::audit::{Verification, verify};
use serde_json::json;

use super::trail::{Next, Trail};
use crate::arguments::Format;
use crate::arguments::operating::AuditVerifyOptions;
use crate::config::Site;
use crate::terminal::{count, print};
use crate::{Verdict, data, wire};

pub(crate) fn run(options: &AuditVerifyOptions) -> anyhow::Result<Verdict> {
    let site = Site::load()?;
    let data = options.data.or(&site);
    let found = wire::block_on(look(data))??;
    let path = data::trail_file(data);
    match options.format {
        Format::Json => {
            let whole = found.fault.is_none();
            print(&format!("{:#}\n", json!({ "whole": whole, "lines": found.lines, "fault": found.fault })))?;
        }
        Format::Human => {
            let lines = count(usize::try_from(found.lines).unwrap_or(usize::MAX), "line");
            let text = match &found.fault {
                None => format!("{}: {lines}, whole\n", path.display()),
                Some(fault) => format!("{}: {fault}\nthe chain holds for {lines}\n", path.display()),
            };
            print(&text)?;
        }
    }
    Ok(if found.fault.is_some() { Verdict::Problems } else { Verdict::Fine })
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
    if found.fault.is_some() || found.lines == 0 {
        return Ok(found);
    }
    let fault = match store.get(Table::Audit, data::NODE).await? {
        None => {
            Some("the store does not know this trail, so nobody can tell whether its end is there".into())
        }
        Some(_) => first_gap(data)?,
    };
    store.close().await?;
    Ok(Verification { fault, ..found })
}

/// A trail that was cut off and then continued says so itself: its chain holds, and lines are missing all the same.
fn first_gap(data: &Path) -> anyhow::Result<Option<String>> {
    let mut trail = Trail::open(data)?;
    loop {
        match trail.next()? {
            Next::Line(_, line) if line["event"] == "audit_gap" => {
                return Ok(Some(format!(
                    "line {}: lines were cut off before it: the trail had {} and was left with {}",
                    line["seq"], line["expected"], line["found"]
                )));
            }
            Next::Line(..) | Next::Damaged(_) => {}
            Next::Unfinished(_) | Next::End => return Ok(None),
        }
    }
}
