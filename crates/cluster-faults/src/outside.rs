//! The world outside: a service that the tools write to. It knows nothing of sessions or leases, does what it is asked,
//! and numbers it, so that what really happened can be counted.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::http;

/// Something that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// What the client asked for, in its own words.
    pub key: String,
    /// The session that the tool ran in.
    pub session: String,
    /// Counted from 1: what the client is given as a proof.
    pub receipt: u64,
}

/// A service with a list of everything that it has done.
pub struct Outside {
    pub address: SocketAddr,
    effects: Arc<Mutex<Vec<Effect>>>,
    delay: Arc<Mutex<Duration>>,
    serving: JoinHandle<()>,
}

impl Outside {
    pub async fn start() -> Self {
        let effects = Arc::new(Mutex::new(Vec::new()));
        let delay = Arc::new(Mutex::new(Duration::from_millis(20)));
        let (kept, wait) = (effects.clone(), delay.clone());
        let (address, serving) = http::serve(move |body| {
            let (kept, wait) = (kept.clone(), wait.clone());
            async move {
                let receipt = do_it(&kept, &body);
                // It is done; its answer takes a while. That is when a crash hurts.
                let pause = *wait.lock().unwrap();
                tokio::time::sleep(pause).await;
                http::Answer::json(&json!({ "receipt": receipt }))
            }
        })
        .await;
        Self { address, effects, delay, serving }
    }

    /// How long its answers take after the thing is done.
    pub fn set_delay(&self, delay: Duration) {
        *self.delay.lock().unwrap() = delay;
    }

    pub fn effects(&self) -> Vec<Effect> {
        self.effects.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.effects.lock().unwrap().len()
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn do_it(effects: &Mutex<Vec<Effect>>, body: &[u8]) -> u64 {
    let asked: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| asked[name].as_str().unwrap_or_default().to_owned();
    let mut effects = effects.lock().unwrap();
    let receipt = effects.len() as u64 + 1;
    effects.push(Effect { key: text("key"), session: text("session"), receipt });
    receipt
}
