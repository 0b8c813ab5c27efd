//! Decides which messages of a server are read: those within the limits, the answers that are waited for, and of all others
//! no more than a client can use.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::{ClientJsonRpcMessage, ClientNotification, RequestId, ServerJsonRpcMessage};

use super::counters::Counters;
use super::message::{self, MessageKind, MessageLimits, Outline, Refusal};

/// Notifications that are read in one go, and each second after it. Progress is for people, who read one line a second.
const NOTIFICATION_RATE: Rate = Rate { burst: 200, per_second: 100 };
/// Requests of the server that are answered in one go, and each second after it.
const REQUEST_RATE: Rate = Rate { burst: 20, per_second: 10 };
/// A server that is read as fast as it can write holds a core. It is let wait after this many ignored messages.
const IGNORED_PER_PAUSE: u64 = 1_000;
const PAUSE: Duration = Duration::from_millis(5);

/// The messages of one connection.
pub(crate) struct Inbound {
    limits: MessageLimits,
    counters: Arc<Counters>,
    state: Mutex<InboundState>,
}

struct InboundState {
    awaited: HashSet<RequestId>,
    notifications: TokenBucket,
    requests: TokenBucket,
    ignored: u64,
}

/// What became of a message.
#[derive(Debug)]
pub(crate) enum Reading {
    /// It is handled.
    Message(ServerJsonRpcMessage),
    /// It answers a call, and is not read. This is what the call gets.
    Refused(ServerJsonRpcMessage),
    /// Nothing waits for it.
    Ignored,
}

impl Inbound {
    pub(crate) fn new(limits: MessageLimits, counters: Arc<Counters>) -> Self {
        let now = Instant::now();
        let state = InboundState {
            awaited: HashSet::new(),
            notifications: TokenBucket::new(NOTIFICATION_RATE, now),
            requests: TokenBucket::new(REQUEST_RATE, now),
            ignored: 0,
        };
        Self { limits, counters, state: Mutex::new(state) }
    }

    pub(crate) fn limits(&self) -> MessageLimits {
        self.limits
    }

    /// Notes what a message to the server is about: an answer is awaited, or is not awaited any more.
    pub(crate) fn expect_answer(&self, message: &ClientJsonRpcMessage) {
        match message {
            ClientJsonRpcMessage::Request(request) => {
                self.lock().awaited.insert(request.id.clone());
            }
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.forget(id);
                }
            }
            ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => {}
        }
    }

    /// No answer to this is awaited any more.
    pub(crate) fn forget(&self, id: &RequestId) {
        self.lock().awaited.remove(id);
    }

    /// Reads a message.
    pub(crate) fn read(&self, bytes: &[u8]) -> Reading {
        if bytes.len() > self.limits.bytes {
            return self.read_oversized(message::find_id(bytes));
        }
        let outline = Outline::of(bytes);
        if !self.is_wanted(&outline) {
            return Reading::Ignored;
        }
        match message::parse(bytes, &outline, self.limits) {
            Ok(message) => Reading::Message(message),
            Err(why) => self.refuse(why, outline.answers().cloned()),
        }
    }

    /// Reads a message of which only the id is at hand.
    pub(crate) fn read_oversized(&self, answers: Option<RequestId>) -> Reading {
        let answers = answers.filter(|id| self.lock().awaited.remove(id));
        self.refuse(Refusal::TooLarge, answers)
    }

    /// Waits a moment now and then while a server sends what is ignored.
    pub(crate) async fn slow_down(&self) {
        let is_time = self.lock().ignored.is_multiple_of(IGNORED_PER_PAUSE);
        match is_time {
            true => tokio::time::sleep(PAUSE).await,
            false => tokio::task::coop::consume_budget().await,
        }
    }

    /// Whether such a message is waited for. An answer is taken once, and only under the very id that was sent.
    fn is_wanted(&self, outline: &Outline) -> bool {
        let mut state = self.lock();
        let is_wanted = match outline.kind() {
            MessageKind::Notification => state.notifications.take(Instant::now()),
            MessageKind::Request => state.requests.take(Instant::now()),
            MessageKind::Answer => outline.answers().is_some_and(|id| state.awaited.remove(id)),
        };
        if !is_wanted {
            state.ignored += 1;
            self.counters.count_ignored_message();
        }
        is_wanted
    }

    fn refuse(&self, why: Refusal, answers: Option<RequestId>) -> Reading {
        self.counters.count_refused_message();
        tracing::debug!(%why, "message of an upstream server refused");
        match answers {
            Some(id) => Reading::Refused(why.to_answer(id)),
            None => {
                self.lock().ignored += 1;
                Reading::Ignored
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, InboundState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        Self::new(MessageLimits { bytes: 1_000, depth: 16 }, Arc::default())
    }
}

#[derive(Debug, Clone, Copy)]
struct Rate {
    burst: u32,
    per_second: u32,
}

/// Lets through a burst, and then a steady rate.
struct TokenBucket {
    rate: Rate,
    tokens: f64,
    since: Instant,
}

impl TokenBucket {
    fn new(rate: Rate, now: Instant) -> Self {
        Self { rate, tokens: rate.burst.into(), since: now }
    }

    fn take(&mut self, now: Instant) -> bool {
        let elapsed = now.saturating_duration_since(self.since).as_secs_f64();
        self.since = now;
        self.tokens = (self.tokens + elapsed * f64::from(self.rate.per_second)).min(self.rate.burst.into());
        let is_full = self.tokens >= 1.0;
        if is_full {
            self.tokens -= 1.0;
        }
        is_full
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn inbound_that_awaits(ids: &[i64]) -> Inbound {
        let inbound = Inbound::for_tests();
        for id in ids {
            let request = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" });
            inbound.expect_answer(&serde_json::from_value(request).unwrap());
        }
        inbound
    }

    fn answer(id: serde_json::Value) -> Vec<u8> {
        json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [] } }).to_string().into_bytes()
    }

    fn is_read(inbound: &Inbound, bytes: &[u8]) -> bool {
        matches!(inbound.read(bytes), Reading::Message(_))
    }

    #[test]
    fn an_answer_is_taken_once_and_under_its_own_id() {
        let inbound = inbound_that_awaits(&[5, 6]);
        for forged in [json!(4), json!(7), json!("5"), json!(-5), json!(null), json!(5.5), json!({ "a": 5 })]
        {
            assert!(!is_read(&inbound, &answer(forged.clone())), "{forged}");
        }
        assert!(is_read(&inbound, &answer(json!(6))), "answers come in any order");
        assert!(is_read(&inbound, &answer(json!(5))));
        assert!(!is_read(&inbound, &answer(json!(5))), "twice");
        assert_eq!(inbound.counters.ignored_messages(), 8);
    }

    #[test]
    fn an_answer_to_a_cancelled_call_is_ignored() {
        let inbound = inbound_that_awaits(&[5]);
        let cancelled =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 5 } });
        inbound.expect_answer(&serde_json::from_value(cancelled).unwrap());
        assert!(!is_read(&inbound, &answer(json!(5))));
    }

    #[test]
    fn a_refused_answer_answers_its_call_at_once() {
        let inbound = inbound_that_awaits(&[5, 6]);
        let deep = format!(r#"{{"id":5,"result":{}{}}}"#, "[".repeat(99), "]".repeat(99));
        let Reading::Refused(ServerJsonRpcMessage::Error(error)) = inbound.read(deep.as_bytes()) else {
            panic!("the call waits")
        };
        assert_eq!(error.id, Some(RequestId::Number(5)));
        let long = format!(r#"{{"id":6,"result":"{}"}}"#, "x".repeat(2_000));
        assert!(matches!(inbound.read(long.as_bytes()), Reading::Refused(_)));
        assert!(matches!(inbound.read(long.as_bytes()), Reading::Ignored), "no call waits for it any more");
    }

    #[test]
    fn a_flood_of_notifications_does_not_hold_up_the_answer() {
        let inbound = inbound_that_awaits(&[5]);
        let note = br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        let read = (0..100_000).filter(|_| is_read(&inbound, note)).count();
        assert!((200..20_000).contains(&read), "{read}");
        assert!(is_read(&inbound, &answer(json!(5))));
    }

    #[test]
    fn a_bucket_lets_through_a_burst_and_then_a_rate() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(Rate { burst: 3, per_second: 2 }, start);
        let taken = |bucket: &mut TokenBucket, at: u64| {
            (0..10).filter(|_| bucket.take(start + Duration::from_secs(at))).count()
        };
        assert_eq!(taken(&mut bucket, 0), 3);
        assert_eq!(taken(&mut bucket, 1), 2);
        assert_eq!(taken(&mut bucket, 60), 3, "never more than the burst");
    }
}
