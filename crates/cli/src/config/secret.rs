//! Secrets: read from the environment or from files, never printed.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A text that nobody may see. It has no way to be shown but [`Secret::expose`].
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

/// No key is longer.
const MOST_BYTES: u64 = 64 << 10;

impl Secret {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for whoever sends it or compares with it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Reads a secret that is the whole text of a file, but for white space around it.
    ///
    /// The message does not name the file: somebody may have written the secret where its file's name belongs.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let mut bytes = Vec::new();
        let file = File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes));
        file.map_err(|error| format!("names a file that cannot be read: {error}"))?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err("names a file that is too large to be a secret".into());
        }
        let text = String::from_utf8(bytes).map_err(|_| "names a file that is not UTF-8 text".to_owned())?;
        match text.trim() {
            "" => Err("names a file that is empty".into()),
            secret => Ok(Self::new(secret)),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
