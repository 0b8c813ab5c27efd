//! The ends of closed segments in a file elsewhere, where a process that rewrites the whole log and the store cannot reach
//! them.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::super::lines::read_line;
use super::files::SegmentFiles;

/// A longer line is not one of ours, and is passed.
const MAX_SEAL_BYTES: usize = 4 << 10;

/// The end of a closed segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::audit) struct Seal {
    /// The chain; nodes may share a file.
    pub(in crate::audit) node: String,
    pub(in crate::audit) segment: u64,
    /// The number and hash of its last line.
    pub(in crate::audit) last: u64,
    pub(in crate::audit) hash: String,
    /// When the next one was begun.
    pub(in crate::audit) time: String,
}

/// Seals every closed segment that is not sealed yet.
pub(super) fn seal_closed(files: &SegmentFiles, node: &str, closed: u64, seal_file: &Path) -> io::Result<()> {
    let mut sealed = 0;
    let mut seals = SealReader::open(seal_file, node)?;
    while let Some(seal) = seals.next()? {
        sealed = seal.segment;
    }
    drop(seals);
    let numbers = files.list()?;
    for segment in numbers.range(sealed + 1..).copied().take_while(|segment| *segment <= closed) {
        let after = match numbers.contains(&(segment + 1)) && segment < closed {
            true => files.first_line(segment + 1)?,
            false => files.open_active()?.and_then(|active| active.first),
        };
        // Rotated once more meanwhile: the next round seals it.
        let Some(after) = after else { return Ok(()) };
        let Some(header) = after.header.filter(|header| header.segment == segment + 1) else { return Ok(()) };
        let seal = Seal {
            node: node.to_owned(),
            segment,
            last: header.previous.last,
            hash: header.previous.hash,
            time: after.time,
        };
        append(seal_file, &seal)?;
        super::crash_point::reach(super::crash_point::CrashPoint::SealWritten);
    }
    Ok(())
}

/// One write for one seal: the file may be shared, and may allow nothing but appending.
fn append(path: &Path, seal: &Seal) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    let mut line = serde_json::to_string(seal).map_err(io::Error::other)?;
    line.push('\n');
    if !has_line_end(path)? {
        // A crash has torn the seal before; it is written anew.
        line.insert(0, '\n');
    }
    file.write_all(line.as_bytes())?;
    file.sync_all()
}

fn has_line_end(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// The seals of one chain in their order.
pub(in crate::audit) struct SealReader {
    /// `None` where there is no file yet.
    file: Option<BufReader<File>>,
    node: String,
}

impl SealReader {
    pub(in crate::audit) fn open(path: &Path, node: &str) -> io::Result<Self> {
        // Opening a pipe would wait without end.
        let is_other = |there: std::fs::Metadata| !there.is_file();
        if std::fs::metadata(path).is_ok_and(is_other) {
            return Err(io::Error::other("something that is not a file stands there"));
        }
        let file = match File::open(path) {
            Ok(file) => Some(BufReader::new(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(Self { file, node: node.to_owned() })
    }

    /// The next seal. Lines of other chains and torn ones are passed.
    pub(in crate::audit) fn next(&mut self) -> io::Result<Option<Seal>> {
        let Some(file) = &mut self.file else { return Ok(None) };
        let mut line = Vec::new();
        while read_line(file, &mut line)?.is_some() {
            if line.len() <= MAX_SEAL_BYTES
                && let Ok(seal) = serde_json::from_slice::<Seal>(&line)
                && seal.node == self.node
            {
                return Ok(Some(seal));
            }
        }
        Ok(None)
    }
}
