//! `quarterdeck audit verify`: the chains of all nodes that share the store.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{anyhow, bail};
use quarterdeck_contracts::{Store, Table};
use quarterdeck_runtime::audit::{ChainSource, NodeVerification, Verification, verify_nodes};
use serde_json::{Value, json};

use crate::arguments::Format;
use crate::arguments::operator::{AuditVerifyOptions, NodeFile};
use crate::config::LocalConfig;
use crate::node_data::NodeData;
use crate::store_url::StoreUrl;
use crate::terminal::{count, print};
use crate::{ExitStatus, data, wire};

pub(crate) fn run(options: &AuditVerifyOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let node = options.data.node(&config);
    let found = wire::block_on(verify_chains(&node, &options.files))??;
    match options.format {
        Format::Json => print(&format!("{:#}\n", as_json(&node.chain, &found)))?,
        Format::Human => print(&found.iter().map(|one| as_text(one, found.len())).collect::<String>())?,
    }
    let is_faulty = |one: &NodeVerification| one.found.as_ref().is_some_and(|found| found.fault.is_some());
    Ok(if found.iter().any(is_faulty) { ExitStatus::Problems } else { ExitStatus::Success })
}

/// The chain of this machine as ever, and all of them where there are more.
fn as_json(own: &str, found: &[NodeVerification]) -> Value {
    let chain = |found: Option<&Verification>| {
        json!({
            "whole": found.map(|found| found.fault.is_none()), "lines": found.map(|found| found.lines),
            "unconfirmed": found.map(|found| found.unconfirmed), "fault": found.and_then(|found| found.fault.clone()),
            "closedSegments": found.map(|found| found.closed_segments),
            "cut": found.and_then(|found| found.cut.as_ref()), "seals": found.and_then(|found| found.seals.as_ref()),
        })
    };
    let of_own = found.iter().find(|one| one.node == own).and_then(|one| one.found.as_ref());
    let mut all = chain(of_own);
    if found.len() == 1 && of_own.is_some() {
        return all;
    }
    let nodes = found.iter().map(|one| {
        let mut node = chain(one.found.as_ref());
        node["node"] = json!(one.node);
        node["knownLines"] = json!(one.known_lines);
        node["source"] = match &one.source {
            ChainSource::File(path) => json!(path),
            ChainSource::Store => json!("store"),
            ChainSource::NotSeen => Value::Null,
        };
        node
    });
    all["nodes"] = nodes.collect();
    all
}

fn as_text(one: &NodeVerification, chains: usize) -> String {
    let lines = |number: u64| count(usize::try_from(number).unwrap_or(usize::MAX), "line");
    let place = match &one.source {
        ChainSource::File(path) => path.display().to_string(),
        ChainSource::Store => "in the store".to_owned(),
        ChainSource::NotSeen => String::new(),
    };
    let place = match (chains, place.as_str()) {
        (1, _) => place,
        (_, "") => one.node.clone(),
        _ => format!("{}: {place}", one.node),
    };
    let Some(found) = &one.found else {
        return format!(
            "{place}: not seen; the store knows {} of it, which are on another machine\n\
             help: copy its audit.jsonl (and audit.jsonl.segments) here and add `--file {}=FILE`, or set `audit.keep_in_store` on that node\n",
            lines(one.known_lines),
            one.node
        );
    };
    let mut text = match &found.fault {
        None if found.closed_segments > 0 => {
            let segments = count(usize::try_from(found.closed_segments + 1).unwrap_or(usize::MAX), "segment");
            format!("{place}: {} in {segments}, whole\n", lines(found.lines))
        }
        None => format!("{place}: {}, whole\n", lines(found.lines)),
        Some(fault) => format!("{place}: {fault}\nthe chain holds for {}\n", lines(found.lines)),
    };
    if let Some(cut) = &found.cut {
        let since =
            if cut.since.is_empty() { String::new() } else { format!(" It is kept since {}.", cut.since) };
        text.push_str(&format!(
            "Before it, {} were cut as `audit.retain_days` says.{since}\n",
            lines(cut.lines)
        ));
    }
    if let Some(seals) = &found.seals {
        let unsealed = match seals.unsealed {
            0 => String::new(),
            unsealed => format!("; {unsealed} of the closed segments are not sealed"),
        };
        text.push_str(&format!("{} of the seal file agree{unsealed}\n", seals.sealed));
    }
    if found.fault.is_none() && found.unconfirmed > 0 {
        text.push_str(&format!(
            "the last {} came after the end that the store knows: a crash or a restored backup leaves such lines,\n\
             but so does any process that can write the file\n",
            lines(found.unconfirmed)
        ));
    }
    text
}

async fn verify_chains(node: &NodeData, given: &[NodeFile]) -> anyhow::Result<Vec<NodeVerification>> {
    let trail = node.audit_file();
    // The store keeps the end of the chain: without it, a cut-off end would go unnoticed.
    if let StoreUrl::Sqlite(store) = &node.url
        && trail.exists()
        && !store.exists()
    {
        bail!(
            "cannot verify {}: {}, which keeps the end of the chain, is missing\n\
             help: put the store back from a backup, and run this again",
            trail.display(),
            store.display()
        );
    }
    for NodeFile { node, path } in given {
        if !path.is_file() {
            bail!("there is no file {}\nhelp: copy the audit.jsonl of {node} there", path.display());
        }
    }
    let store = wire::find_store(node).await?;
    let files = files(node, given, &*store).await?;
    let found = verify_nodes(&files, &*store, node.config.audit.segments.seal_file.as_deref())
        .await
        .map_err(|error| anyhow!(error))?;
    store.close().await?;
    Ok(found)
}

/// The files of this machine, and those that were given.
async fn files(
    node: &NodeData,
    given: &[NodeFile],
    store: &dyn Store,
) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let mut files = BTreeMap::new();
    let trail = node.audit_file();
    // A machine that is no node has no trail, and none is missed.
    let is_node = !node.config.is_shared() || store.get(Table::Audit, &node.chain).await?.is_some();
    if is_node || trail.exists() {
        files.insert(node.chain.clone(), trail);
    }
    let beside = data::operator_audit_file(&node.folder);
    if beside.exists() {
        files.insert(node.operator_chain(), beside);
    }
    files.extend(given.iter().map(|given| (given.node.clone(), given.path.clone())));
    Ok(files)
}
