//! Puts a backup where a data folder was.
//!
//! Everything is copied into a folder of its own inside of the data folder and compared with the manifest first. Only then
//! the files get their names, the store last, without which no command finds anything. While that folder is there, no
//! server starts; a restore that was interrupted is run again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use super::files;
use super::manifest::{FileEntry, Manifest, Part};
use crate::data;
use crate::node_data::NodeData;
use crate::store_url::StoreUrl;

/// The folder inside of the data folder that holds what is not restored yet.
const STAGING_FOLDER: &str = ".restoring";

/// Fails where a restore was interrupted.
pub(crate) fn refuse_unfinished(data: &Path) -> anyhow::Result<()> {
    ensure!(
        data.join(STAGING_FOLDER).symlink_metadata().is_err(),
        "{} was being restored from a backup, and the restore was interrupted\n\
         help: run `quarterdeck restore` again with the same backup",
        data.display()
    );
    Ok(())
}

/// A backup that is complete and undamaged, and that this version can read.
pub(crate) struct Restore {
    backup: PathBuf,
    manifest: Manifest,
}

impl Restore {
    /// Reads every file of the backup and compares it with the manifest.
    pub(crate) fn check(backup: &Path) -> anyhow::Result<Self> {
        let manifest = Manifest::load(backup)?;
        let problems: Vec<_> =
            manifest.files.iter().filter_map(|entry| problem_of(entry, &backup.join(&entry.path))).collect();
        ensure!(
            problems.is_empty(),
            "the backup {} is damaged or incomplete, and nothing was restored:\n  {}\nhelp: use another backup, or copy this one \
             again from where it was made",
            backup.display(),
            problems.join("\n  ")
        );
        ensure!(
            manifest.count(Part::Store) == 1,
            "the backup {} has no store\nhelp: use another backup",
            backup.display()
        );
        Ok(Self { backup: backup.to_owned(), manifest })
    }

    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Puts the backup into the data folder of a node, which must be empty or not there.
    pub(crate) fn run(&self, node: &NodeData) -> anyhow::Result<()> {
        let data = &node.folder;
        data::create(data)?;
        let _lock = data::try_lock(&data.join(data::LOCK_FILE))?.with_context(|| {
            format!("another quarterdeck uses {}\nhelp: stop it, and run this again", data.display())
        })?;
        let staging = data.join(STAGING_FOLDER);
        let cannot = || format!("cannot write {}", data.display());
        if staging.symlink_metadata().is_ok() {
            self.remove_unfinished(data, &staging).with_context(cannot)?;
        }
        refuse_non_empty(data)?;
        let store = Destination::of(node, &staging)?;
        data::create(&staging)?;
        for entry in &self.manifest.files {
            let target =
                if entry.part == Part::Store { store.staged.clone() } else { staging.join(&entry.path) };
            ensure!(
                files::copy(&self.backup.join(&entry.path), &target)?,
                "the backup {} has lost {} meanwhile",
                self.backup.display(),
                entry.path
            );
            if let Some(problem) = problem_of(entry, &target) {
                bail!(
                    "{} was not copied as it is: {problem}\nhelp: check the disk, and run this again",
                    entry.path
                );
            }
        }
        for name in top_level(&self.manifest) {
            fs::rename(staging.join(&name), data.join(&name)).with_context(cannot)?;
        }
        data::sync_folder(data).with_context(cannot)?;
        fs::rename(&store.staged, &store.file).with_context(cannot)?;
        data::sync_folder(store.file.parent().unwrap_or(data)).with_context(cannot)?;
        fs::remove_dir_all(&staging).with_context(cannot)?;
        data::sync_folder(data).with_context(cannot)
    }

    /// What an interrupted restore has left. The folder was empty before it, so that everything in it came from there.
    fn remove_unfinished(&self, data: &Path, staging: &Path) -> io::Result<()> {
        for name in top_level(&self.manifest).into_iter().chain([data::STORE_FILE.to_owned()]) {
            let path = data.join(name);
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::remove_dir_all(staging)
    }
}

/// Where the store goes: into the data folder, or to the file that the configuration names.
struct Destination {
    staged: PathBuf,
    file: PathBuf,
}

impl Destination {
    fn of(node: &NodeData, staging: &Path) -> anyhow::Result<Self> {
        let ours = data::store_file(&node.folder);
        let StoreUrl::Sqlite(file) = &node.url else {
            return Ok(Self { staged: data::store_file(staging), file: ours });
        };
        if *file == ours {
            return Ok(Self { staged: data::store_file(staging), file: ours });
        }
        for ending in ["", "-wal", "-shm"] {
            let path = with_ending(file, ending);
            ensure!(
                path.symlink_metadata().is_err(),
                "{} is there, where the configuration keeps the store, and was left alone\n\
                 help: move it away, and run this again",
                path.display()
            );
        }
        let staged = with_ending(file, STAGING_FOLDER);
        match fs::remove_file(&staged) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {}", staged.display()));
            }
            _ => {}
        }
        Ok(Self { staged, file: file.clone() })
    }
}

fn with_ending(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// The names in the data folder that the backup brings, but for the store.
fn top_level(manifest: &Manifest) -> Vec<String> {
    let files = manifest.files.iter().filter(|entry| entry.part != Part::Store);
    let mut names: Vec<String> =
        files.map(|entry| entry.path.split('/').next().unwrap_or_default().to_owned()).collect();
    names.sort();
    names.dedup();
    names
}

fn refuse_non_empty(data: &Path) -> anyhow::Result<()> {
    let entries = fs::read_dir(data).with_context(|| format!("cannot read {}", data.display()))?;
    for entry in entries {
        let name = entry?.file_name();
        ensure!(
            name == data::LOCK_FILE,
            "{} is not empty: there is {}, and nothing was restored\n\
             help: stop the server and move the folder away (`mv {0} {0}.before`), or restore into another one with `--data`",
            data.display(),
            Path::new(&name).display()
        );
    }
    Ok(())
}

/// What is wrong with a file of the backup.
fn problem_of(entry: &FileEntry, path: &Path) -> Option<String> {
    let FileEntry { path: name, bytes, digest, .. } = entry;
    let kind = path.symlink_metadata().map(|found| found.is_file());
    match kind.and_then(|is_file| if is_file { files::measure(path).map(Some) } else { Ok(None) }) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(format!("{name} is missing")),
        Err(error) => Some(format!("{name} cannot be read: {error}")),
        Ok(None) => Some(format!("{name} is not a file")),
        Ok(Some((found, _))) if found != *bytes => {
            Some(format!("{name} has {found} bytes instead of {bytes}"))
        }
        Ok(Some((_, found))) if found != *digest => {
            Some(format!("{name} is not what was written: its digest differs"))
        }
        Ok(Some(_)) => None,
    }
}
