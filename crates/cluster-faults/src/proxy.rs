//! A proxy between a node and its database that can lose what a network loses: new connections, all connections, everything
//! that is sent, time, and the answer to a commit at the very moment at which it is committed.

mod wire;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use self::wire::{Answers, Requests};

/// What happens to the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weather {
    /// Everything gets through.
    #[default]
    Fair,
    /// Everything gets through, this much later.
    Slow(Duration),
    /// Nothing gets through, and no side learns of it.
    Swallow,
    /// Connections are refused.
    Closed,
}

/// Where a commit is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The server never gets it.
    Before,
    /// The server gets it, and the line is gone while it works.
    During,
    /// It is committed, and its answer is lost.
    After,
}

pub struct Proxy {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    server: Mutex<SocketAddr>,
    weather: watch::Sender<Weather>,
    /// Grows with every cut of all lines.
    epoch: watch::Sender<u64>,
    /// How many of the next commits are cut off, and where.
    cuts: Mutex<(usize, Option<Cut>)>,
    /// How many commits were cut off.
    done: AtomicU64,
}

impl Proxy {
    /// In front of a server on this machine.
    pub async fn start(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            server: Mutex::new(SocketAddr::from(([127, 0, 0, 1], port))),
            weather: watch::channel(Weather::Fair).0,
            epoch: watch::channel(0).0,
            cuts: Mutex::new((0, None)),
            done: AtomicU64::new(0),
        });
        let accepting = tokio::spawn(accept(listener, shared.clone()));
        Self { address, shared, accepting }
    }

    pub fn set_weather(&self, weather: Weather) {
        self.shared.weather.send_replace(weather);
    }

    /// Ends every connection at once.
    pub fn cut_all(&self) {
        self.shared.epoch.send_modify(|epoch| *epoch += 1);
    }

    /// Cuts off the next commits, whichever connection they come on.
    pub fn cut_commits(&self, count: usize, cut: Cut) {
        *self.shared.cuts.lock().unwrap() = (count, Some(cut));
    }

    /// How many commits it has cut off so far.
    pub fn commits_cut(&self) -> u64 {
        self.shared.done.load(Ordering::Relaxed)
    }

    /// Leads to another server from now on, and ends every connection to the old one.
    pub fn lead_to(&self, port: u16) {
        *self.shared.server.lock().unwrap() = SocketAddr::from(([127, 0, 0, 1], port));
        self.cut_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    fn take_cut(&self) -> Option<Cut> {
        let mut cuts = self.cuts.lock().unwrap();
        if cuts.0 == 0 {
            return None;
        }
        cuts.0 -= 1;
        self.done.fetch_add(1, Ordering::Relaxed);
        cuts.1
    }

    /// Waits as long as the weather wants it.
    async fn pass(&self) {
        let mut weather = self.weather.subscribe();
        let now = *weather.borrow_and_update();
        match now {
            Weather::Fair | Weather::Closed => {}
            Weather::Slow(delay) => tokio::time::sleep(delay).await,
            Weather::Swallow => drop(weather.wait_for(|weather| *weather != Weather::Swallow).await),
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut lines = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        while lines.try_join_next().is_some() {}
        if *shared.weather.borrow() == Weather::Closed {
            continue;
        }
        let shared = shared.clone();
        lines.spawn(async move {
            let server = *shared.server.lock().unwrap();
            let Ok(server) = TcpStream::connect(server).await else { return };
            drop((client.set_nodelay(true), server.set_nodelay(true)));
            let mut epoch = shared.epoch.subscribe();
            tokio::select! {
                _ = epoch.changed() => {}
                () = relay(client, server, &shared) => {}
            }
        });
    }
}

/// Both ways, until a side ends or the line is cut.
async fn relay(client: TcpStream, server: TcpStream, shared: &Shared) {
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // Set when the server is working on a commit whose answer must not arrive.
    let (armed, is_armed) = watch::channel(false);
    tokio::select! {
        () = forward(from_client, to_server, shared, armed) => {}
        () = back(from_server, to_client, shared, is_armed) => {}
    }
}

async fn forward(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    shared: &Shared,
    armed: watch::Sender<bool>,
) {
    let mut requests = Requests::default();
    let mut piece = vec![0; 32 << 10];
    while let Some(bytes) = read(&mut from, &mut piece).await {
        shared.pass().await;
        let has_commit = requests.take(bytes);
        match has_commit.then(|| shared.take_cut()).flatten() {
            Some(Cut::Before) => return,
            Some(Cut::During) => {
                drop(to.write_all(bytes).await);
                return;
            }
            Some(Cut::After) => drop(armed.send_replace(true)),
            None => {}
        }
        if to.write_all(bytes).await.is_err() {
            return;
        }
    }
}

async fn back(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    shared: &Shared,
    armed: watch::Receiver<bool>,
) {
    let mut answers = Answers::default();
    let mut piece = vec![0; 32 << 10];
    while let Some(bytes) = read(&mut from, &mut piece).await {
        let is_ready = answers.take(bytes);
        if *armed.borrow() {
            // Nothing of the answer is passed on; the server is ready again, so the commit is done.
            if is_ready {
                return;
            }
            continue;
        }
        shared.pass().await;
        if to.write_all(bytes).await.is_err() {
            return;
        }
    }
}

async fn read<'a>(from: &mut OwnedReadHalf, piece: &'a mut [u8]) -> Option<&'a [u8]> {
    let count = from.read(piece).await.ok().filter(|count| *count > 0)?;
    Some(&piece[..count])
}
