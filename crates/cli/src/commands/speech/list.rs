//! `quarterdeck speech list`.

use quarterdeck_local_speech::{Component, Voice};

use super::{find, folder};
use crate::ExitStatus;
use crate::terminal::{info, print, titled_table};

pub(super) fn list() -> anyhow::Result<ExitStatus> {
    let folder = folder()?;
    let installed = find()?;
    let engines = Component::ALL.into_iter().map(|component| {
        let state = if component.find(&folder).is_some() { "installed" } else { "can be installed" };
        let bytes: u64 = component.packages().iter().map(|package| package.bytes).sum();
        let mut licences: Vec<_> = component.packages().iter().map(|package| package.licence).collect();
        licences.dedup();
        vec![
            component.name().to_owned(),
            component.description().to_owned(),
            state.to_owned(),
            megabytes(bytes),
            licences.join(", "),
        ]
    });
    let programs = installed.speaks.iter().filter_map(|voice| match voice {
        Voice::Piper(_) => None,
        Voice::Say(path) => Some(("say", "speaks with the voice of the system", path)),
        Voice::Espeak(path) => Some(("espeak-ng", "speaks many languages, like a machine", path)),
    });
    let programs = programs.map(|(name, description, path)| {
        vec![
            name.to_owned(),
            description.to_owned(),
            path.display().to_string(),
            "-".to_owned(),
            "-".to_owned(),
        ]
    });
    let rows: Vec<_> = engines.chain(programs).collect();
    print(&titled_table(&["engine", "what it does", "state", "to fetch", "licence"], rows))?;
    if installed.hears.is_none() || installed.speaks.is_empty() {
        info("`quarterdeck speech install` installs ears and a voice");
    }
    Ok(ExitStatus::Success)
}

pub(super) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
