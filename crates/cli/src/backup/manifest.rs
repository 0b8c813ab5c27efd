//! What a backup holds: each file with its digest and the version of its format.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path};

use anyhow::{Context, bail, ensure};
use quarterdeck_contracts::sha256;
use quarterdeck_knowledge::store::KNOWLEDGE_FORMAT;
use quarterdeck_store::SQLITE_FORMAT;
use serde_json::{Value, json};

/// The manifest's name in the backup.
pub(super) const MANIFEST_FILE: &str = "manifest.json";
/// The version of backups that this program writes, and the newest that it reads.
const BACKUP_FORMAT: u64 = 1;
const MAX_MANIFEST_BYTES: u64 = 16 << 20;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Manifest {
    /// The version of Quarterdeck that made the backup.
    pub(crate) program: String,
    /// RFC 3339.
    pub(crate) made_at: String,
    pub(crate) files: Vec<FileEntry>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FileEntry {
    /// Below the backup and below the data folder, with `/` between its parts.
    pub(crate) path: String,
    pub(crate) part: Part,
    pub(crate) bytes: u64,
    /// SHA-256 in hexadecimal digits.
    pub(crate) digest: String,
    /// The version of the file's format, where it has one.
    pub(crate) format: Option<i64>,
}

/// What a file of the data folder is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Store,
    AuditLog,
    Knowledge,
    /// Secrets that sign cookies, session tokens and links.
    Key,
    Registry,
    Other,
}

const PARTS: [(Part, &str); 6] = [
    (Part::Store, "store"),
    (Part::AuditLog, "audit"),
    (Part::Knowledge, "knowledge"),
    (Part::Key, "key"),
    (Part::Registry, "registry"),
    (Part::Other, "other"),
];

impl Part {
    pub(crate) fn as_str(self) -> &'static str {
        PARTS.iter().find(|(part, _)| *part == self).map_or("other", |(_, name)| name)
    }

    fn parse(name: &str) -> Option<Self> {
        PARTS.iter().find(|(_, known)| *known == name).map(|(part, _)| *part)
    }

    /// The newest format of such a file that this program reads.
    fn newest_format(self) -> Option<i64> {
        match self {
            Self::Store => Some(SQLITE_FORMAT),
            Self::Knowledge => Some(i64::from(KNOWLEDGE_FORMAT)),
            _ => None,
        }
    }
}

impl Manifest {
    /// SHA-256 of everything in the manifest, and so of everything in the backup.
    pub(crate) fn digest(&self) -> String {
        sha256(self.body().to_string().as_bytes())
    }

    pub(super) fn to_json(&self) -> Value {
        json!({ "format": BACKUP_FORMAT, "sha256": self.digest(), "backup": self.body() })
    }

    /// Reads the manifest of a backup, and refuses one that is damaged or that a newer version has made.
    pub(super) fn load(backup: &Path) -> anyhow::Result<Self> {
        let path = backup.join(MANIFEST_FILE);
        let mut text = String::new();
        let read = File::open(&path)
            .and_then(|file| file.take(MAX_MANIFEST_BYTES + 1).read_to_string(&mut text))
            .with_context(|| {
                format!(
                    "{} is not a backup, or it is incomplete: there is no readable {MANIFEST_FILE} in it\n\
                     help: name the folder that `quarterdeck backup` has made",
                    backup.display()
                )
            })?;
        ensure!(read as u64 <= MAX_MANIFEST_BYTES, "{} is too large to be a manifest", path.display());
        let damaged = |what: &str| {
            anyhow::anyhow!(
                "the backup {} is damaged: {MANIFEST_FILE} {what}\nhelp: use another backup",
                backup.display()
            )
        };
        let json: Value = serde_json::from_str(&text).map_err(|_| damaged("is not JSON"))?;
        match json["format"].as_u64() {
            None => return Err(damaged("does not say its format")),
            Some(found) if found > BACKUP_FORMAT => bail!(
                "the backup {} has format {found}, and this version of Quarterdeck knows formats up to {BACKUP_FORMAT}\n\
                 help: restore it with the version that made it, or a newer one",
                backup.display()
            ),
            Some(_) => {}
        }
        let manifest = Self::parse(&json["backup"]).ok_or_else(|| damaged("has a field that is wrong"))?;
        if json["sha256"].as_str() != Some(&manifest.digest()) {
            return Err(damaged("does not have the digest that it had"));
        }
        if let Some(entry) = manifest.files.iter().find(|entry| !entry.is_inside()) {
            return Err(damaged(&format!("names `{}`, which is not inside of the backup", entry.path)));
        }
        manifest.refuse_newer(backup)?;
        Ok(manifest)
    }

    fn refuse_newer(&self, backup: &Path) -> anyhow::Result<()> {
        for FileEntry { path, part, format, .. } in &self.files {
            if let (Some(found), Some(known)) = (*format, part.newest_format())
                && found > known
            {
                bail!(
                    "{path} in the backup {} has format {found}, and this version of Quarterdeck knows formats up to {known}\n\
                     help: restore it with version {} or a newer one",
                    backup.display(),
                    self.program
                );
            }
        }
        Ok(())
    }

    pub(crate) fn count(&self, part: Part) -> usize {
        self.files.iter().filter(|entry| entry.part == part).count()
    }

    fn body(&self) -> Value {
        let files: Vec<_> = self.files.iter().map(FileEntry::to_json).collect();
        json!({ "program": self.program, "madeAt": self.made_at, "files": files })
    }

    fn parse(body: &Value) -> Option<Self> {
        let text = |name: &str| body[name].as_str().map(str::to_owned);
        Some(Self {
            program: text("program")?,
            made_at: text("madeAt")?,
            files: body["files"].as_array()?.iter().map(FileEntry::parse).collect::<Option<_>>()?,
        })
    }
}

impl FileEntry {
    fn to_json(&self) -> Value {
        let Self { path, part, bytes, digest, format } = self;
        let mut json = json!({ "path": path, "part": part.as_str(), "bytes": bytes, "sha256": digest });
        if let Some(format) = format {
            json["format"] = json!(format);
        }
        json
    }

    fn parse(json: &Value) -> Option<Self> {
        Some(Self {
            path: json["path"].as_str()?.to_owned(),
            part: Part::parse(json["part"].as_str()?)?,
            bytes: json["bytes"].as_u64()?,
            digest: json["sha256"].as_str()?.to_owned(),
            format: json["format"].as_i64(),
        })
    }

    /// Whether the path stays below the folder that it is joined to.
    fn is_inside(&self) -> bool {
        let mut parts = Path::new(&self.path).components().peekable();
        parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(path: &str, part: Part, format: Option<i64>) -> Manifest {
        let entry = FileEntry { path: path.into(), part, bytes: 1, digest: "00".into(), format };
        Manifest { program: "9.9.9".into(), made_at: "2026-11-18T07:00:00Z".into(), files: vec![entry] }
    }

    fn load(text: &str) -> Result<Manifest, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(MANIFEST_FILE), text).unwrap();
        Manifest::load(folder.path()).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn manifest_is_read_as_it_was_written() {
        let written = manifest("versions/a.json", Part::Registry, None);
        assert_eq!(load(&written.to_json().to_string()), Ok(written));
    }

    #[test]
    fn changed_manifest_is_refused() {
        let written = manifest("audit.jsonl", Part::AuditLog, None).to_json().to_string();
        for (from, to) in
            [("\"bytes\":1", "\"bytes\":2"), ("audit.jsonl", "other.jsonl"), ("\"00\"", "\"01\"")]
        {
            let refused = load(&written.replace(from, to)).unwrap_err();
            assert!(refused.contains("does not have the digest"), "{refused}");
        }
        assert!(load(&written[..written.len() / 2]).unwrap_err().contains("is not JSON"));
        assert!(load("{}").unwrap_err().contains("does not say its format"));
    }

    #[test]
    fn newer_backup_and_newer_file_are_refused_with_the_version_that_reads_them() {
        let mut newer = manifest("quarterdeck.db", Part::Store, Some(SQLITE_FORMAT)).to_json();
        assert!(load(&newer.to_string()).is_ok());
        newer["format"] = json!(BACKUP_FORMAT + 1);
        assert!(load(&newer.to_string()).unwrap_err().contains("knows formats up to 1"));
        for (part, newest) in [(Part::Store, SQLITE_FORMAT), (Part::Knowledge, KNOWLEDGE_FORMAT.into())] {
            let newer = manifest("x.db", part, Some(newest + 1)).to_json();
            assert!(load(&newer.to_string()).unwrap_err().contains("restore it with version 9.9.9"));
        }
    }

    #[test]
    fn path_that_leaves_the_backup_is_refused() {
        for path in ["../cookie_secret", "/etc/passwd", "versions/../../x", ""] {
            let refused = load(&manifest(path, Part::Other, None).to_json().to_string()).unwrap_err();
            assert!(refused.contains("not inside of the backup"), "{path}: {refused}");
        }
    }
}
