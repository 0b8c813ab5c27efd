//! Opens the knowledge base from its folder, its file and its model.
//!
//! Opening never waits for a model: the last build is searched by words at once. [`refresh`] and [`update`] load the
//! model and index what has changed since; a server does that on a blocking thread.

use std::path::Path;

use anyhow::Context;
use quarterdeck_contracts::KnowledgeRecord;
use quarterdeck_knowledge::store::{FileError, KnowledgeFile, Sources, set_aside};
use quarterdeck_knowledge::{KnowledgeBase, ScoreThresholds, fingerprint, read_folder};

use super::{ProgressLines, SharedKnowledge, embedder};
use crate::config::LocalConfig;
use crate::data;
use crate::terminal::{count, info};

pub(crate) fn kb_folder(path: &Path) -> anyhow::Result<&Path> {
    if path.is_dir() {
        return Ok(path);
    }
    anyhow::bail!(
        "there is no folder {}; point `--kb` or `kb.folder` at one that holds records",
        path.display()
    )
}

/// The records of a folder, with its fingerprint. Problems of single records are printed.
pub(crate) fn read_sources(folder: &Path) -> anyhow::Result<(Vec<KnowledgeRecord>, Sources)> {
    // Taken before reading: a change in the meantime is then noticed the next time.
    let fingerprint = take_fingerprint(folder)?;
    let (records, problems) = read_folder(folder);
    for problem in &problems {
        let what = if problem.is_served { "noticed" } else { "left out" };
        info(&format!("{what}: {}/{problem}", folder.display()));
    }
    Ok((records, Sources { fingerprint, left_out: problems.len() }))
}

/// The knowledge base of the database, or else the up-to-date one of a folder. It is searched by meaning too if
/// `quarterdeck kb build` has made vectors: that takes too long to do before a search. Where the database compares them, it
/// is searched on the runtime that opened it.
pub(crate) async fn knowledge(
    config: &LocalConfig,
    folder: &Path,
    data: &Path,
) -> anyhow::Result<KnowledgeBase> {
    if let Some(shared) = SharedKnowledge::of(config).await? {
        return shared.find().await;
    }
    let base = open(kb_folder(folder)?, data)?;
    refresh(&base, folder, data)?;
    Ok(base)
}

/// The same, if there is one: a database, or a folder of records.
pub(crate) async fn find_knowledge(
    config: &LocalConfig,
    folder: &Path,
    data: &Path,
) -> anyhow::Result<Option<KnowledgeBase>> {
    match folder.is_dir() || config.store.is_shared() {
        true => knowledge(config, folder, data).await.map(Some),
        false => Ok(None),
    }
}

/// The last build, searched by words; without one, the records of the folder.
pub(crate) fn open(folder: &Path, data: &Path) -> anyhow::Result<KnowledgeBase> {
    let path = data::knowledge_file(data);
    if path.exists() {
        match load(&path, folder) {
            Ok(Some(base)) => return Ok(base),
            Ok(None) => {}
            // The file only caches the folder's records.
            Err(error) => info(&format!("{} is not used: {}", path.display(), causes(&error))),
        }
    }
    Ok(KnowledgeBase::from_records(read_sources(folder)?.0, None, None)?)
}

/// Loads the model if the base has vectors, and indexes what has changed in the folder. Searches see the old base until
/// the new one is complete.
pub(crate) fn refresh(base: &KnowledgeBase, folder: &Path, data: &Path) -> anyhow::Result<()> {
    let path = data::knowledge_file(data);
    if !path.exists() {
        return Ok(());
    }
    let built_with = base.stats().model;
    if let (Some(model), None) = (&built_with, base.model())
        && let Some(embedder) = embedder()
    {
        if embedder.model() != model {
            info("the vectors are of another model; run `quarterdeck kb build` to make new ones");
        }
        base.use_model(embedder);
    }
    // An error was reported when the base was opened.
    let Ok(mut file) = open_file(&path) else { return Ok(()) };
    let built_from = file.sources()?;
    if built_from.is_none_or(|sources| take_fingerprint(folder).is_ok_and(|now| now == sources.fingerprint)) {
        return Ok(());
    }
    let (records, sources) = read_sources(folder)?;
    match file.replace(base, records, &sources, &mut ProgressLines::default().follow()) {
        Err(FileError::Build(error)) => Err(error.into()),
        // The base in memory is up to date; only the next start is slower.
        Err(error) => {
            info(&format!("{} could not be updated: {}", path.display(), causes(&error.into())));
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

/// What a server runs at intervals: loads the model if one is installed, and builds what is missing or has changed.
/// Searches go on meanwhile, by words until there are vectors.
pub(crate) fn update(
    base: &KnowledgeBase,
    folder: &Path,
    data: &Path,
    lines: &ProgressLines,
) -> anyhow::Result<()> {
    if base.model().is_none()
        && let Some(embedder) = embedder()
    {
        base.use_model(embedder);
    }
    let mut file = open_file(&data::knowledge_file(data))?;
    let built_from = file.sources()?.map(|sources| sources.fingerprint);
    if base.stats().model == base.model() && built_from == Some(take_fingerprint(folder)?) {
        return Ok(());
    }
    let (records, sources) = read_sources(folder)?;
    file.replace(base, records, &sources, &mut lines.follow())?;
    Ok(())
}

/// Opens or creates the file of a base. A damaged one is set aside and reported.
pub(crate) fn open_file(path: &Path) -> Result<KnowledgeFile, FileError> {
    let opened = KnowledgeFile::open(path)?;
    if let Some(aside) = &opened.set_aside {
        report_damage(path, aside);
    }
    Ok(opened.file)
}

fn load(path: &Path, folder: &Path) -> anyhow::Result<Option<KnowledgeBase>> {
    let mut file = open_file(path)?;
    match file.load(ScoreThresholds::default()) {
        Ok(None) => Ok(None),
        Ok(Some(loaded)) => {
            if let Some(sources) = file.sources()?.filter(|sources| sources.left_out > 0) {
                let problems = count(sources.left_out, "problem");
                info(&format!("the base was built with {problems}; `quarterdeck kb check` lists them"));
            }
            Ok(Some(loaded.base))
        }
        Err(error) if error.is_damage() => {
            drop(file);
            report_damage(path, &set_aside(path)?);
            file = open_file(path)?;
            let (records, sources) = read_sources(folder)?;
            let (base, _) = file.build(records, None, ScoreThresholds::default(), &sources, &mut |_| {})?;
            info("search is by words until `quarterdeck kb build` has made the vectors again");
            Ok(Some(base))
        }
        Err(error) => Err(error.into()),
    }
}

fn report_damage(path: &Path, aside: &Path) {
    info(&format!("{} was damaged and is now {}; the base is rebuilt", path.display(), aside.display()));
}

fn take_fingerprint(folder: &Path) -> anyhow::Result<String> {
    fingerprint(folder).with_context(|| format!("cannot read {}", folder.display()))
}

fn causes(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
