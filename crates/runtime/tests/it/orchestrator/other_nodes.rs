//! What happens on one node is known on the others: at once when they are told, and soon when they are not.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{
    Change, Changes, Commit, CommitError, ConfirmationAnswer, Mode, Row, Scan, Store, StoreError, Table,
};
use quarterdeck_runtime::{
    Call, ClientEvent, Connection, Orchestrator, Reply, Session, TaskCancellation, TaskStatus,
    end_stored_session, topic,
};
use quarterdeck_store::MemoryStore;
use serde_json::json;
use tokio::task::JoinHandle;

use super::fixture::{EffectLog, Fixture, submit_one};

/// Longer than a poll takes to come.
const POLL: Duration = Duration::from_secs(11);

/// A store whose notifications reach no node.
pub(super) struct DeafStore(pub(super) Arc<dyn Store>);

impl Store for DeafStore {
    fn get(&self, table: Table, key: &str) -> BoxFuture<Result<Option<Row>, StoreError>> {
        self.0.get(table, key)
    }

    fn scan(&self, table: Table, scan: Scan) -> BoxFuture<Result<Vec<(String, Row)>, StoreError>> {
        self.0.scan(table, scan)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<Result<u64, CommitError>> {
        self.0.commit(commit)
    }

    fn queue(&self, commit: Commit) -> Result<(), StoreError> {
        self.0.queue(commit)
    }

    fn flush(&self) -> BoxFuture<Result<(), StoreError>> {
        self.0.flush()
    }

    fn sweep(&self, now_ms: u64) -> BoxFuture<Result<u64, StoreError>> {
        self.0.sweep(now_ms)
    }

    fn backup(&self, to: &Path) -> BoxFuture<Result<(), StoreError>> {
        self.0.backup(to)
    }

    fn notify(&self, change: Change) {
        drop(change);
    }

    fn watch(&self) -> Changes {
        Box::pin(futures_util::stream::pending())
    }
}

/// Two nodes that follow each other.
struct Pair {
    one: Fixture,
    two: Fixture,
    listeners: Vec<JoinHandle<()>>,
}

impl Pair {
    async fn start() -> Self {
        Self::on(Arc::new(MemoryStore::new())).await
    }

    /// Whose notifications are lost.
    async fn deaf() -> Self {
        Self::on(Arc::new(DeafStore(Arc::new(MemoryStore::new())))).await
    }

    async fn on(store: Arc<dyn Store>) -> Self {
        let effects = Arc::new(EffectLog::default());
        let [one, two] = ["one", "two"].map(|name| Fixture::node(store.clone(), effects.clone(), name));
        let mut listeners = Vec::new();
        for node in [&one, &two] {
            node.orchestrator.renew_node().await.unwrap();
            let orchestrator = node.orchestrator.clone();
            listeners.push(tokio::spawn(async move { orchestrator.follow_changes().await }));
        }
        // Until both listen, and have read what there is.
        tokio::time::sleep(Duration::from_millis(10)).await;
        Self { one, two, listeners }
    }

    fn missed(&self) -> u64 {
        let missed = |node: &Fixture| node.orchestrator.notification_health().unwrap().missed;
        missed(&self.one) + missed(&self.two)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.listeners.iter().for_each(JoinHandle::abort);
    }
}

/// Waits for what a notification leads to, without any time for a poll.
async fn soon(mut is_so: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("it did not happen at once");
}

async fn block(connection: &Connection) {
    assert!(submit_one(connection, Call::new("block", json!({ "what": "ann" }))).await.is_ok());
}

fn blocked_message(connection: &Connection) -> Option<String> {
    while let Some(event) = connection.try_next_event() {
        if let ClientEvent::Blocked { message } = event {
            return Some(message.to_string());
        }
    }
    None
}

fn is_active(session: &Session) -> bool {
    session.state().is_active
}

#[tokio::test(start_paused = true)]
async fn a_block_ends_the_clients_calls_and_stops_its_turns_on_other_nodes() {
    let pair = Pair::start().await;
    let (writing, making) = pair.one.open("ann", Mode::Text).await;
    let (calling, _heard) = pair.two.open("ann", Mode::Voice).await;
    let (reading, streaming) = pair.two.open("ann", Mode::Text).await;
    let (other, other_connection) = pair.two.open("bob", Mode::Voice).await;
    block(&making).await;
    soon(|| !is_active(&calling)).await;
    assert!(blocked_message(&streaming).is_some(), "the turn is told to stop");
    assert!(is_active(&reading) && is_active(&writing), "written conversations outlive a block");
    assert!(blocked_message(&making).is_none(), "the session that made it says farewell by itself");
    assert!(is_active(&other) && other_connection.try_next_event().is_none(), "others are not concerned");
    assert_eq!(pair.missed(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_without_notifications_learns_of_a_block_by_polling() {
    let pair = Pair::deaf().await;
    let (_writing, making) = pair.one.open("ann", Mode::Text).await;
    let (calling, _heard) = pair.two.open("ann", Mode::Voice).await;
    block(&making).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(is_active(&calling), "nothing has told it");
    tokio::time::sleep(POLL).await;
    assert!(!is_active(&calling));
    assert_eq!(pair.missed(), 1);
    // The next notification to itself is due, and this one has not come back.
    for node in [&pair.one, &pair.two] {
        assert!(node.orchestrator.notification_health().unwrap().is_deaf);
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_hears_itself_and_knows_how_long_that_takes() {
    let pair = Pair::start().await;
    let health = pair.one.orchestrator.notification_health().unwrap();
    assert_eq!((health.lag, health.is_deaf), (Some(Duration::ZERO), false));
    assert!(health.received[topic::NODE] >= 1);
    assert_eq!(Fixture::new().orchestrator.notification_health(), None);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_ended_by_an_operator_from_any_node() {
    for pair in [Pair::start().await, Pair::deaf().await] {
        let (session, connection) = pair.two.open("ann", Mode::Voice).await;
        session_is_held(&pair, session.id()).await;
        assert!(pair.one.orchestrator.end_session(session.id(), "ended_by_operator").await.unwrap());
        tokio::time::sleep(POLL).await;
        assert!(!is_active(&session));
        let end = connection.try_next_event();
        assert!(matches!(end, Some(ClientEvent::End(end)) if end.reason == "ended_by_operator"));
        let marks = pair.one.store.scan(Table::Sessions, Scan::prefix("e/", 10)).await.unwrap();
        assert_eq!(marks, [], "it was done");
        assert!(!pair.one.orchestrator.end_session(session.id(), "ended_by_operator").await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn the_holder_of_a_session_that_a_terminal_ended_cannot_bring_it_back() {
    let pair = Pair::start().await;
    let (session, connection) = pair.two.open("ann", Mode::Text).await;
    session_is_held(&pair, session.id()).await;
    assert!(end_stored_session(&*pair.one.store, session.id()).await.unwrap());
    // Its node may write the session's row before it is told.
    submit_one(&connection, Call::new("book", json!({ "what": "room" }))).await;
    pair.two.orchestrator.save_all();
    soon(|| !is_active(&session)).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let row = pair.one.store.get(Table::Sessions, &format!("s/{}", session.id())).await.unwrap().unwrap();
    assert_eq!(row.value["state"]["isActive"], false);
}

/// Where leases are not written yet, this one stands for it.
async fn session_is_held(pair: &Pair, id: &str) {
    if pair.one.store.get(Table::Leases, id).await.unwrap().is_none() {
        let lease = json!({ "node": "two", "boot": pair.two.orchestrator.node_boot(), "state": "held" });
        pair.one.store.commit(Commit::default().put(Table::Leases, id, lease)).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_here_gets_what_was_decided_elsewhere() {
    for pair in [Pair::start().await, Pair::deaf().await] {
        let (session, connection) = pair.one.open("ann", Mode::Text).await;
        let pay = Call::new("pay", json!({ "what": "rent" })).with_id("call_pay_01");
        let mut replies = connection.submit(vec![pay]).all().await;
        assert!(matches!(replies.remove(0), Reply::AwaitingConfirmation { .. }));
        let open = session_rows(&pair, session.id()).await;
        let denied = json!("denied");
        for (hash, row) in open {
            let mut value = row.value;
            value["status"] = denied.clone();
            pair.two.store.commit(Commit::default().put(Table::Confirmations, hash, value)).await.unwrap();
        }
        let change = Change { topic: topic::CONFIRMATION.into(), key: session.id().into() };
        pair.two.store.notify(change);
        tokio::time::sleep(POLL).await;
        let answer = connection.try_next_event();
        let mut events = vec![answer];
        while let Some(event) = connection.try_next_event() {
            events.push(Some(event));
        }
        let told = events
            .iter()
            .flatten()
            .any(|event| matches!(event, ClientEvent::Answer { answer, .. } if !answer.response.is_ok()));
        assert!(told, "{events:?}");
        assert_eq!(pair.one.effects.times("rent"), 0);
    }
}

async fn session_rows(pair: &Pair, session: &str) -> Vec<(String, Row)> {
    let rows = pair.one.store.scan(Table::Confirmations, Scan::prefix("", 10)).await.unwrap();
    rows.into_iter().filter(|(_, row)| row.value["sessionId"] == session).collect()
}

#[tokio::test(start_paused = true)]
async fn a_decision_is_told_to_the_other_nodes_when_its_outcome_is_there() {
    let pair = Pair::start().await;
    let (session, connection) = pair.one.open("ann", Mode::Text).await;
    connection.submit(vec![Call::new("pay", json!({ "what": "rent" }))]).all().await;
    let token = loop {
        if let Some(ClientEvent::Confirmation { request, .. }) = connection.try_next_event() {
            break request.token.unwrap().expose().to_owned();
        }
    };
    session.resolve_confirmation(&token, ConfirmationAnswer::Approve).await.mark_delivered();
    let heard =
        || pair.two.orchestrator.notification_health().unwrap().received.contains_key(topic::CONFIRMATION);
    soon(heard).await;
    assert_eq!(pair.one.effects.times("rent"), 1);
}

async fn task_on(node: &Orchestrator, id: &str) -> quarterdeck_runtime::TaskSummary {
    node.client_task("ann", id).await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_task_is_seen_and_its_end_waited_for_on_another_node() {
    let pair = Pair::start().await;
    let (_session, connection) = pair.one.open("ann", Mode::Text).await;
    let started = submit_one(&connection, Call::new("report", json!({ "what": "gated" }))).await;
    let id = started.meta.background_task_id.clone().unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let seen = task_on(&pair.two.orchestrator, &id).await;
    assert_eq!((seen.status, seen.progress.as_deref()), (TaskStatus::Running, Some("half of it")));
    assert_eq!(seen.partial, Some(json!({ "half": "gated" })));
    let listed = pair.two.orchestrator.all_tasks(10).await.unwrap().tasks;
    assert_eq!((listed.len(), listed[0].progress.as_deref()), (1, Some("half of it")));
    let (orchestrator, task) = (pair.two.orchestrator.clone(), id.clone());
    let waiting = tokio::spawn(async move { orchestrator.task_ended("ann", &task).await });
    tokio::task::yield_now().await;
    pair.one.effects.gate.notify_one();
    tokio::time::timeout(Duration::from_secs(1), waiting).await.expect("it is told").unwrap();
    assert_eq!(task_on(&pair.two.orchestrator, &id).await.status, TaskStatus::Done);
    let left = pair.one.store.scan(Table::Tasks, Scan::prefix("~", 10)).await.unwrap();
    assert_eq!(left, [], "nothing stays beside it");
}

#[tokio::test(start_paused = true)]
async fn a_task_is_stopped_from_another_node() {
    for pair in [Pair::start().await, Pair::deaf().await] {
        let (_session, connection) = pair.one.open("ann", Mode::Text).await;
        let started = submit_one(&connection, Call::new("report", json!({ "what": "listens" }))).await;
        let id = started.meta.background_task_id.clone().unwrap();
        let stopped = pair.two.orchestrator.cancel_task("ann", &id).await.unwrap();
        assert!(matches!(stopped, TaskCancellation::Requested(_)), "{stopped:?}");
        tokio::time::sleep(POLL).await;
        assert_eq!(task_on(&pair.two.orchestrator, &id).await.status, TaskStatus::Cancelled);
        assert_eq!(pair.one.effects.times("listens Stopped"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_part_that_follows_a_topic_hears_of_its_changes_and_of_gaps() {
    let fixture = Fixture::new();
    if fixture.store.is_shared() {
        // A server does not keep up with a clock that jumps.
        tokio::time::resume();
    }
    let (sender, mut heard) = tokio::sync::mpsc::unbounded_channel();
    fixture.orchestrator.on_change(topic::KNOWLEDGE, move |key| {
        let sender = sender.clone();
        Box::pin(async move { sender.send(key).unwrap() })
    });
    let orchestrator = fixture.orchestrator.clone();
    let listener = tokio::spawn(async move { orchestrator.follow_changes().await });
    assert_eq!(heard.recv().await.unwrap(), None, "what there was before is read first");
    fixture.store.notify(Change { topic: topic::KNOWLEDGE.into(), key: "7".into() });
    fixture.store.notify(Change { topic: topic::BLOCK.into(), key: "ann".into() });
    let mut changed = heard.recv().await.unwrap();
    // A server may not have been listened to yet. That there is a gap is heard when it is.
    while fixture.store.is_shared() && changed.is_none() {
        fixture.store.notify(Change { topic: topic::KNOWLEDGE.into(), key: "7".into() });
        changed = heard.recv().await.unwrap();
    }
    assert_eq!(changed, Some("7".into()));
    assert_eq!(heard.recv().await.unwrap(), None, "the next poll");
    listener.abort();
}
