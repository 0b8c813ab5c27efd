//! Stands between a calendar and its server, and fails on demand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Passes everything on.
pub(crate) const UP: u8 = 0;
/// Passes the next `PUT` or `DELETE` on, and is gone before its answer comes back.
pub(crate) const LOSE_ANSWER: u8 = 1;
/// Is gone when the next `PUT` or `DELETE` arrives, which is not passed on.
pub(crate) const LOSE_REQUEST: u8 = 2;
/// Answers no one.
pub(crate) const DOWN: u8 = 3;

pub(crate) struct Proxy {
    port: u16,
    mode: Arc<AtomicU8>,
}

impl Proxy {
    pub(crate) async fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (own, mode) = (listener.local_addr().unwrap().port(), Arc::new(AtomicU8::new(UP)));
        let proxy = Self { port: own, mode: mode.clone() };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, port, mode.clone()));
            }
        });
        proxy
    }

    pub(crate) fn set(&self, mode: u8) {
        self.mode.store(mode, Ordering::SeqCst);
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

async fn pass(mut client: TcpStream, port: u16, mode: Arc<AtomicU8>) {
    if mode.load(Ordering::SeqCst) == DOWN {
        return;
    }
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await else { return };
    let (mut from_client, mut from_server) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    let mut is_write = false;
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => {
                let Ok(count @ 1..) = read else { return };
                let bytes = &from_client[..count];
                is_write |= bytes.starts_with(b"PUT") || bytes.starts_with(b"DELETE");
                match mode.load(Ordering::SeqCst) {
                    DOWN => return,
                    LOSE_REQUEST if is_write => return mode.store(DOWN, Ordering::SeqCst),
                    _ => {}
                }
                if server.write_all(bytes).await.is_err() { return }
            }
            read = server.read(&mut from_server) => {
                let Ok(count @ 1..) = read else { return };
                match mode.load(Ordering::SeqCst) {
                    DOWN => return,
                    LOSE_ANSWER if is_write => return mode.store(DOWN, Ordering::SeqCst),
                    _ => {}
                }
                if client.write_all(&from_server[..count]).await.is_err() { return }
            }
        }
    }
}
