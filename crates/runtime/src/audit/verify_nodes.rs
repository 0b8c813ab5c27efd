//! Whether the logs of all nodes are whole. Their heads are in the store; their lines are in a file on each machine, and in
//! the store where that was configured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use quarterdeck_contracts::{Scan, Store, StoreError, Table};
use serde::Serialize;

use super::chain::{ChainHead, parts};
use super::follow::ChainCheck;
use super::kept_lines::{for_each_kept_line, is_head};
use super::lines::Ending;
use super::verify::{Verification, stored_head, verify_sealed};

const PAGE_ROWS: usize = 100;

/// Where the lines of a chain were read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ChainSource {
    File(PathBuf),
    Store,
    /// They are on another machine.
    NotSeen,
}

/// What was found of one node's chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeVerification {
    pub node: String,
    pub source: ChainSource,
    /// How many lines the store knows of.
    pub known_lines: u64,
    /// Absent where no line was seen.
    pub found: Option<Verification>,
}

/// Verifies the chains of all nodes, by name: from a file where one is given, otherwise from the store, where lines are
/// kept. Those in files are compared with the seal file, if one is given. It blocks while it reads files.
pub async fn verify_nodes(
    files: &BTreeMap<String, PathBuf>,
    store: &dyn Store,
    seal_file: Option<&Path>,
) -> Result<Vec<NodeVerification>, String> {
    let mut nodes = list_chains(store).await.map_err(|error| error.to_string())?;
    nodes.extend(files.keys().filter(|node| !nodes.contains(node)).cloned().collect::<Vec<_>>());
    nodes.sort_unstable();
    let mut all = Vec::new();
    for node in nodes {
        let known_lines = stored_head(&node, store).await?.map_or(0, |head| head.seq);
        let (source, found) = match files.get(&node) {
            Some(path) => {
                let found = verify_sealed(path, &node, store, seal_file).await?;
                (ChainSource::File(path.clone()), Some(found))
            }
            None => match verify_kept(&node, store).await? {
                Some(found) => (ChainSource::Store, Some(found)),
                None => (ChainSource::NotSeen, None),
            },
        };
        all.push(NodeVerification { node, source, known_lines, found });
    }
    Ok(all)
}

/// The nodes whose heads the store has. Kept lines come after them, and are not read.
async fn list_chains(store: &dyn Store) -> Result<Vec<String>, StoreError> {
    let mut nodes = Vec::new();
    let mut scan = Scan::prefix("", PAGE_ROWS);
    loop {
        let page = store.scan(Table::Audit, scan.clone()).await?;
        let Some((last, _)) = page.last() else { return Ok(nodes) };
        scan.after = Some(last.clone());
        let before = nodes.len() + page.len();
        nodes.extend(page.into_iter().map(|(key, _)| key).take_while(|key| is_head(key)));
        if nodes.len() < before {
            return Ok(nodes);
        }
    }
}

/// Verifies a chain by the lines that the store keeps of it; `None` if it keeps none.
pub async fn verify_kept(node: &str, store: &dyn Store) -> Result<Option<Verification>, String> {
    let kept = stored_head(node, store).await?;
    let mut chain = ChainCheck::new(kept.as_ref(), None);
    let mut is_first = true;
    let take = |line: &str| {
        // What was cut from the files is cut here as well.
        if std::mem::take(&mut is_first)
            && let Some((seq, hash, _)) = parts(line).filter(|(seq, _, _)| *seq > 1)
        {
            chain.begin_after(ChainHead { seq: seq - 1, hash }, kept.as_ref());
        }
        chain.take(line.as_bytes(), Ending::Newline, kept.as_ref());
    };
    let has_any = for_each_kept_line(node, store, take).await.map_err(|error| error.to_string())?;
    Ok(has_any.then(|| chain.verdict(kept.as_ref())))
}
