//! A line between a store and its server that can be cut at the worst moment.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::Notify;

/// What happens to the next commits, one after the other; later ones pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It never reaches the server, and the line is cut.
    LoseRequest,
    /// The server answers, and the line is cut before the answer is through.
    LoseAnswer,
    /// It stays on the way until it is released; the line stays open.
    Hold,
}

pub(crate) struct Proxy {
    port: u16,
    state: Arc<State>,
    runtime: Runtime,
}

#[derive(Default)]
struct State {
    faults: Mutex<Vec<Fault>>,
    release: Notify,
    /// Told when a commit that was held is done.
    done: Notify,
}

impl Proxy {
    pub(crate) fn start(server_port: u16) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let state = Arc::new(State::default());
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = state.clone();
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let state = shared.clone();
                tokio::spawn(async move {
                    if let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)).await {
                        pass(client, server, &state).await;
                    }
                });
            }
        });
        Self { port, state, runtime }
    }

    /// An address of the server, through this.
    pub(crate) fn url(&self, url: &str, server_port: u16) -> String {
        url.replace(&format!(":{server_port}/"), &format!(":{}/", self.port))
    }

    pub(crate) fn plan(&self, faults: &[Fault]) {
        *self.state.faults.lock().unwrap() = faults.to_vec();
    }

    /// How many are still to come.
    pub(crate) fn planned(&self) -> usize {
        self.state.faults.lock().unwrap().len()
    }

    /// Lets the commit that is held go on to the server, and waits for the server's answer.
    pub(crate) fn release(&self) {
        self.state.release.notify_one();
        self.runtime.block_on(self.state.done.notified());
    }
}

async fn pass(mut client: TcpStream, mut server: TcpStream, state: &State) {
    let (mut request, mut answer) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        tokio::select! {
            read = client.read(&mut request) => {
                let Ok(length @ 1..) = read else { return };
                let fault = if is_commit(&request[..length]) { next(state) } else { None };
                match fault {
                    None => {
                        if server.write_all(&request[..length]).await.is_err() { return }
                    }
                    Some(Fault::LoseRequest) => return,
                    Some(Fault::LoseAnswer) => {
                        server.write_all(&request[..length]).await.unwrap();
                        // The answer is there, so it has committed.
                        assert!(server.read(&mut answer).await.unwrap() > 0);
                        return;
                    }
                    Some(Fault::Hold) => {
                        state.release.notified().await;
                        server.write_all(&request[..length]).await.unwrap();
                        let answered = server.read(&mut answer).await;
                        state.done.notify_one();
                        assert!(answered.unwrap() > 0);
                        return;
                    }
                }
            }
            read = server.read(&mut answer) => {
                let Ok(length @ 1..) = read else { return };
                if client.write_all(&answer[..length]).await.is_err() { return }
            }
        }
    }
}

fn next(state: &State) -> Option<Fault> {
    let mut faults = state.faults.lock().unwrap();
    if faults.is_empty() { None } else { Some(faults.remove(0)) }
}

fn is_commit(bytes: &[u8]) -> bool {
    bytes.windows(10).any(|window| window == b"qd.commit(")
}
