//! Messages as lines of text, as a stdio server reads and writes them, within limits.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

use super::inbound::{Inbound, Reading};
use super::lost::Lost;
use super::message::{self, ID_SEARCH_BYTES};

/// A server that does not read what it is sent is dead. Longer than any pause of a live one, shorter than most calls.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// A line beyond the limit is skipped, so that the calls beside it are answered; one that goes on like this has no end.
const MAX_SKIPPED_BYTES: usize = 256_000_000;

/// One message per line, in both directions.
pub(crate) struct LineTransport<R, W> {
    reader: LineReader<R>,
    writer: Arc<Mutex<Option<W>>>,
    inbound: Arc<Inbound>,
    lost: Lost,
}

impl<R: AsyncRead + Unpin, W> LineTransport<R, W> {
    pub(crate) fn new(reader: R, writer: W, inbound: Arc<Inbound>, lost: Lost) -> Self {
        let reader = LineReader::new(reader, inbound.limits().bytes);
        Self { reader, writer: Arc::new(Mutex::new(Some(writer))), inbound, lost }
    }
}

impl<R, W> Transport<RoleClient> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let (writer, lost) = (self.writer.clone(), self.lost.clone());
        self.inbound.expect_answer(&message);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut guard = writer.lock().await;
            let writer = guard.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            let written = async {
                writer.write_all(&line).await?;
                writer.flush().await
            };
            let written = tokio::time::timeout(WRITE_TIMEOUT, written).await;
            let written = written.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            if let Err(error) = &written {
                // What follows half a line would be read as its end.
                *guard = None;
                lost.set(&format!("it does not take what it is sent: {error}"));
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let reading = match self.reader.next().await? {
                Line::Whole(line) if line.trim_ascii().is_empty() => continue,
                Line::Whole(line) => self.inbound.read(line),
                Line::TooLong { answers } => self.inbound.read_oversized(answers),
            };
            match reading {
                Reading::Message(message) | Reading::Refused(message) => return Some(message),
                Reading::Ignored => self.inbound.slow_down().await,
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        // A write may be stuck and hold the lock; the process is ended anyway.
        if let Ok(mut writer) = self.writer.try_lock() {
            *writer = None;
        }
        Ok(())
    }
}

/// One line, or what is left of one that is too long.
#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    Whole(&'a [u8]),
    TooLong { answers: Option<RequestId> },
}

/// Reads lines and never holds more than the limit of one.
///
/// It can be dropped between any two reads: what was read stays here.
struct LineReader<R> {
    source: BufReader<R>,
    line: Vec<u8>,
    /// Whether `line` was handed out and is to be forgotten.
    is_taken: bool,
    /// The two ends of a line that is being skipped.
    skipped: Option<Ends>,
    max_bytes: usize,
    max_skipped_bytes: usize,
}

#[derive(Default)]
struct Ends {
    head: Vec<u8>,
    tail: Vec<u8>,
    bytes: usize,
}

impl Ends {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        let missing = ID_SEARCH_BYTES.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..missing]);
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(ID_SEARCH_BYTES)..]);
        let excess = self.tail.len().saturating_sub(ID_SEARCH_BYTES);
        self.tail.drain(..excess);
    }

    fn find_id(&self) -> Option<RequestId> {
        message::find_id(&[&self.head[..], &self.tail].concat())
    }
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    fn new(source: R, max_bytes: usize) -> Self {
        let source = BufReader::new(source);
        let max_skipped_bytes = MAX_SKIPPED_BYTES;
        Self { source, line: Vec::new(), is_taken: false, skipped: None, max_bytes, max_skipped_bytes }
    }

    /// The next line; `None` at the end, or where a line does not end. A last line without its end is no message.
    async fn next(&mut self) -> Option<Line<'_>> {
        if std::mem::take(&mut self.is_taken) {
            self.line.clear();
        }
        loop {
            let available = self.source.fill_buf().await.ok().filter(|bytes| !bytes.is_empty())?;
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            let bytes = &available[..end.unwrap_or(taken)];
            match &mut self.skipped {
                Some(ends) => ends.push(bytes),
                None if self.line.len() + bytes.len() > self.max_bytes => {
                    let mut ends = Ends::default();
                    ends.push(&self.line);
                    ends.push(bytes);
                    self.line = Vec::new();
                    self.skipped = Some(ends);
                }
                None => self.line.extend_from_slice(bytes),
            }
            self.source.consume(taken);
            if end.is_some() {
                break;
            }
            if self.skipped.as_ref().is_some_and(|ends| ends.bytes > self.max_skipped_bytes) {
                return None;
            }
        }
        if let Some(ends) = self.skipped.take() {
            return Some(Line::TooLong { answers: ends.find_id() });
        }
        self.is_taken = true;
        Some(Line::Whole(&self.line))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    async fn read_all(
        bytes: &[u8],
        chunk: usize,
        max_bytes: usize,
    ) -> Vec<Result<Vec<u8>, Option<RequestId>>> {
        let (mut writer, reader) = tokio::io::duplex(chunk);
        let bytes = bytes.to_vec();
        let writing = tokio::spawn(async move { writer.write_all(&bytes).await });
        let mut reader = LineReader::new(reader, max_bytes);
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await {
            lines.push(match line {
                Line::Whole(line) => Ok(line.to_vec()),
                Line::TooLong { answers } => Err(answers),
            });
        }
        writing.await.unwrap().unwrap();
        lines
    }

    #[tokio::test]
    async fn a_line_that_does_not_end_is_the_end() {
        let (mut writer, reader) = tokio::io::duplex(4_096);
        let writing = tokio::spawn(async move { while writer.write_all(&[b'x'; 4_096]).await.is_ok() {} });
        let mut reader = LineReader { max_skipped_bytes: 100_000, ..LineReader::new(reader, 1_000) };
        assert_eq!(reader.next().await, None);
        drop(reader);
        writing.await.unwrap();
    }

    #[tokio::test]
    async fn a_line_beyond_the_limit_is_skipped_and_the_next_one_read() {
        let long = format!("{{\"result\":\"{}\",\"id\":5}}", "x".repeat(100_000));
        let text = format!("one\n{long}\ntwo\nno end");
        let lines = read_all(text.as_bytes(), 64, 1_000).await;
        assert_eq!(lines, [Ok(b"one".to_vec()), Err(Some(RequestId::Number(5))), Ok(b"two".to_vec())]);
    }

    #[tokio::test]
    async fn a_write_that_nobody_reads_ends_the_connection() {
        tokio::time::pause();
        let (ours, _theirs) = tokio::io::duplex(16);
        let (reader, writer) = tokio::io::split(ours);
        let lost = Lost::default();
        let mut transport = LineTransport::new(reader, writer, Arc::new(Inbound::for_tests()), lost.clone());
        let message = || {
            let text = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
            serde_json::from_str::<ClientJsonRpcMessage>(text).unwrap()
        };
        let first = transport.send(message()).await.unwrap_err();
        assert_eq!(first.kind(), io::ErrorKind::TimedOut);
        assert_eq!(transport.send(message()).await.unwrap_err().kind(), io::ErrorKind::NotConnected);
        assert!(lost.reason().is_some(), "every call on it learns");
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_they_arrive(
            lines in proptest::collection::vec("[a-z{}\":]{0,40}", 0..8), chunk in 1_usize..50, max in 1_usize..40,
        ) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let read = runtime.block_on(read_all(text.as_bytes(), chunk, max));
            let expected: Vec<_> = lines.iter().map(|line| line.len() <= max).collect();
            prop_assert_eq!(read.iter().map(Result::is_ok).collect::<Vec<_>>(), expected);
        }
    }
}
