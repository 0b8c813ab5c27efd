//! Many chats and calls at once.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::call::Call;
use crate::chat::Chat;
use crate::client::Surroundings;
use crate::journal::Journal;

/// How much a load is.
#[derive(Debug, Clone, Copy)]
pub struct LoadSize {
    pub chats: usize,
    pub calls: usize,
    /// How long each client thinks between two wishes, on average.
    pub think: Duration,
}

/// Clients that go on asking until the load is finished.
pub struct Load {
    of: Arc<Surroundings>,
    clients: JoinSet<()>,
}

impl Load {
    pub fn start(nodes: Vec<SocketAddr>, size: LoadSize) -> Self {
        let of = Surroundings::new(nodes, size.think);
        let mut clients = JoinSet::new();
        for index in 0..size.chats {
            let of = of.clone();
            clients.spawn(async move { Chat::new(of, index).await.run().await });
        }
        for index in 0..size.calls {
            let of = of.clone();
            clients.spawn(async move { Call::new(of, index).await.run().await });
        }
        Self { of, clients }
    }

    pub(crate) fn surroundings(&self) -> Arc<Surroundings> {
        self.of.clone()
    }

    pub fn journal(&self) -> &Journal {
        &self.of.journal
    }

    /// Waits until so many more asks have been answered: the site works again. Whether it did in time.
    pub async fn progresses(&self, answers: usize, within: Duration) -> bool {
        let wanted = self.of.journal.answered() + answers;
        let waiting = async {
            while self.of.journal.answered() < wanted {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(within, waiting).await.is_ok()
    }

    /// Lets every client finish what it has asked for.
    pub async fn finish(mut self) -> Arc<Surroundings> {
        self.of.is_over.store(true, Ordering::Relaxed);
        while let Some(ended) = self.clients.join_next().await {
            ended.unwrap();
        }
        self.of.clone()
    }
}
