//! Tells another program of alarms, by HTTP. Messages are signed as the Standard Webhooks specification says, so that
//! its libraries verify them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use base64_simd::STANDARD;
use quarterdeck_alerts::{AlarmChange, AlarmMessenger, MessageCounts};
use quarterdeck_runtime::{Clock, SystemClock};
use reqwest::redirect::Policy;
use ring::hmac;
use serde_json::json;
use tokio::sync::Notify;

/// How many messages may wait. Beyond that the oldest is given up: the newest says what is the case.
const MAX_WAITING: usize = 200;
/// How long the other side may take.
const TIMEOUT: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(300);
/// How often one message is tried: for some 40 minutes.
const MAX_ATTEMPTS: u32 = 15;
/// What the library's secrets begin with; the rest is base64.
const SECRET_PREFIX: &str = "whsec_";

/// Where alarms are sent.
#[derive(Clone)]
pub(crate) struct WebhookSettings {
    pub(crate) url: String,
    /// What messages are signed with: `whsec_` and base64, or any text.
    pub(crate) secret: String,
    /// Names the server in messages.
    pub(crate) server: String,
}

/// Sends changes of alarms, in order, each until it is taken or given up.
pub(crate) struct Webhook {
    settings: WebhookSettings,
    client: reqwest::Client,
    waiting: Mutex<VecDeque<Message>>,
    changed: Notify,
    delivered: AtomicU64,
    failed: AtomicU64,
    given_up: AtomicU64,
}

#[derive(Debug, Clone, PartialEq)]
struct Message {
    /// The same with each attempt, so that the other side can leave out what it has.
    id: String,
    body: String,
}

impl Webhook {
    /// Fails where no TLS client can be made.
    pub(crate) fn new(settings: WebhookSettings) -> Result<Self, reqwest::Error> {
        // A redirect would take the message somewhere that the operator has not named.
        let client = reqwest::Client::builder().timeout(TIMEOUT).redirect(Policy::none()).build()?;
        Ok(Self {
            settings,
            client,
            waiting: Mutex::default(),
            changed: Notify::new(),
            delivered: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            given_up: AtomicU64::new(0),
        })
    }

    /// Sends what waits, without end.
    pub(crate) async fn run(&self) {
        loop {
            let first = self.lock().front().cloned();
            match first {
                Some(message) => self.deliver(&message).await,
                None => self.changed.notified().await,
            }
        }
    }

    /// Tries one message until it is taken, or there is no more point in it.
    async fn deliver(&self, message: &Message) {
        for attempt in 0..MAX_ATTEMPTS {
            match self.post(message).await {
                Ok(()) => {
                    self.delivered.fetch_add(1, Ordering::Relaxed);
                    return self.remove(message);
                }
                Err(reason) => {
                    self.failed.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(message = %message.id, attempt = attempt + 1, %reason, "alarm was not taken by the webhook");
                }
            }
            tokio::time::sleep(pause(attempt)).await;
            // It had to make room for newer ones.
            if self.lock().front() != Some(message) {
                return;
            }
        }
        tracing::error!(message = %message.id, "alarm was given up: the webhook does not take it");
        self.given_up.fetch_add(1, Ordering::Relaxed);
        self.remove(message);
    }

    async fn post(&self, message: &Message) -> Result<(), String> {
        let now = SystemClock.now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let signature = sign(&self.settings.secret, &message.id, now, &message.body);
        let request = self
            .client
            .post(&self.settings.url)
            .header("content-type", "application/json")
            .header("webhook-id", &message.id)
            .header("webhook-timestamp", now)
            .header("webhook-signature", signature)
            .body(message.body.clone());
        match request.send().await {
            Ok(response) if response.status().is_success() => Ok(()),
            Ok(response) => Err(format!("status {}", response.status().as_u16())),
            // Without the address, which may have a secret in it.
            Err(error) => Err(error.without_url().to_string()),
        }
    }

    fn remove(&self, message: &Message) {
        let mut waiting = self.lock();
        if waiting.front() == Some(message) {
            waiting.pop_front();
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Message>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AlarmMessenger for Webhook {
    fn send(&self, change: &AlarmChange) {
        let body = json!({ "type": format!("alarm.{}", change.event.as_str()), "server": self.settings.server, "alarm": change.alarm });
        let message = Message { id: message_id(), body: body.to_string() };
        let mut waiting = self.lock();
        if waiting.len() >= MAX_WAITING {
            waiting.pop_front();
            self.given_up.fetch_add(1, Ordering::Relaxed);
        }
        waiting.push_back(message);
        drop(waiting);
        self.changed.notify_one();
    }

    fn counts(&self) -> MessageCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        MessageCounts {
            delivered: count(&self.delivered),
            failed: count(&self.failed),
            given_up: count(&self.given_up),
            waiting: self.lock().len() as u64,
        }
    }
}

/// The `webhook-signature` of a message.
fn sign(secret: &str, id: &str, timestamp: u64, body: &str) -> String {
    let decoded = secret.strip_prefix(SECRET_PREFIX).and_then(|text| STANDARD.decode_to_vec(text).ok());
    let key = decoded.unwrap_or_else(|| secret.as_bytes().to_vec());
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let tag = hmac::sign(&key, format!("{id}.{timestamp}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode_to_string(tag.as_ref()))
}

/// Twice as long each time, and up to a quarter more, so that servers do not come back all at once.
fn pause(attempt: u32) -> Duration {
    let pause = FIRST_PAUSE.saturating_mul(1 << attempt.min(16)).min(MAX_PAUSE);
    let mut random = [0; 1];
    // Without randomness it is a little less spread.
    let _ = getrandom::fill(&mut random);
    pause + pause * u32::from(random[0]) / 1_024
}

fn message_id() -> String {
    let mut random = [0; 12];
    // An id is only for telling messages apart.
    let _ = getrandom::fill(&mut random);
    let hex: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("msg_{hex}")
}

#[cfg(test)]
mod tests;
