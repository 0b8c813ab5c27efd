//! The handshake, on either end.

use std::io;

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::receive_buffer::Limits;
use crate::socket::{Role, WebSocket};

const MAX_HEAD_BYTES: usize = 16 << 10;
const MAX_HEADERS: usize = 64;
/// Appended to the client's key (RFC 6455).
const MAGIC: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Why a handshake failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpgradeError {
    /// The stream failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The server answered with another status than 101.
    #[error("the server answered {status} {reason}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// The first characters of the body, or the reason phrase.
        reason: String,
    },
    /// The request or the answer is not a WebSocket handshake.
    #[error("no WebSocket handshake: {0}")]
    Malformed(&'static str),
}

/// The value of `Sec-WebSocket-Accept` for a client's key.
pub fn accept_key(key: &str) -> String {
    let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{MAGIC}").as_bytes());
    base64_simd::STANDARD.encode_to_string(digest.as_ref())
}

/// An upgrade request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Path and query, as sent.
    pub target: String,
    headers: Vec<(String, String)>,
}

impl Request {
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// A value of the query, not decoded.
    pub fn query(&self, name: &str) -> Option<&str> {
        let (_, query) = self.target.split_once('?')?;
        query.split('&').find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name).map(|(_, v)| v))
    }

    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A client whose upgrade request has been read and not answered.
#[derive(Debug)]
pub struct PendingUpgrade<S> {
    /// The request.
    pub request: Request,
    stream: S,
    key: String,
    arrived: Vec<u8>,
}

/// Reads a client's upgrade request. Another request is answered with 426.
pub async fn receive_upgrade<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
) -> Result<PendingUpgrade<S>, UpgradeError> {
    let (head, arrived) = read_head(&mut stream).await?;
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    parsed.parse(&head).map_err(|_| UpgradeError::Malformed("the request cannot be read"))?;
    let request =
        Request { target: parsed.path.unwrap_or("/").to_owned(), headers: owned_headers(parsed.headers) };
    let key = request.header("sec-websocket-key").map(str::to_owned);
    match key {
        Some(key) if parsed.method == Some("GET") && is_websocket_upgrade(&request) => {
            Ok(PendingUpgrade { request, stream, key, arrived })
        }
        _ => {
            let answer = "HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                          Connection: close\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer.as_bytes()).await?;
            stream.flush().await?;
            Err(UpgradeError::Malformed("the request asks for no WebSocket of version 13"))
        }
    }
}

fn is_websocket_upgrade(request: &Request) -> bool {
    let says = |name: &str, word: &str| {
        let words = request.header(name).unwrap_or_default().split(',');
        words.map(str::trim).any(|said| said.eq_ignore_ascii_case(word))
    };
    says("connection", "upgrade") && says("upgrade", "websocket") && says("sec-websocket-version", "13")
}

impl<S: AsyncRead + AsyncWrite + Unpin> PendingUpgrade<S> {
    /// Completes the handshake.
    pub async fn accept(mut self, limits: Limits) -> Result<WebSocket<S>, UpgradeError> {
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {}\r\n\r\n",
            accept_key(&self.key)
        );
        self.stream.write_all(answer.as_bytes()).await?;
        self.stream.flush().await?;
        Ok(WebSocket::new(self.stream, Role::Server, limits, &self.arrived))
    }

    /// Answers with an error status.
    pub async fn refuse(mut self, status: &str, body: &str) -> Result<(), UpgradeError> {
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.stream.write_all(answer.as_bytes()).await?;
        Ok(self.stream.flush().await?)
    }
}

/// Opens a WebSocket to a server. `target` is path and query; `headers` are sent beside those of the handshake.
pub async fn upgrade<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    host: &str,
    target: &str,
    headers: &[(&str, &str)],
    limits: Limits,
) -> Result<WebSocket<S>, UpgradeError> {
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce).map_err(|error| io::Error::other(error.to_string()))?;
    let key = base64_simd::STANDARD.encode_to_string(nonce);
    let request = request_head(host, target, headers, &key)?;
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let (head, arrived) = read_head(&mut stream).await?;
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Response::new(&mut headers);
    parsed.parse(&head).map_err(|_| UpgradeError::Malformed("the answer cannot be read"))?;
    let status = parsed.code.unwrap_or(0);
    if status != 101 {
        let said = String::from_utf8_lossy(&arrived);
        let reason = match said.trim() {
            "" => parsed.reason.unwrap_or_default().to_owned(),
            said => said.chars().take(200).collect(),
        };
        return Err(UpgradeError::Refused { status, reason });
    }
    let accepted = owned_headers(parsed.headers).into_iter().find(|(name, _)| name == "sec-websocket-accept");
    if accepted.is_none_or(|(_, value)| value != accept_key(&key)) {
        return Err(UpgradeError::Malformed("the answer is not to our key"));
    }
    Ok(WebSocket::new(stream, Role::Client, limits, &arrived))
}

fn request_head(
    host: &str,
    target: &str,
    headers: &[(&str, &str)],
    key: &str,
) -> Result<String, UpgradeError> {
    let mut request = format!(
        "GET {target} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
    );
    // A line break in any of them would begin another header.
    let mut is_broken = [host, target].iter().any(|text| text.contains([' ', '\r', '\n']));
    for (name, value) in headers {
        is_broken |= name.contains([':', ' ', '\r', '\n']) || value.contains(['\r', '\n']);
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    if is_broken {
        return Err(UpgradeError::Malformed("a header or the address holds what it must not"));
    }
    Ok(request)
}

/// Reads up to the empty line. The second part is what arrived after it.
async fn read_head<S: AsyncRead + Unpin>(stream: &mut S) -> Result<(Vec<u8>, Vec<u8>), UpgradeError> {
    let mut bytes = Vec::with_capacity(1024);
    loop {
        let searched = bytes.len().saturating_sub(3);
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(UpgradeError::Malformed("the connection ended in the handshake"));
        }
        if let Some(end) = memchr::memmem::find(&bytes[searched..], b"\r\n\r\n") {
            let rest = bytes.split_off(searched + end + 4);
            return Ok((bytes, rest));
        }
        if bytes.len() > MAX_HEAD_BYTES {
            return Err(UpgradeError::Malformed("the head is too long"));
        }
    }
}

fn owned_headers(headers: &[httparse::Header<'_>]) -> Vec<(String, String)> {
    let value = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    headers.iter().map(|header| (header.name.to_ascii_lowercase(), value(header.value))).collect()
}
