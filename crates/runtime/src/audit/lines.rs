//! Reads a log line by line. The file may be anything.

use std::io::{self, BufRead, Read};

/// A line that is longer is not written, and is damage where it is read: a foreign
/// file without line ends must not fill the memory.
pub(super) const MAX_LINE_BYTES: usize = 16 << 20;

/// How a line that was read ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// As it should.
    Newline,
    /// With the file: it is being written, or was torn.
    Missing,
    /// Nowhere within [`MAX_LINE_BYTES`].
    TooLong,
}

/// Reads the next line into `line`, without its end; `None` when there is nothing more.
pub(super) fn read_line(file: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<Ending>> {
    line.clear();
    let read = file.take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', line)?;
    Ok(match line.last() {
        None => None,
        Some(b'\n') => {
            line.pop();
            Some(Ending::Newline)
        }
        Some(_) if read > MAX_LINE_BYTES => Some(Ending::TooLong),
        Some(_) => Some(Ending::Missing),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_whole_torn_or_not_at_all() {
        let mut file = &b"one\n\ntwo"[..];
        let mut line = Vec::new();
        let mut next = || read_line(&mut file, &mut line).unwrap().map(|ending| (line.clone(), ending));
        assert_eq!(next(), Some((b"one".to_vec(), Ending::Newline)));
        assert_eq!(next(), Some((b"".to_vec(), Ending::Newline)));
        assert_eq!(next(), Some((b"two".to_vec(), Ending::Missing)));
        assert_eq!(next(), None);
        let endless = vec![b'x'; MAX_LINE_BYTES + 7];
        assert_eq!(read_line(&mut &endless[..], &mut line).unwrap(), Some(Ending::TooLong));
        assert!(line.len() <= MAX_LINE_BYTES + 1);
    }
}
