//! `quarterdeck speech`.

mod check;
mod install;
mod list;

use std::path::PathBuf;

use anyhow::Context;
use quarterdeck_local_speech::{Component, Installed, installed, remove};

use crate::arguments::speech::SpeechCommand;
use crate::terminal::info;
use crate::{ExitStatus, environment};

pub(crate) fn run(command: &SpeechCommand) -> anyhow::Result<ExitStatus> {
    match command {
        SpeechCommand::Install(options) => install::install(options),
        SpeechCommand::List => list::list(),
        SpeechCommand::Check => check::check(),
        SpeechCommand::Remove { name } => remove_engine(name),
    }
}

fn folder() -> anyhow::Result<PathBuf> {
    environment::speech_folder().context("there is no cache folder for speech engines; set XDG_CACHE_HOME")
}

fn find() -> anyhow::Result<Installed> {
    Ok(installed(&folder()?, environment::search_path().as_deref()))
}

fn component(name: &str) -> anyhow::Result<Component> {
    Component::by_name(name).with_context(|| format!("there is no speech engine `{name}`"))
}

fn remove_engine(name: &str) -> anyhow::Result<ExitStatus> {
    let folder = folder()?;
    let removed = remove(component(name)?, &folder);
    if removed.with_context(|| format!("{name} cannot be removed from {}", folder.display()))? {
        info(&format!("{name} is removed"));
        return Ok(ExitStatus::Success);
    }
    info(&format!("{name} is not installed"));
    Ok(ExitStatus::Problems)
}
