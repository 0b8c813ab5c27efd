//! `quarterdeck kb import`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use quarterdeck_contracts::KnowledgeRecord;
use quarterdeck_knowledge::{PathDefaults, read_folder, read_jsonl};
use serde_json::json;

use crate::ExitStatus;
use crate::arguments::knowledge::KbImportOptions;
use crate::config::LocalConfig;
use crate::terminal::{count, info};

/// The file of imported records in the knowledge base's folder.
const IMPORTED_FILE: &str = "imported.jsonl";

type Records = BTreeMap<String, KnowledgeRecord>;

pub(super) fn import(options: &KbImportOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let folder = options.kb.or(&config);
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let kept = folder.join(IMPORTED_FILE);
    let mut all = load_imported(&kept)?;
    let other_ids = other_ids(folder, &all);

    let source = &options.file;
    let file = File::open(source).with_context(|| format!("cannot read {}", source.display()))?;
    let (records, faults) = read_jsonl(BufReader::new(file), &PathDefaults::default())
        .with_context(|| format!("cannot read {}", source.display()))?;
    let mut problems: Vec<(usize, String)> =
        faults.into_iter().map(|fault| (fault.line, fault.message)).collect();
    let (mut new, mut changed, mut same) = (0, 0, 0);
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for (record, line) in records {
        if other_ids.contains(&record.id) {
            problems.push((
                line,
                format!("the id `{}` is taken by a file in {}; change that", record.id, folder.display()),
            ));
        } else if let Some(first) = lines.get(&record.id) {
            problems.push((line, format!("the id `{}` is taken by line {first}", record.id)));
        } else {
            lines.insert(record.id.clone(), line);
            match all.get(&record.id) {
                Some(old) if *old == record => same += 1,
                Some(_) => changed += 1,
                None => new += 1,
            }
            all.insert(record.id.clone(), record);
        }
    }
    problems.sort();
    for (line, message) in &problems {
        info(&format!("left out: {}:{line} {message}", source.display()));
    }
    if new + changed > 0 {
        write(&kept, &all)?;
    }
    info(&format!(
        "{} in {}: {new} new, {changed} changed, {same} unchanged, {} left out",
        count(all.len(), "imported record"),
        kept.display(),
        problems.len()
    ));
    Ok(if problems.is_empty() { ExitStatus::Success } else { ExitStatus::Problems })
}

fn load_imported(path: &Path) -> anyhow::Result<Records> {
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Records::new()),
        file => file.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let (records, faults) = read_jsonl(BufReader::new(file), &PathDefaults::default())
        .with_context(|| format!("cannot read {}", path.display()))?;
    // Writing the file again would lose the lines that cannot be read.
    if let Some(fault) = faults.first() {
        anyhow::bail!("{}:{} {}; mend that line or take it out", path.display(), fault.line, fault.message);
    }
    Ok(records.into_iter().map(|(record, _)| (record.id.clone(), record)).collect())
}

/// The ids of records in other files of the folder.
fn other_ids(folder: &Path, imported: &Records) -> BTreeSet<String> {
    let (records, _) = read_folder(folder);
    let is_other = |record: &KnowledgeRecord| imported.get(&record.id) != Some(record);
    records.into_iter().filter(is_other).map(|record| record.id).collect()
}

/// Replaces the file atomically.
fn write(path: &Path, records: &Records) -> anyhow::Result<()> {
    let next = path.with_extension("jsonl.new");
    let put = || {
        let mut file = BufWriter::new(File::create(&next)?);
        for record in records.values() {
            writeln!(file, "{}", json!(record))?;
        }
        file.into_inner()?.sync_all()?;
        fs::rename(&next, path)
    };
    put().with_context(|| format!("cannot write {}", path.display()))
}
