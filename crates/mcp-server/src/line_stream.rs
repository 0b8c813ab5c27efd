//! Lines of text on streams, within limits.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Lines that wait to be written. While there are so many, those who write wait.
const MAX_QUEUED_LINES: usize = 64;
/// How long a client may take to read what was written before the end.
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);

/// One line.
#[derive(Debug)]
pub enum Line {
    Message(Vec<u8>),
    /// It was longer than the limit, and is not kept.
    TooLong,
}

/// Reads lines of a limited length. Waiting for one can be given up at any moment.
pub struct LineReader<R> {
    read: BufReader<R>,
    line: Vec<u8>,
    max_bytes: usize,
    /// The rest of a line that was too long is skipped.
    is_skipping: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub fn new(read: R, max_bytes: usize) -> Self {
        Self { read: BufReader::new(read), line: Vec::new(), max_bytes, is_skipping: false }
    }

    /// The next line that is not empty; the last one may end without a line feed.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let available = self.read.fill_buf().await?;
            let is_end = available.is_empty();
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = &available[..end.unwrap_or(available.len())];
            let was_skipping = self.is_skipping;
            if !was_skipping && self.line.len() + taken.len() > self.max_bytes {
                self.is_skipping = true;
            } else if !was_skipping {
                self.line.extend_from_slice(taken);
            }
            let consumed = taken.len() + usize::from(end.is_some());
            self.read.consume(consumed);
            if end.is_none() && !is_end {
                continue;
            }
            let line = std::mem::take(&mut self.line);
            if std::mem::take(&mut self.is_skipping) {
                return Ok(Some(Line::TooLong));
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some(Line::Message(line)));
            }
            if is_end {
                return Ok(None);
            }
        }
    }
}

/// Writes lines in the order in which they come, from a task of its own: a line that was begun is finished.
pub struct LineWriter {
    queue: Mutex<Option<mpsc::Sender<String>>>,
    task: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

impl LineWriter {
    pub fn start<W: AsyncWrite + Send + Unpin + 'static>(mut write: W) -> Self {
        let (queue, mut lines) = mpsc::channel::<String>(MAX_QUEUED_LINES);
        let task = tokio::spawn(async move {
            while let Some(mut line) = lines.recv().await {
                line.push('\n');
                let written = match write.write_all(line.as_bytes()).await {
                    Ok(()) => write.flush().await,
                    Err(error) => Err(error),
                };
                if let Err(error) = written {
                    tracing::warn!(%error, "client does not read its messages any more");
                    return;
                }
            }
        });
        Self { queue: Mutex::new(Some(queue)), task: tokio::sync::Mutex::new(Some(task)) }
    }

    /// Puts a line into the queue. Waiting for a place there can be given up at any moment.
    pub async fn write(&self, line: String) -> io::Result<()> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
        queue.ok_or_else(closed)?.send(line).await.map_err(|_| closed())
    }

    /// Takes no more lines, and waits until those that were taken are written.
    pub async fn finish(&self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = self.task.lock().await.take() {
            // A client that reads no more may hold the task for ever.
            if tokio::time::timeout(FINISH_TIMEOUT, task).await.is_err() {
                tracing::warn!("client does not read its messages: the last ones are lost");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_read_within_their_limit() {
        let text = format!("\n  \r\nab\r\n{}\ncd\n{}", "x".repeat(20_000), "ef");
        let mut lines = LineReader::new(text.as_bytes(), 10);
        let mut seen = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            seen.push(match line {
                Line::Message(bytes) => String::from_utf8(bytes).unwrap(),
                Line::TooLong => "too long".to_owned(),
            });
        }
        assert_eq!(seen, ["ab\r", "too long", "cd", "ef"]);
    }
}
