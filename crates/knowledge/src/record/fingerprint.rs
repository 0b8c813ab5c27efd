//! Whether a folder of records is as it was, without reading the records.

use std::fs;
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

use sha2::{Digest, Sha256};

use super::folder::{MAX_FOLDER_DEPTH, entries, is_record_file};

/// What a folder of records looks like from outside: the path, the size and the time of every file that
/// [`read_folder`](super::read_folder) would read. The same fingerprint means the same records, unless a file was
/// changed and its time set back.
pub fn fingerprint(folder: &Path) -> io::Result<String> {
    let mut digest = Sha256::new();
    add(&mut digest, folder, Path::new(""), 0)?;
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn add(digest: &mut Sha256, root: &Path, relative: &Path, depth: usize) -> io::Result<()> {
    for entry in entries(&root.join(relative))? {
        let path = relative.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() && depth < MAX_FOLDER_DEPTH {
            add(digest, root, &path, depth + 1)?;
        } else if kind.is_file() && is_record_file(&path) {
            let about = fs::metadata(root.join(&path))?;
            // A clock before 1970 is a clock that is wrong, and any number will do.
            let time = about.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            digest.update(path.as_os_str().as_encoded_bytes());
            // No path holds a zero byte.
            digest.update([0]);
            digest.update(about.len().to_le_bytes());
            digest.update(time.as_nanos().to_le_bytes());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn whatever_changes_a_record_changes_the_fingerprint() {
        let root = tempfile::tempdir().unwrap();
        let doc = root.path().join("studio/doc");
        fs::create_dir_all(&doc).unwrap();
        fs::write(doc.join("a.md"), "# A").unwrap();
        let mut seen = vec![fingerprint(root.path()).unwrap()];
        let mut look = |what: &str, changes: bool| {
            let now = fingerprint(root.path()).unwrap();
            assert_eq!(!seen.contains(&now), changes, "{what}");
            seen.push(now);
        };
        look("nothing", false);
        fs::write(doc.join("_draft.md"), "# Draft").unwrap();
        fs::write(doc.join("picture.png"), "").unwrap();
        look("files that are no records", false);
        fs::write(doc.join("a.md"), "# AB").unwrap();
        look("a text", true);
        let other_time = SystemTime::UNIX_EPOCH + Duration::from_secs(5);
        fs::File::options().write(true).open(doc.join("a.md")).unwrap().set_modified(other_time).unwrap();
        look("a time", true);
        fs::rename(doc.join("a.md"), doc.join("b.md")).unwrap();
        look("a name", true);
        fs::write(doc.join("c.jsonl"), "").unwrap();
        look("a file more", true);
        assert!(fingerprint(&root.path().join("nowhere")).is_err());
    }
}
