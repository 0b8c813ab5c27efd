//! What chats and calls have in common: which node is asked, who asks, and when to give up.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::journal::Journal;

/// How long a client goes on asking about one thing before it counts as not answered.
pub(crate) const ASK_TIMEOUT: Duration = Duration::from_secs(120);
/// How long it waits before it asks again.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);

/// What all clients of a load share.
pub struct Surroundings {
    pub nodes: Vec<SocketAddr>,
    pub journal: Journal,
    pub http: reqwest::Client,
    /// Whether no client should begin anything new.
    pub is_over: AtomicBool,
    /// The pause of each client between two things, in milliseconds: half of it to one and a half.
    pub think_ms: AtomicU64,
}

impl Surroundings {
    pub fn new(nodes: Vec<SocketAddr>, think: Duration) -> Arc<Self> {
        let http =
            reqwest::Client::builder().connect_timeout(Duration::from_secs(2)).no_proxy().build().unwrap();
        Arc::new(Self {
            nodes,
            journal: Journal::default(),
            http,
            is_over: AtomicBool::new(false),
            think_ms: AtomicU64::new(think.as_millis() as u64),
        })
    }

    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// A client's own dice, the same in every run.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    /// Any of them, as a load balancer without memory would choose.
    pub(crate) fn node(&mut self, of: &Surroundings) -> SocketAddr {
        of.nodes[self.below(of.nodes.len())]
    }

    pub(crate) async fn think(&mut self, of: &Surroundings) {
        let mean = of.think_ms.load(Ordering::Relaxed) as usize;
        tokio::time::sleep(Duration::from_millis((mean / 2 + self.below(mean.max(1))) as u64)).await;
    }
}

/// The cookie of a new client, from any node that answers.
pub(crate) async fn new_cookie(of: &Surroundings, dice: &mut Dice) -> String {
    loop {
        let url = format!("http://{}/api/me", dice.node(of));
        let request = of.http.get(url).timeout(Duration::from_secs(5));
        if let Ok(answer) = request.send().await
            && let Some(cookie) = answer.headers().get("set-cookie")
        {
            let cookie = cookie.to_str().unwrap();
            return cookie.split(';').next().unwrap_or_default().to_owned();
        }
        tokio::time::sleep(PAUSE).await;
    }
}
