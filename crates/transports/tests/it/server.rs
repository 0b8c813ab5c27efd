//! A server that answers by a script, one entry for each request, and remembers what it was asked.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

/// What to do with a request.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Send these bytes, then close.
    Send(Vec<u8>),
    /// Send these bytes, and wait for the next request on the same connection.
    SendAndKeep(Vec<u8>),
    /// Send these bytes and nothing more, without closing.
    SendAndHang(Vec<u8>),
    /// Send these pieces, each in a packet of its own, then close.
    InPieces(Vec<Vec<u8>>),
    /// Send the first bytes, then the second ones again and again.
    Endlessly(Vec<u8>, Vec<u8>, Duration),
    /// Send these bytes, then reset the connection.
    Reset(Vec<u8>),
}

/// What has been seen so far.
#[derive(Debug, Default)]
struct Log {
    /// Heads and bodies of the requests, as text.
    requests: Vec<String>,
    connections: usize,
    /// Connections that the client closed while we were in the middle of something.
    disconnects: usize,
}

#[derive(Clone)]
pub(crate) struct Server {
    port: u16,
    seen: Arc<Mutex<Log>>,
}

impl Server {
    /// Listens on a port of its own. When the script is over, its last entry goes on.
    pub(crate) async fn start(script: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self { port: listener.local_addr().unwrap().port(), seen: Arc::default() };
        let (running, script) = (server.clone(), Arc::new(script));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                running.seen.lock().unwrap().connections += 1;
                tokio::spawn(running.clone().serve(socket, script.clone()));
            }
        });
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().requests.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.lock().unwrap().connections
    }

    /// Whether the client closes its end soon.
    pub(crate) async fn is_disconnected(&self) -> bool {
        for _ in 0..100 {
            if self.seen.lock().unwrap().disconnects > 0 {
                return true;
            }
            sleep(Duration::from_millis(20)).await;
        }
        false
    }

    async fn serve(self, mut socket: TcpStream, script: Arc<Vec<Act>>) {
        while let Some(request) = read_request(&mut socket).await {
            let act = {
                let mut seen = self.seen.lock().unwrap();
                seen.requests.push(request);
                script[(seen.requests.len() - 1).min(script.len() - 1)].clone()
            };
            match act {
                Act::Send(bytes) => {
                    let _ = socket.write_all(&bytes).await;
                    let _ = socket.shutdown().await;
                    return;
                }
                Act::SendAndKeep(bytes) => {
                    let _ = socket.write_all(&bytes).await;
                }
                Act::SendAndHang(bytes) => {
                    let _ = socket.write_all(&bytes).await;
                    self.wait_for_the_end(&mut socket).await;
                    return;
                }
                Act::InPieces(pieces) => {
                    for piece in pieces {
                        let _ = socket.write_all(&piece).await;
                        sleep(Duration::from_millis(5)).await;
                    }
                    let _ = socket.shutdown().await;
                    return;
                }
                Act::Endlessly(head, more, pause) => {
                    let mut sent = socket.write_all(&head).await;
                    while sent.is_ok() {
                        sent = socket.write_all(&more).await;
                        sleep(pause).await;
                    }
                    self.seen.lock().unwrap().disconnects += 1;
                    return;
                }
                Act::Reset(bytes) => {
                    let _ = socket.write_all(&bytes).await;
                    sleep(Duration::from_millis(20)).await;
                    let _ = socket.set_zero_linger();
                    return;
                }
            }
        }
    }

    async fn wait_for_the_end(&self, socket: &mut TcpStream) {
        let mut buffer = [0; 64];
        let end = timeout(Duration::from_secs(20), socket.read(&mut buffer)).await;
        if matches!(end, Ok(Ok(0) | Err(_))) {
            self.seen.lock().unwrap().disconnects += 1;
        }
    }
}

async fn read_request(socket: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = socket.read(&mut buffer).await.ok().filter(|read| *read > 0)?;
        request.extend_from_slice(&buffer[..read]);
        let Some(end) = request.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&request[..end]);
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().unwrap())
        });
        if request.len() - end - 4 >= length.unwrap_or(0) {
            return Some(String::from_utf8_lossy(&request).into_owned());
        }
    }
}

/// The head of an answer that ends when the connection does.
pub(crate) fn head(status: &str, headers: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-type: text/event-stream\r\n{headers}connection: close\r\n\r\n")
}

/// A whole answer with a length.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}
