//! What a server writes to its standard error, for the log: some lines, each cut, and the rest read and forgotten.

use std::time::Duration;

use quarterdeck_contracts::visible_line;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

const MAX_LINE_BYTES: usize = 500;
/// A server that writes more is not read by anyone.
const MAX_LINES_PER_WINDOW: u32 = 50;
const WINDOW: Duration = Duration::from_secs(10);

/// Logs until the end. It never stops reading: a server whose pipe is full would stand still.
pub(crate) async fn run(server: String, mut source: impl AsyncRead + Unpin) {
    let mut lines = Lines::default();
    let mut window = (Instant::now(), 0_u32);
    let mut buffer = [0_u8; 8_192];
    while let Ok(count @ 1..) = source.read(&mut buffer).await {
        for line in lines.push(&buffer[..count]) {
            if window.0.elapsed() >= WINDOW {
                window = (Instant::now(), 0);
            }
            window.1 = window.1.saturating_add(1);
            match window.1 {
                ..MAX_LINES_PER_WINDOW => tracing::info!(server, line, "upstream server wrote to stderr"),
                MAX_LINES_PER_WINDOW => tracing::info!(server, "upstream server writes too much to stderr"),
                _ => {}
            }
        }
    }
}

/// Cuts bytes into lines, and lines to their beginnings.
#[derive(Default)]
struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut whole = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_end) = match part.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (part, false),
            };
            let room = MAX_LINE_BYTES.saturating_sub(self.begun.len());
            self.begun.extend_from_slice(&text[..text.len().min(room)]);
            if is_end {
                let line = visible_line(&String::from_utf8_lossy(&std::mem::take(&mut self.begun)))
                    .trim()
                    .to_owned();
                whole.extend((!line.is_empty()).then_some(line));
            }
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_and_what_cannot_be_seen_is_gone() {
        let mut lines = Lines::default();
        assert_eq!(lines.push(b"one\n\ntw"), ["one"]);
        assert_eq!(lines.push(b"o\n"), ["two"]);
        let long = lines.push(&[&[b'x'; 100_000][..], b"\n"].concat());
        assert_eq!(long[0].len(), MAX_LINE_BYTES);
        assert!(!lines.push(b"\x1b[31mred\xff\n")[0].contains('\x1b'));
    }
}
