//! Reads one segment, forwards or backwards, without ever having more of it in memory than a block.

use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom};

use super::blocks::BlockFile;

/// How much of a plain file is read at once.
const CHUNK_BYTES: u64 = 256 << 10;

/// The content of a segment by position, whichever form it has.
pub(in crate::audit) enum SegmentSource {
    Plain(File),
    Compressed(Box<BlockSource>),
}

/// A compressed segment.
pub(in crate::audit) struct BlockSource(BlockFile);

impl SegmentSource {
    pub(super) fn compressed(file: File) -> io::Result<Self> {
        Ok(Self::Compressed(Box::new(BlockSource(BlockFile::open(file)?))))
    }

    /// The present size of the content.
    pub(in crate::audit) fn len(&self) -> io::Result<u64> {
        match self {
            Self::Plain(file) => Ok(file.metadata()?.len()),
            Self::Compressed(blocks) => Ok(blocks.0.len()),
        }
    }

    /// Some of what comes from a position on; nothing at the end.
    pub(in crate::audit) fn read_from(&mut self, position: u64) -> io::Result<Vec<u8>> {
        match self {
            Self::Plain(file) => read(file, position, CHUNK_BYTES),
            Self::Compressed(blocks) => blocks.0.read_from(position),
        }
    }

    /// Some of what comes before a position; nothing at the beginning.
    pub(in crate::audit) fn read_up_to(&mut self, end: u64) -> io::Result<Vec<u8>> {
        match self {
            Self::Plain(file) => {
                let size = CHUNK_BYTES.min(end);
                read(file, end - size, size)
            }
            Self::Compressed(blocks) => blocks.0.read_up_to(end),
        }
    }

    pub(in crate::audit) fn is_compressed(&self) -> bool {
        matches!(self, Self::Compressed(_))
    }
}

fn read(file: &mut File, position: u64, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(position))?;
    file.take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A segment from its beginning, or any position, to its end.
pub(in crate::audit) struct SegmentReader {
    source: SegmentSource,
    /// What was read and not used yet, from `used` on.
    chunk: Vec<u8>,
    used: usize,
    /// Where the chunk begins.
    position: u64,
    is_ended: bool,
}

impl SegmentReader {
    pub(in crate::audit) fn new(source: SegmentSource) -> Self {
        Self { source, chunk: Vec::new(), used: 0, position: 0, is_ended: false }
    }

    pub(in crate::audit) fn seek(&mut self, position: u64) {
        (self.position, self.used) = (position, 0);
        self.chunk.clear();
    }

    /// Reads no more of it.
    pub(in crate::audit) fn end(&mut self) {
        self.seek(self.position);
        self.is_ended = true;
    }

    pub(in crate::audit) fn source(&self) -> &SegmentSource {
        &self.source
    }

    pub(in crate::audit) fn source_mut(&mut self) -> &mut SegmentSource {
        &mut self.source
    }
}

impl Read for SegmentReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let length = available.len().min(bytes.len());
        bytes[..length].copy_from_slice(&available[..length]);
        self.consume(length);
        Ok(length)
    }
}

impl BufRead for SegmentReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.used >= self.chunk.len() && !self.is_ended {
            self.position += self.chunk.len() as u64;
            self.used = 0;
            self.chunk = self.source.read_from(self.position)?;
        }
        Ok(&self.chunk[self.used..])
    }

    fn consume(&mut self, bytes: usize) {
        self.used += bytes;
    }
}

impl std::fmt::Debug for SegmentReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SegmentReader").field("position", &self.position).finish_non_exhaustive()
    }
}
