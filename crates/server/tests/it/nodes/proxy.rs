//! A proxy in front of a node, which records what the others send it and can be cut.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    listener: Option<TcpListener>,
    /// What came in, by connection.
    received: Arc<Mutex<Vec<Vec<u8>>>>,
    running: Option<AbortHandle>,
    is_paused: Arc<AtomicBool>,
    to: Arc<Mutex<Option<SocketAddr>>>,
}

impl Proxy {
    pub(super) async fn bind() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Self {
            address,
            listener: Some(listener),
            received: Arc::default(),
            running: None,
            is_paused: Arc::default(),
            to: Arc::default(),
        }
    }

    /// Passes connections on from now on.
    pub(super) fn start(&mut self, to: SocketAddr) {
        let (listener, received) = (self.listener.take().unwrap(), self.received.clone());
        let (is_paused, target) = (self.is_paused.clone(), self.to.clone());
        self.redirect(to);
        let running = tokio::spawn(async move {
            // What runs in the set ends with it.
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                if is_paused.load(Ordering::SeqCst) {
                    connections.spawn(hold(stream));
                } else {
                    let to = target.lock().unwrap().unwrap();
                    connections.spawn(pass(stream, to, received.clone()));
                }
            }
        });
        self.running = Some(running.abort_handle());
    }

    /// Passes further connections to another process, as when one has taken the place of a node that was killed.
    pub(super) fn redirect(&self, to: SocketAddr) {
        *self.to.lock().unwrap() = Some(to);
    }

    /// Accepts further connections and answers none, as when the process is stopped.
    pub(super) fn pause(&self) {
        self.is_paused.store(true, Ordering::SeqCst);
    }

    /// Closes every connection and refuses new ones, as when the process is killed.
    pub(super) fn cut(&mut self) {
        self.running.take().unwrap().abort();
    }

    pub(super) fn received(&self) -> Vec<Vec<u8>> {
        self.received.lock().unwrap().clone()
    }
}

async fn hold(stream: TcpStream) {
    std::future::pending::<()>().await;
    drop(stream);
}

async fn pass(mut client: TcpStream, to: SocketAddr, received: Arc<Mutex<Vec<Vec<u8>>>>) {
    let mut server = TcpStream::connect(to).await.unwrap();
    let number = {
        let mut received = received.lock().unwrap();
        received.push(Vec::new());
        received.len() - 1
    };
    let (mut from_client, mut from_server) = ([0; 16 << 10], [0; 16 << 10]);
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => match read {
                Ok(0) | Err(_) => return,
                Ok(count) => {
                    received.lock().unwrap()[number].extend_from_slice(&from_client[..count]);
                    server.write_all(&from_client[..count]).await.unwrap();
                }
            },
            read = server.read(&mut from_server) => match read {
                Ok(0) | Err(_) => return,
                Ok(count) => client.write_all(&from_server[..count]).await.unwrap(),
            },
        }
    }
}
