//! A folder of records: `<namespace>/<type>/<slug>.md`, and `.jsonl` files anywhere in it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use quarterdeck_contracts::KnowledgeRecord;

use super::fields::{PathDefaults, find_kind, find_namespace};
use super::jsonl::ReadRecords;
use super::links::internal_links;
use super::{Fault, Problem, parse_markdown, read_jsonl};

/// The limit of a Markdown file, and of a line of JSON.
pub const MAX_FILE_BYTES: u64 = 10 * 1024 * 1024;
pub(super) const MAX_FOLDER_DEPTH: usize = 16;

/// Reads every record under a folder, sorted by id. What is wrong is reported with file and line, and left out; a dead
/// link is reported and its record served. Files and folders that begin with `_` or `.`, and `README.md`, are skipped.
pub fn read_folder(folder: &Path) -> (Vec<KnowledgeRecord>, Vec<Problem>) {
    let mut reader = FolderReader::default();
    reader.folder(folder, Path::new(""), 0);
    reader.finish()
}

#[derive(Default)]
struct FolderReader {
    /// By id, with file and first line of the record, and the line of the file on which its text begins.
    records: BTreeMap<String, (KnowledgeRecord, PathBuf, usize)>,
    problems: Vec<Problem>,
}

impl FolderReader {
    fn folder(&mut self, root: &Path, relative: &Path, depth: usize) {
        let entries = match entries(&root.join(relative)) {
            Ok(entries) => entries,
            Err(error) => return self.report(relative, 1, format!("the folder cannot be read: {error}")),
        };
        for entry in entries {
            let path = relative.join(entry.file_name());
            // Links are followed nowhere: a folder of records ends where it ends.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < MAX_FOLDER_DEPTH => self.folder(root, &path, depth + 1),
                Ok(kind) if kind.is_dir() => self.report(&path, 1, "the folder lies too deep".to_owned()),
                Ok(kind) if kind.is_file() => self.file(root, &path),
                Ok(_) => self.report(&path, 1, "links and special files are not read".to_owned()),
                Err(error) => self.report(&path, 1, format!("the file cannot be read: {error}")),
            }
        }
    }

    fn file(&mut self, root: &Path, path: &Path) {
        let read = match path.extension().and_then(OsStr::to_str) {
            Some("md") => read_markdown(&root.join(path), &from_path(path)),
            Some("jsonl") => fs::File::open(root.join(path))
                .and_then(|file| read_jsonl(BufReader::new(file), &from_path(path))),
            _ => return,
        };
        match read {
            Err(error) => self.report(path, 1, format!("the file cannot be read: {error}")),
            Ok((records, faults)) => {
                for (record, line) in records {
                    self.record(record, path, line);
                }
                for fault in faults {
                    self.report(path, fault.line, fault.message);
                }
            }
        }
    }

    fn record(&mut self, record: KnowledgeRecord, path: &Path, line: usize) {
        if let Some((_, first, first_line)) = self.records.get(&record.id) {
            let message = format!("the id `{}` is taken by {}:{first_line}", record.id, first.display());
            return self.report(path, line, message);
        }
        self.records.insert(record.id.clone(), (record, path.to_owned(), line));
    }

    fn report(&mut self, path: &Path, line: usize, message: String) {
        self.problems.push(Problem { file: path.to_owned(), line, message, is_served: false });
    }

    fn finish(mut self) -> (Vec<KnowledgeRecord>, Vec<Problem>) {
        let ids: BTreeSet<&str> = self.records.keys().map(String::as_str).collect();
        for (record, path, line) in self.records.values() {
            let is_markdown = path.extension().is_some_and(|ending| ending == "md");
            for (target, in_text) in internal_links(&record.text) {
                if !ids.contains(target) {
                    let line = if is_markdown { line + in_text - 1 } else { *line };
                    let message = format!("the link to `{target}` leads nowhere");
                    self.problems.push(Problem { file: path.clone(), line, message, is_served: true });
                }
            }
        }
        self.problems.sort();
        (self.records.into_values().map(|(record, ..)| record).collect(), self.problems)
    }
}

/// What may hold records in a folder. Sorted, because a disk has no order: of two records with one id the first by path
/// is served.
pub(super) fn entries(folder: &Path) -> io::Result<Vec<fs::DirEntry>> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<io::Result<_>>()?;
    entries.retain(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        !name.starts_with(['_', '.']) && name != "README.md"
    });
    entries.sort_by_key(fs::DirEntry::file_name);
    Ok(entries)
}

/// Whether a file holds records, by its ending.
pub(super) fn is_record_file(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "md" || ending == "jsonl")
}

fn read_markdown(path: &Path, from: &PathDefaults) -> io::Result<ReadRecords> {
    if fs::metadata(path)?.len() > MAX_FILE_BYTES {
        return Ok((
            Vec::new(),
            vec![Fault::new(1, format!("the file is larger than {MAX_FILE_BYTES} bytes"))],
        ));
    }
    let source = match String::from_utf8(fs::read(path)?) {
        Ok(source) => source,
        Err(error) => {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
            return Ok((Vec::new(), vec![Fault::new(line, "the file is not UTF-8")]));
        }
    };
    Ok(match parse_markdown(&source, from) {
        Ok(record) => {
            // The text is the end of the file without blank lines around it, so its first line can be counted.
            let line = source.trim_end().lines().count().saturating_sub(record.text.lines().count()) + 1;
            (vec![(record, line)], Vec::new())
        }
        Err(faults) => (Vec::new(), faults),
    })
}

fn from_path(path: &Path) -> PathDefaults {
    let mut folders = path.iter().filter_map(OsStr::to_str);
    let namespace = folders.next().and_then(find_namespace);
    let kind = folders.next().and_then(find_kind);
    let slug = path.file_stem().and_then(OsStr::to_str).map(|name| name.replace(char::is_whitespace, "-"));
    PathDefaults { namespace, kind, slug }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: impl AsRef<[u8]>) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn every_problem_is_reported_and_the_rest_is_served() {
        let root = tempfile::tempdir().unwrap();
        write(
            root.path(),
            "studio/doc/a.md",
            "---\ntags: [x]\n---\n\n# A\n\nSee [b](doc:b)\nand [c](doc:c).\n",
        );
        write(root.path(), "studio/doc/b.md", "# B\n");
        write(root.path(), "studio/doc/bad.md", "---\ntype: planet\n---\n# Bad\n");
        write(root.path(), "studio/doc/latin.md", b"# A\n\xff\n");
        write(root.path(), "studio/link/again.md", "---\nid: doc:b\ntype: doc\n---\n# B again\n");
        write(root.path(), "studio/README.md", "not a record");
        write(root.path(), "_questions/x.md", "not a record");
        write(root.path(), "public/import.jsonl", "{\"id\": \"person:p\", \"title\": \"P\"}\n{}\n");
        let (records, problems) = read_folder(root.path());
        let ids: Vec<_> = records.iter().map(|record| record.id.as_str()).collect();
        assert_eq!(ids, ["doc:a", "doc:b", "person:p"]);
        assert_eq!(records[2].namespace, quarterdeck_contracts::Namespace::Public);
        let served: Vec<_> = problems.iter().filter(|it| it.is_served).map(|it| it.line).collect();
        assert_eq!(served, [8], "of all these, only the record with a dead link is served");
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [
                "public/import.jsonl:2 a record has an `id`: `type:slug`",
                "studio/doc/a.md:8 the link to `doc:c` leads nowhere",
                "studio/doc/bad.md:2 `type` is one of project, person, process, link, doc",
                "studio/doc/latin.md:2 the file is not UTF-8",
                "studio/link/again.md:5 the id `doc:b` is taken by studio/doc/b.md:1",
            ]
        );
    }

    #[test]
    fn a_folder_that_is_not_there_is_a_problem() {
        let (records, problems) = read_folder(Path::new("/nonexistent/kb"));
        assert_eq!((records.len(), problems.len()), (0, 1));
    }
}
