//! Engines that answer over HTTP after a fixed time.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use super::{REPLY_DELAY, SPEECH_DELAY, TRANSCRIPTION_DELAY};

/// Two seconds at 24 kHz.
const SPEECH_BYTES: usize = 2 * 48_000;

/// When each transcript was asked for, by its number.
pub(super) type RequestLog = Arc<Mutex<Vec<Instant>>>;

/// Serves engines from now on.
pub(super) async fn listen(port: u16) -> RequestLog {
    let log = RequestLog::default();
    let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("the port is free");
    let requests = log.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let requests = requests.clone();
            tokio::spawn(async move {
                // A connection that is closed is not needed any more.
                let _ = answer_all(stream, &requests).await;
            });
        }
    });
    log
}

async fn answer_all(mut stream: TcpStream, log: &RequestLog) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    while let Some(path) = read_request(&mut stream, &mut buffer).await? {
        let (delay, content_type, body) = match path.as_str() {
            "/v1/audio/transcriptions" => {
                let number = {
                    let mut log = log.lock().expect("no writer panics");
                    log.push(Instant::now());
                    log.len() - 1
                };
                let words = format!(r#"{{"text":"Question {number}"}}"#);
                (TRANSCRIPTION_DELAY, "application/json", words.into_bytes())
            }
            "/v1/chat/completions" => (REPLY_DELAY, "text/event-stream", reply().into_bytes()),
            "/v1/audio/speech" => (SPEECH_DELAY, "audio/pcm", vec![1; SPEECH_BYTES]),
            _ => (Duration::ZERO, "text/plain", Vec::new()),
        };
        sleep(delay).await;
        let length = body.len();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(&[head.as_bytes(), &body].concat()).await?;
    }
    Ok(())
}

/// One sentence, which is an answer.
fn reply() -> String {
    let delta =
        r#"{"choices":[{"index":0,"delta":{"content":"She was built in Larvik, by Colin Archer."}}]}"#;
    let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    format!("data: {delta}\n\ndata: {end}\n\ndata: [DONE]\n\n")
}

/// Reads one request and forgets its body. Returns its path, or nothing at the end.
async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<String>> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let length: Option<usize> =
        head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let Some(length) = length else { return Err(io::ErrorKind::InvalidData.into()) };
    let whole = end + length;
    while buffer.len() < whole {
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    buffer.drain(..whole);
    Ok(Some(path))
}
