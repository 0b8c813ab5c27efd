//! The knowledge base from its folder, its file and its model.
//!
//! Opening is quick and never waits for a model: what was built last is served by words at once. What takes longer, the
//! model and whatever has changed since, comes with [`refresh`], which a server runs on a thread of its own.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use quarterdeck_contracts::{Embedder, KnowledgeRecord};
use quarterdeck_embedding::{DEFAULT_MODEL, Model};
use quarterdeck_knowledge::store::{FileError, KnowledgeFile, Sources, set_aside};
use quarterdeck_knowledge::{KnowledgeBase, Progress, ScoreThresholds, fingerprint, read_folder};

use crate::terminal::{are_words_logged, count, say};
use crate::{data, environment};

/// The folder of records, if it is there.
pub(crate) fn kb_folder(path: &Path) -> anyhow::Result<&Path> {
    if path.is_dir() {
        return Ok(path);
    }
    anyhow::bail!(
        "there is no folder {}; point `--kb` or `kb.folder` at one that holds records",
        path.display()
    )
}

/// The records of a folder, and what it looks like. What is wrong with single ones is told, and the rest is used.
pub(crate) fn sources(folder: &Path) -> anyhow::Result<(Vec<KnowledgeRecord>, Sources)> {
    // Taken before reading: whatever changes meanwhile is seen as a change the next time.
    let fingerprint = look(folder)?;
    let (records, problems) = read_folder(folder);
    for problem in &problems {
        let what = if problem.is_served { "noticed" } else { "left out" };
        say(&format!("{what}: {}/{problem}", folder.display()));
    }
    Ok((records, Sources { fingerprint, left_out: problems.len() }))
}

/// The knowledge base of a folder as it is now. It is searched by meaning too when `quarterdeck kb build` has made the
/// vectors: making them takes a while, and nobody who searches wants to wait for it.
pub(crate) fn knowledge(folder: &Path, data: &Path) -> anyhow::Result<KnowledgeBase> {
    let base = open(folder, data)?;
    refresh(&base, folder, data)?;
    Ok(base)
}

/// The base that was built last, searched by words; without one, the records of the folder.
pub(crate) fn open(folder: &Path, data: &Path) -> anyhow::Result<KnowledgeBase> {
    let path = data::knowledge(data);
    if path.exists() {
        match load(&path, folder) {
            Ok(Some(base)) => return Ok(base),
            Ok(None) => {}
            // The file is a copy of what the folder says: without it everything is still found by words.
            Err(error) => say(&format!("{} is not used: {}", path.display(), causes(&error))),
        }
    }
    Ok(KnowledgeBase::from_records(sources(folder)?.0, None, None)?)
}

/// Brings a base up to date: the model, if the base has vectors, and what has changed in the folder since it was built.
/// Searches go on meanwhile, and see the old base until the new one is complete.
pub(crate) fn refresh(base: &KnowledgeBase, folder: &Path, data: &Path) -> anyhow::Result<()> {
    let path = data::knowledge(data);
    if !path.exists() {
        return Ok(());
    }
    let built_with = base.stats().model;
    if let (Some(model), None) = (&built_with, base.model())
        && let Some(embedder) = embedder()
    {
        if embedder.model() != model {
            say("the vectors are of another model; `quarterdeck kb build` makes new ones");
        }
        base.use_model(embedder);
    }
    // Whatever is wrong with the file was told when it was opened.
    let Ok(mut file) = open_file(&path) else { return Ok(()) };
    let built_from = file.sources()?;
    if built_from.is_none_or(|sources| look(folder).is_ok_and(|now| now == sources.fingerprint)) {
        return Ok(());
    }
    let (records, sources) = sources(folder)?;
    match file.replace(base, records, &sources, &mut progress()) {
        Err(FileError::Build(error)) => Err(error.into()),
        // The base in memory is the new one; only the next start is slower for it.
        Err(error) => {
            say(&format!("{} was not brought up to date: {}", path.display(), causes(&error.into())));
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

/// What a server does for its base on a thread of its own, now and then: loads the model if one is installed, and builds
/// what is not built or has changed. Searches go on meanwhile, by words until there are vectors.
pub(crate) fn keep_up(base: &KnowledgeBase, folder: &Path, data: &Path) -> anyhow::Result<()> {
    if base.model().is_none()
        && let Some(embedder) = embedder()
    {
        base.use_model(embedder);
    }
    let mut file = open_file(&data::knowledge(data))?;
    let built_from = file.sources()?.map(|sources| sources.fingerprint);
    if base.stats().model == base.model() && built_from == Some(look(folder)?) {
        return Ok(());
    }
    let (records, sources) = sources(folder)?;
    file.replace(base, records, &sources, &mut progress())?;
    Ok(())
}

/// Opens the file of a base, or makes it. A damaged one is set aside, and that is told.
pub(crate) fn open_file(path: &Path) -> Result<KnowledgeFile, FileError> {
    let opened = KnowledgeFile::open(path)?;
    if let Some(aside) = &opened.set_aside {
        tell_damage(path, aside);
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
                say(&format!("the base was built with {problems}; `quarterdeck kb check` names them"));
            }
            Ok(Some(loaded.base))
        }
        Err(error) if error.is_damage() => {
            drop(file);
            tell_damage(path, &set_aside(path)?);
            file = open_file(path)?;
            let (records, sources) = sources(folder)?;
            let (base, _) = file.build(records, None, ScoreThresholds::default(), &sources, &mut |_| {})?;
            say("it is searched by words until `quarterdeck kb build` has made the vectors again");
            Ok(Some(base))
        }
        Err(error) => Err(error.into()),
    }
}

fn tell_damage(path: &Path, aside: &Path) {
    say(&format!("{} was damaged and is now {}; the base is built anew", path.display(), aside.display()));
}

fn look(folder: &Path) -> anyhow::Result<String> {
    fingerprint(folder).with_context(|| format!("cannot look through {}", folder.display()))
}

fn causes(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Tells how far it has come, every tenth of the way.
pub(crate) fn progress() -> impl FnMut(Progress) {
    let mut told = None;
    move |Progress { done, total }| {
        let tenth = (done * 10).checked_div(total).unwrap_or(10);
        // Where nothing is to be made, nothing is told; and nobody watches a log.
        if told.is_some_and(|told| tenth > told) && !are_words_logged() {
            say(&format!("{done} of {}", count(total, "passage")));
        }
        told = Some(tenth);
    }
}

/// The embedding model of this user, if one is installed. One that cannot be used is told, and done without.
pub(crate) fn embedder() -> Option<Arc<dyn Embedder>> {
    let folder = quarterdeck_embedding::find_installed(&environment::models_folder()?, DEFAULT_MODEL.name)?;
    match Model::load(&folder) {
        Ok(model) => Some(Arc::new(model)),
        Err(error) => {
            say(&format!("the embedding model is not used: {error}"));
            None
        }
    }
}
