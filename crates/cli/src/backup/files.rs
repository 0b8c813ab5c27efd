//! The files of a data folder: which are copied, and what each is for.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use super::manifest::Part;
use crate::data;

/// Deeper folders, and more files, are not what we make.
const MAX_DEPTH: usize = 8;
const MAX_FILES: usize = 100_000;

/// A file below the data folder, by its path there, with `/` between its parts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Listed(pub(super) String);

impl Listed {
    pub(super) fn part(&self) -> Part {
        let name = self.0.split('/').next().unwrap_or_default();
        match name {
            data::STORE_FILE => Part::Store,
            data::KNOWLEDGE_FILE => Part::Knowledge,
            data::COOKIE_SECRET_FILE => Part::Key,
            _ if name.starts_with("audit") => Part::AuditLog,
            _ if name == "versions" || name.starts_with("registry.") => Part::Registry,
            _ => Part::Other,
        }
    }

    pub(super) fn below(&self, folder: &Path) -> PathBuf {
        folder.join(&self.0)
    }
}

/// What is copied as it lies there: everything but the two databases, which are copied by their engine, and what is of one
/// process alone or can be made again.
pub(super) fn list(data: &Path) -> anyhow::Result<Vec<Listed>> {
    let mut found = Vec::new();
    collect(data, "", 0, &mut found).with_context(|| format!("cannot read {}", data.display()))?;
    ensure!(found.len() <= MAX_FILES, "{} holds more than {MAX_FILES} files", data.display());
    found.sort();
    Ok(found)
}

fn collect(folder: &Path, above: &str, depth: usize, found: &mut Vec<Listed>) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        // A version that was retired meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound && depth > 0 => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| is_state(name)) else { continue };
        let path = format!("{above}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() && depth < MAX_DEPTH {
            collect(&entry.path(), &format!("{path}/"), depth + 1, found)?;
        } else if kind.is_file() && found.len() <= MAX_FILES {
            found.push(Listed(path));
        }
    }
    Ok(())
}

fn is_state(name: &str) -> bool {
    let is_database = [data::STORE_FILE, data::KNOWLEDGE_FILE].iter().any(|file| {
        name.strip_prefix(file).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']))
    });
    let is_of_a_process = name == data::LOCK_FILE || name.ends_with(".lock") || name.starts_with('.');
    !is_database && !is_of_a_process && name != "tools.stamp"
}

/// Copies a file that may grow meanwhile, for its owner alone. `false` where it is gone.
pub(super) fn copy(from: &Path, to: &Path) -> anyhow::Result<bool> {
    let source = match File::open(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        source => source.with_context(|| format!("cannot read {}", from.display()))?,
    };
    let cannot = || format!("cannot copy {} to {}", from.display(), to.display());
    if let Some(folder) = to.parent() {
        data::create(folder)?;
    }
    let length = source.metadata().with_context(cannot)?.len();
    let mut target = create(to).with_context(cannot)?;
    io::copy(&mut source.take(length), &mut target).with_context(cannot)?;
    target.sync_all().with_context(cannot)?;
    Ok(true)
}

/// Makes a new file for its owner alone.
pub(super) fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Removes the beginning of a line that was being written when the file was copied.
pub(super) fn cut_torn_line(path: &Path) -> io::Result<()> {
    const BLOCK: u64 = 64 << 10;
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let mut end = file.metadata()?.len();
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        let mut block = Vec::new();
        file.seek(SeekFrom::Start(start))?;
        (&mut file).take(end - start).read_to_end(&mut block)?;
        if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
            end = start + at as u64 + 1;
            break;
        }
        end = start;
    }
    file.set_len(end)?;
    file.sync_all()
}

/// Length and SHA-256 of a file.
pub(super) fn measure(path: &Path) -> io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    let mut block = vec![0; 256 << 10];
    let mut bytes = 0;
    loop {
        let read = file.read(&mut block)?;
        if read == 0 {
            let digest = context.finish();
            return Ok((bytes, digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()));
        }
        bytes += read as u64;
        context.update(&block[..read]);
    }
}

/// The version that a database of ours carries in its header.
pub(super) fn database_format(path: &Path) -> io::Result<i64> {
    let mut header = [0; 64];
    File::open(path)?.read_exact(&mut header)?;
    let mut version = [0; 4];
    version.copy_from_slice(&header[60..]);
    Ok(i64::from(i32::from_be_bytes(version)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_listed_and_what_belongs_to_a_process_is_not() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("versions")).unwrap();
        fs::create_dir_all(folder.path().join("audit")).unwrap();
        for name in [
            "quarterdeck.db",
            "quarterdeck.db-wal",
            "quarterdeck.db.before-1",
            "kb.db",
            "kb.db.damaged-1",
            "lock",
            "tools.stamp",
            ".tmpAbc",
            "store.db.lock",
            "audit.jsonl",
            "audit-2026-01.jsonl.zst",
            "audit/000001.jsonl",
            "cookie_secret",
            "registry.before.json",
            "versions/ab.json",
            "new-in-a-later-version",
        ] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let listed: Vec<_> = list(folder.path())
            .unwrap()
            .iter()
            .map(|file| format!("{} {}", file.part().as_str(), file.0))
            .collect();
        assert_eq!(
            listed,
            [
                "audit audit-2026-01.jsonl.zst",
                "audit audit.jsonl",
                "audit audit/000001.jsonl",
                "key cookie_secret",
                "other new-in-a-later-version",
                "registry registry.before.json",
                "registry versions/ab.json",
            ]
        );
    }

    #[test]
    fn torn_line_is_cut_off_and_whole_ones_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let long = "x".repeat(200_000);
        for (written, expected) in [
            ("a\nb\n".to_owned(), "a\nb\n"),
            ("a\nb".to_owned(), "a\n"),
            (format!("a\n{long}"), "a\n"),
            (long, ""),
        ] {
            fs::write(&path, written).unwrap();
            cut_torn_line(&path).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        }
    }
}
