//! Where the segments of a log are: the newest at its path, the closed ones in a folder beside it.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use super::super::lines::{Ending, read_line};
use super::header::{FirstLine, refuse_newer};
use super::reader::{SegmentReader, SegmentSource};

/// The files of one log.
#[derive(Debug, Clone)]
pub(in crate::audit) struct SegmentFiles {
    path: PathBuf,
    folder: PathBuf,
}

/// The newest segment, opened: it stays what it is when it is closed meanwhile.
pub(in crate::audit) struct ActiveFile {
    pub(in crate::audit) file: File,
    /// `None` while it has no whole line, or where that is none of ours.
    pub(in crate::audit) first: Option<FirstLine>,
}

impl SegmentFiles {
    pub(in crate::audit) fn new(path: &Path) -> Self {
        let mut folder = path.as_os_str().to_owned();
        folder.push(".segments");
        Self { path: path.to_owned(), folder: folder.into() }
    }

    pub(in crate::audit) fn path(&self) -> &Path {
        &self.path
    }

    pub(in crate::audit) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(in crate::audit) fn plain(&self, segment: u64) -> PathBuf {
        self.folder.join(format!("{segment:06}.jsonl"))
    }

    pub(in crate::audit) fn compressed(&self, segment: u64) -> PathBuf {
        self.folder.join(format!("{segment:06}.jsonl.gz"))
    }

    /// The numbers of all segments in the folder.
    pub(in crate::audit) fn list(&self) -> io::Result<BTreeSet<u64>> {
        self.list_where(|_| true)
    }

    /// The numbers of those that are not compressed.
    pub(in crate::audit) fn list_plain(&self) -> io::Result<BTreeSet<u64>> {
        self.list_where(|name| name.ends_with(".jsonl"))
    }

    fn list_where(&self, is_wanted: impl Fn(&str) -> bool) -> io::Result<BTreeSet<u64>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
            Err(error) => return Err(error),
        };
        let mut numbers = BTreeSet::new();
        for entry in entries {
            let name = entry?.file_name();
            if let Some(name) = name.to_str().filter(|name| is_wanted(name))
                && let Some(number) = number(name)
            {
                numbers.insert(number);
            }
        }
        Ok(numbers)
    }

    /// Those that are closed, given the newest one: a rotation that was interrupted leaves the newest among them.
    pub(in crate::audit) fn list_closed(&self, active: Option<&ActiveFile>) -> io::Result<BTreeSet<u64>> {
        let mut segments = self.list()?;
        if let Some(header) = active.and_then(|active| active.first.as_ref()?.header.as_ref()) {
            // One that was closed since is read as the newest.
            segments.retain(|segment| *segment < header.segment);
        }
        if let (Some(active), Some(last)) = (active, segments.last().copied())
            && self.is_linked(&active.file, last)?
        {
            segments.remove(&last);
        }
        Ok(segments)
    }

    /// Whether a name in the folder leads to the newest segment.
    pub(in crate::audit) fn is_linked(&self, active: &File, segment: u64) -> io::Result<bool> {
        match fs::metadata(self.plain(segment)) {
            Ok(there) => Ok(is_same_file(&active.metadata()?, &there)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The newest segment; `None` where there is no file. One that a newer version has written is an error.
    pub(in crate::audit) fn open_active(&self) -> io::Result<Option<ActiveFile>> {
        match File::open(&self.path) {
            Ok(file) => {
                let first = first_line(SegmentSource::Plain(file.try_clone()?))?;
                Ok(Some(ActiveFile { file, first }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A closed segment, whichever form it has at this moment; `NotFound` if it was cut.
    pub(in crate::audit) fn open(&self, segment: u64) -> io::Result<SegmentSource> {
        match File::open(self.plain(segment)) {
            Ok(file) => Ok(SegmentSource::Plain(file)),
            // It has been compressed, perhaps just now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                SegmentSource::compressed(File::open(self.compressed(segment))?)
            }
            Err(error) => Err(error),
        }
    }

    /// What a closed segment begins with; `None` if that is no line of ours.
    pub(in crate::audit) fn first_line(&self, segment: u64) -> io::Result<Option<FirstLine>> {
        first_line(self.open(segment)?)
    }

    /// How a segment is called in texts.
    pub(in crate::audit) fn describe(&self, segment: u64) -> String {
        let plain = self.plain(segment);
        let path = if plain.exists() { plain } else { self.compressed(segment) };
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        format!("segment {segment} ({}/{})", name(&self.folder), name(&path))
    }
}

/// How much of the disk a log takes, in bytes; zero where there is none.
pub fn log_size(path: &Path) -> io::Result<u64> {
    let files = SegmentFiles::new(path);
    let size = |path: PathBuf| match fs::metadata(path) {
        Ok(file) => Ok(file.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    };
    let mut sum = size(path.to_owned())?;
    for segment in files.list()? {
        sum += size(files.plain(segment))? + size(files.compressed(segment))?;
    }
    Ok(sum)
}

fn first_line(source: SegmentSource) -> io::Result<Option<FirstLine>> {
    let mut line = Vec::new();
    let ending = read_line(&mut SegmentReader::new(source), &mut line)?;
    refuse_newer(&line)?;
    Ok(if ending == Some(Ending::Newline) { FirstLine::parse(&line) } else { None })
}

/// The number of a segment, by the name of its file.
fn number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".jsonl").or_else(|| name.strip_suffix(".jsonl.gz"))?;
    let is_number = digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|number| is_number && *number > 0)
}

#[cfg(unix)]
pub(in crate::audit) fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Elsewhere a segment never has two names.
#[cfg(not(unix))]
pub(in crate::audit) fn is_same_file(_: &Metadata, _: &Metadata) -> bool {
    false
}
