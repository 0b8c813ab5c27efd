//! A compressed segment: gzip, as `zcat` reads it, in blocks that can each be read without those before.
//!
//! Every block is a gzip member of its own. An extra field in its header has its size and that of its content, so that
//! the blocks of a file are found by reading the headers alone, and a search can begin at the end.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};

use super::crash_point::{CrashPoint, reach};

/// The content of a block. Larger ones hardly compress better.
pub(super) const BLOCK_BYTES: usize = 1 << 20;
/// A gzip header with our extra field: ten bytes, the field's length, and the field.
const HEADER_BYTES: usize = 10 + 2 + EXTRA_BYTES;
/// Two letters and a length of two bytes, the size of the block and that of its content, of four bytes each.
const EXTRA_BYTES: usize = 4 + 8;
const EXTRA_ID: [u8; 4] = [b'Q', b'D', 8, 0];
const SIZE_AT: usize = 16;
/// Deflate adds little to what it cannot compress.
const MAX_BLOCK_FILE_BYTES: usize = BLOCK_BYTES + (64 << 10);

/// Compresses everything that can be read; `Interrupted` when `is_stopped` says so between two blocks.
pub(super) fn compress(
    from: &mut impl Read,
    to: &mut impl Write,
    is_stopped: &dyn Fn() -> bool,
) -> io::Result<()> {
    let mut content = Vec::with_capacity(BLOCK_BYTES);
    loop {
        if is_stopped() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        content.clear();
        from.take(BLOCK_BYTES as u64).read_to_end(&mut content)?;
        if content.is_empty() {
            return Ok(());
        }
        to.write_all(&block(&content)?)?;
        reach(CrashPoint::BlockCompressed);
    }
}

fn block(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut extra = Vec::from(EXTRA_ID);
    extra.extend([0; 4]);
    extra.extend(size(content.len())?);
    let mut gzip = GzBuilder::new().extra(extra).write(Vec::new(), Compression::default());
    gzip.write_all(content)?;
    let mut bytes = gzip.finish()?;
    let length = size(bytes.len())?;
    bytes[SIZE_AT..SIZE_AT + 4].copy_from_slice(&length);
    Ok(bytes)
}

fn size(bytes: usize) -> io::Result<[u8; 4]> {
    u32::try_from(bytes).map(u32::to_le_bytes).map_err(io::Error::other)
}

struct Block {
    /// Where it is in the file, and its size there.
    at: u64,
    bytes: usize,
    /// Where its content begins and ends.
    start: u64,
    end: u64,
}

/// A compressed file, by the positions of its content.
pub(super) struct BlockFile {
    file: File,
    blocks: Vec<Block>,
}

impl BlockFile {
    /// Reads the headers of all blocks.
    pub(super) fn open(mut file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let (mut blocks, mut at, mut start) = (Vec::new(), 0, 0);
        while at < length {
            let mut header = [0; HEADER_BYTES];
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(&mut header)?;
            let (bytes, content) = sizes(&header)
                .ok_or_else(|| damaged(format!("there is no block of a compressed segment at byte {at}")))?;
            blocks.push(Block { at, bytes, start, end: start + content });
            at += bytes as u64;
            start += content;
        }
        match at == length {
            true => Ok(Self { file, blocks }),
            false => Err(damaged("its last block is cut off".into())),
        }
    }

    /// The size of the content.
    pub(super) fn len(&self) -> u64 {
        self.blocks.last().map_or(0, |block| block.end)
    }

    /// The content from a position to the end of its block; nothing at the end.
    pub(super) fn read_from(&mut self, position: u64) -> io::Result<Vec<u8>> {
        let index = self.blocks.partition_point(|block| block.end <= position);
        if index == self.blocks.len() {
            return Ok(Vec::new());
        }
        let mut content = self.read_block(index)?;
        content.drain(..(position - self.blocks[index].start) as usize);
        Ok(content)
    }

    /// The content from the beginning of a block to a position within it, or at its end.
    pub(super) fn read_up_to(&mut self, end: u64) -> io::Result<Vec<u8>> {
        let index = self.blocks.partition_point(|block| block.end < end);
        if end == 0 || index == self.blocks.len() {
            return Ok(Vec::new());
        }
        let mut content = self.read_block(index)?;
        content.truncate((end - self.blocks[index].start) as usize);
        Ok(content)
    }

    fn read_block(&mut self, index: usize) -> io::Result<Vec<u8>> {
        let Block { at, bytes, start, end } = self.blocks[index];
        self.file.seek(SeekFrom::Start(at))?;
        let mut packed = vec![0; bytes];
        self.file.read_exact(&mut packed)?;
        let mut content = Vec::with_capacity((end - start) as usize);
        // No more than a block may hold, whatever the bytes would unpack to.
        GzDecoder::new(&*packed).take(BLOCK_BYTES as u64 + 1).read_to_end(&mut content)?;
        match content.len() as u64 == end - start {
            true => Ok(content),
            false => Err(damaged(format!("the block at byte {at} is not as long as it says"))),
        }
    }
}

/// The size of a block and of its content, if the bytes are the header of one.
fn sizes(header: &[u8; HEADER_BYTES]) -> Option<(usize, u64)> {
    let is_ours = header.starts_with(&[0x1f, 0x8b, 8, 4])
        && header[10..12] == [EXTRA_BYTES as u8, 0]
        && header[12..16] == EXTRA_ID;
    let number =
        |at: usize| header[at..at + 4].try_into().map_or(0, |bytes| u32::from_le_bytes(bytes) as usize);
    let (bytes, content) = (number(SIZE_AT), number(SIZE_AT + 4));
    let is_possible = (HEADER_BYTES..=MAX_BLOCK_FILE_BYTES).contains(&bytes) && content <= BLOCK_BYTES;
    (is_ours && is_possible).then_some((bytes, content as u64))
}

fn damaged(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use flate2::read::MultiGzDecoder;

    use super::*;

    fn compressed(content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        compress(&mut &*content, &mut bytes, &|| false).unwrap();
        bytes
    }

    fn open(bytes: &[u8]) -> io::Result<BlockFile> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        BlockFile::open(file)
    }

    #[test]
    fn content_is_read_from_any_position_and_by_any_gzip() {
        let content: Vec<u8> = (0..BLOCK_BYTES * 2 + 17).map(|n| (n * n % 251) as u8).collect();
        let bytes = compressed(&content);
        let mut other = Vec::new();
        MultiGzDecoder::new(&*bytes).read_to_end(&mut other).unwrap();
        assert!(other == content);
        let mut file = open(&bytes).unwrap();
        assert_eq!(file.len(), content.len() as u64);
        for position in [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES * 2 + 16, BLOCK_BYTES * 2 + 17] {
            let after = file.read_from(position as u64).unwrap();
            assert!(content[position..].starts_with(&after), "{position}");
            assert_eq!(after.is_empty(), position == content.len());
            let before = file.read_up_to(position as u64).unwrap();
            assert!(content[..position].ends_with(&before), "{position}");
            assert_eq!(before.is_empty(), position == 0);
        }
    }

    #[test]
    fn what_is_no_compressed_segment_is_refused() {
        let bytes = compressed(b"a line\n");
        assert!(open(&bytes[..bytes.len() - 1]).is_err(), "cut off");
        assert!(open(&[&bytes[..], b"more"].concat()).is_err(), "something after it");
        let mut foreign = GzBuilder::new().write(Vec::new(), Compression::default());
        foreign.write_all(b"a line\n").unwrap();
        assert!(open(&foreign.finish().unwrap()).is_err(), "another program's");
        for index in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[index] ^= 0x55;
            // Bytes that mean nothing, such as the name of the system, may be anything.
            if let Ok(content) = open(&changed).and_then(|mut file| file.read_from(0)) {
                assert_eq!(content, b"a line\n", "byte {index}");
            }
        }
    }
}
