//! The deck's charts over a restart: the samples in a file of the data folder, one for each node, which has its own charts.
//!
//! The file is bounded, as the rings are. One that cannot be read is a chart that begins anew, never a server that does
//! not start.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

/// More than both rings can hold, as text.
const MAX_HISTORY_BYTES: u64 = 64 << 20;
/// Of a file that another release has written, nothing is taken.
const VERSION: u32 = 1;

/// The samples of both rings.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct History {
    version: u32,
    pub(super) hour: Vec<SavedSample>,
    pub(super) days: Vec<SavedSample>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SavedSample {
    pub(super) at_ms: u64,
    pub(super) text: u64,
    pub(super) voice: u64,
    pub(super) tools: Vec<SavedTool>,
}

/// A tool: its calls, errors and refusals, and the percentiles where there were answers.
pub(super) type SavedTool = (Arc<str>, [u64; 3], Option<(f64, f64, u64, u64)>);

/// Where samples are kept, and whether they are just being written.
pub(crate) struct HistoryFile {
    path: PathBuf,
    writing: std::sync::Mutex<()>,
}

impl History {
    pub(super) fn new(hour: Vec<SavedSample>, days: Vec<SavedSample>) -> Self {
        Self { version: VERSION, hour, days }
    }
}

impl HistoryFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, writing: std::sync::Mutex::default() }
    }

    /// What was saved; nothing where there is no file of ours.
    pub(super) fn load(&self) -> History {
        match read(&self.path) {
            Ok(history) if history.version == VERSION => history,
            Ok(_) => History::default(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => History::default(),
            Err(error) => {
                tracing::warn!(error = %error, path = %self.path.display(), "deck history not readable");
                History::default()
            }
        }
    }

    /// Replaces what was saved, whole or not at all. It blocks.
    pub(super) fn save(&self, history: &History) {
        // One that is still being written is nearly as new.
        let Ok(_guard) = self.writing.try_lock() else { return };
        if let Err(error) = write(&self.path, history) {
            tracing::warn!(error = %error, path = %self.path.display(), "deck history not saved");
        }
    }
}

fn read(path: &Path) -> io::Result<History> {
    let mut text = Vec::new();
    GzDecoder::new(File::open(path)?).take(MAX_HISTORY_BYTES).read_to_end(&mut text)?;
    serde_json::from_slice(&text).map_err(io::Error::other)
}

fn write(path: &Path, history: &History) -> io::Result<()> {
    let partial = path.with_extension("partial");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut gzip = GzEncoder::new(io::BufWriter::new(options.open(&partial)?), Compression::fast());
    serde_json::to_writer(&mut gzip, history).map_err(io::Error::other)?;
    gzip.finish()?.flush()?;
    fs::rename(partial, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_none_of_ours_is_no_history() {
        let folder = quarterdeck_testkit::tree("");
        let file = HistoryFile::new(folder.join("deck-history.json.gz"));
        assert_eq!(file.load(), History::default(), "no file");
        let sample = SavedSample { at_ms: 1, text: 2, voice: 3, tools: vec![("t".into(), [4, 5, 6], None)] };
        let history = History::new(vec![sample], Vec::new());
        file.save(&history);
        assert_eq!(file.load(), history);
        file.save(&History { version: 99, ..History::default() });
        assert_eq!(file.load(), History::default(), "another release's");
        for bytes in [&b""[..], b"not gzip", &[0x1f, 0x8b, 8, 0, 0]] {
            fs::write(&file.path, bytes).unwrap();
            assert_eq!(file.load(), History::default());
        }
    }
}
