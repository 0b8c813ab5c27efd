//! Conversations and calls on several nodes, without a node that they belong to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use quarterdeck_agents::text::{Address, ConfirmationReply, Message, Refusal, User};
use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{ChatMessage, Commit, CommitError, Row, Scan, Store, StoreError, Table};
use quarterdeck_runtime::{Client, SessionError};
use quarterdeck_store::MemoryStore;
use serde_json::json;

use crate::voice::harness::{VoiceHarness, model_said, run_until_idle, turn_complete, user_said};
use crate::world::{ModelStep, World, ann, call, event_lines, events, message, token};

async fn two_nodes() -> [World; 2] {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    [World::node(&store, "a").await, World::node(&store, "b").await]
}

/// What the user and the model have said, as the model was told last.
fn told(world: &World) -> Vec<String> {
    let said = |message: &ChatMessage| serde_json::to_string(message).unwrap();
    world.model.last_request().messages.iter().map(said).collect()
}

#[tokio::test]
async fn every_turn_of_a_conversation_may_be_on_another_node() {
    let [a, b] = two_nodes().await;
    for turn in 0..6 {
        let world = if turn % 2 == 0 { &a } else { &b };
        world.model.call_tools(vec![call(&format!("c{turn}"), "book", json!({ "what": turn.to_string() }))]);
        world.model.reply("Done.");
        let lines = world.send_and_collect(&format!("Message {turn}")).await;
        assert!(lines.contains("text \"Done.\""), "{lines}");
        let told = told(world).concat();
        for earlier in 0..=turn {
            assert!(told.contains(&format!("Message {earlier}")), "turn {turn} misses {earlier}: {told}");
        }
    }
    assert_eq!(a.runs("book") + b.runs("book"), 6);
}

#[tokio::test]
async fn a_message_is_answered_once_wherever_it_is_delivered_again() {
    let [a, b] = two_nodes().await;
    a.model.call_tools(vec![call("1", "book", json!({ "what": "x" }))]).reply("Done.");
    let again = || Message { id: Some("m1".into()), ..message("Book x") };
    let first =
        event_lines(a.agent.send_message(&ann(), Address::Chat("chat"), again()).await.unwrap()).await;
    let second =
        event_lines(b.agent.send_message(&ann(), Address::Chat("chat"), again()).await.unwrap()).await;
    assert_eq!(first, second);
    assert_eq!((a.runs("book"), b.runs("book")), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_conversation_in_which_a_turn_runs_is_held_by_its_node() {
    let [a, b] = two_nodes().await;
    a.model.then(ModelStep::Hang("I am thinking"));
    let mut reader = a.send("Think").await.unwrap();
    reader.next().await;
    let refused = b.send("And this?").await;
    let Err(Refusal::Session(SessionError::HeldElsewhere(holder))) = refused else { panic!("not held") };
    assert_eq!((holder.node.as_str(), holder.address.as_str()), ("a", "http://a.test"));
    // Its reader leaves, and the turn ends.
    drop(reader);
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    b.model.reply("Yes.");
    assert!(b.send_and_collect("And this?").await.contains("Yes."));
}

#[tokio::test]
async fn a_question_is_answered_where_it_was_asked_and_elsewhere_when_that_node_is_dead() {
    let [a, b] = two_nodes().await;
    a.model.call_tools(vec![call("1", "pay", json!({ "what": "a cake" }))]);
    let token = token(&events(a.send("Buy a cake").await.unwrap()).await);
    let decision = || vec![ConfirmationReply { token: token.clone(), is_approved: true }];
    let refused = b.agent.resolve_confirmations(&ann(), Address::Chat("chat"), decision()).await;
    assert!(matches!(refused, Err(Refusal::Session(SessionError::HeldElsewhere(_)))), "{:?}", refused.err());
    b.clock.advance(Duration::from_secs(9));
    b.orchestrator.renew_node().await.unwrap();
    b.clock.advance(Duration::from_secs(7));
    b.orchestrator.renew_node().await.unwrap();
    b.model.reply("Paid.");
    let reader = b.agent.resolve_confirmations(&ann(), Address::Chat("chat"), decision()).await.unwrap();
    assert!(event_lines(reader).await.contains("Paid."));
    // The node that asked has lost it, and does nothing.
    let late = a.agent.resolve_confirmations(&ann(), Address::Chat("chat"), decision()).await;
    assert!(late.is_err());
    assert_eq!((a.runs("pay"), b.runs("pay")), (0, 1));
}

/// A node pays, and is gone before it has said so in the conversation. The next one knows it from the record.
#[tokio::test]
async fn a_call_that_was_approved_and_done_is_not_said_to_be_open_or_undone() {
    let kept: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let behind = Arc::new(FullStore::new(kept.clone()));
    let of_a: Arc<dyn Store> = behind.clone();
    let (a, b) = (World::node(&of_a, "a").await, World::node(&kept, "b").await);
    a.model.call_tools(vec![call("1", "pay", json!({ "what": "a cake" }))]);
    let token = token(&events(a.send("Buy a cake").await.unwrap()).await);
    behind.has_no_history.store(true, Ordering::Relaxed);
    let decision = ConfirmationReply { token, is_approved: true };
    assert!(a.agent.resolve_confirmation(&ann(), &decision).await.unwrap().is_ok());

    b.clock.advance(Duration::from_secs(9));
    b.orchestrator.renew_node().await.unwrap();
    b.clock.advance(Duration::from_secs(7));
    b.orchestrator.renew_node().await.unwrap();
    let view = b.agent.view(&ann(), Address::Chat("chat")).await.unwrap().unwrap();
    let parts = format!("{:?}", view.turns.last().unwrap().parts);
    assert!(parts.contains("Success"), "{parts}");
    b.model.reply("It is paid.");
    b.send_and_collect("Well?").await;
    let told = told(&b).concat();
    assert!(!told.contains("not approved"), "{told}");
    assert_eq!((a.runs("pay"), b.runs("pay")), (1, 0));
}

/// Two nodes get a message at the same moment, again and again. Each of them is answered, or sent to the node that has it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_at_the_same_moment_never_make_two_turns_at_once() {
    let [a, b] = two_nodes().await;
    a.model.reply("Begun.");
    a.send_and_collect("Begin").await;
    let mut answered = 0;
    for round in 0..50 {
        let texts = [format!("A{round}"), format!("B{round}")];
        let send = async |world: &World, text: &str| match world.send(text).await {
            Ok(reader) => {
                assert!(event_lines(reader).await.contains("finished Some(Answered)"));
                1
            }
            Err(Refusal::Session(SessionError::HeldElsewhere(_) | SessionError::Lost) | Refusal::Busy) => 0,
            Err(other) => panic!("{other}"),
        };
        let (of_a, of_b) = tokio::join!(send(&a, &texts[0]), send(&b, &texts[1]));
        assert!(of_a + of_b >= 1, "none was answered");
        answered += of_a + of_b;
    }
    a.model.reply("End.");
    a.send_and_collect("End").await;
    let asked = told(&a).into_iter().filter(|message| message.contains("nothing planned")).count();
    assert_eq!(asked, answered, "each answered message is in the history, once");
}

/// Counts what is asked of a store.
struct CountingStore {
    kept: MemoryStore,
    commits: AtomicU64,
    queued: AtomicU64,
    reads: AtomicU64,
}

impl CountingStore {
    fn new() -> Arc<Self> {
        let zero = AtomicU64::default;
        Arc::new(Self { kept: MemoryStore::new(), commits: zero(), queued: zero(), reads: zero() })
    }
}

impl Store for CountingStore {
    fn get(&self, table: Table, key: &str) -> BoxFuture<Result<Option<Row>, StoreError>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.kept.get(table, key)
    }

    fn scan(&self, table: Table, scan: Scan) -> BoxFuture<Result<Vec<(String, Row)>, StoreError>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.kept.scan(table, scan)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<Result<u64, CommitError>> {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.kept.commit(commit)
    }

    fn queue(&self, commit: Commit) -> Result<(), StoreError> {
        self.queued.fetch_add(1, Ordering::Relaxed);
        self.kept.queue(commit)
    }

    fn flush(&self) -> BoxFuture<Result<(), StoreError>> {
        self.kept.flush()
    }

    fn sweep(&self, now_ms: u64) -> BoxFuture<Result<u64, StoreError>> {
        self.kept.sweep(now_ms)
    }
}

/// Shared by nodes, and refuses what is written when it is full, or what is written to the history alone.
struct FullStore {
    kept: Arc<dyn Store>,
    is_full: AtomicBool,
    has_no_history: AtomicBool,
}

impl FullStore {
    fn new(kept: Arc<dyn Store>) -> Self {
        Self { kept, is_full: AtomicBool::new(false), has_no_history: AtomicBool::new(false) }
    }
}

impl Store for FullStore {
    fn get(&self, table: Table, key: &str) -> BoxFuture<Result<Option<Row>, StoreError>> {
        self.kept.get(table, key)
    }

    fn scan(&self, table: Table, scan: Scan) -> BoxFuture<Result<Vec<(String, Row)>, StoreError>> {
        self.kept.scan(table, scan)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<Result<u64, CommitError>> {
        let is_history = commit.writes.iter().any(|write| write.table == Table::History);
        if self.is_full.load(Ordering::Relaxed) || is_history && self.has_no_history.load(Ordering::Relaxed) {
            return Box::pin(async { Err(StoreError::Unavailable("the disk is full".into()).into()) });
        }
        self.kept.commit(commit)
    }

    fn queue(&self, commit: Commit) -> Result<(), StoreError> {
        self.kept.queue(commit)
    }

    fn flush(&self) -> BoxFuture<Result<(), StoreError>> {
        self.kept.flush()
    }

    fn sweep(&self, now_ms: u64) -> BoxFuture<Result<u64, StoreError>> {
        self.kept.sweep(now_ms)
    }

    fn is_shared(&self) -> bool {
        true
    }
}

/// The next delivery of the message may be at another node, which would do it again.
#[tokio::test]
async fn a_message_that_cannot_be_stored_for_the_other_nodes_is_not_begun() {
    let full = Arc::new(FullStore::new(Arc::new(MemoryStore::new())));
    let store: Arc<dyn Store> = full.clone();
    let a = World::node(&store, "a").await;
    a.model.reply("Hello.");
    a.send_and_collect("Hello").await;
    full.is_full.store(true, Ordering::Relaxed);
    a.model.call_tools(vec![call("1", "book", json!({ "what": "x" }))]).reply("Done.");
    let refused = a.send("Book x").await;
    assert!(matches!(refused, Err(Refusal::Session(SessionError::Store(_)))), "{:?}", refused.err());
    assert_eq!((a.model.requests.lock().unwrap().len(), a.runs("book")), (1, 0));
    full.is_full.store(false, Ordering::Relaxed);
    assert!(a.send_and_collect("Book x").await.contains("Done."));
    assert_eq!(a.runs("book"), 1);
}

/// What ten turns with a look-up and a write cost on the same node: commits, queued commits, reads.
async fn cost_of_turns(world: &World, store: &CountingStore) -> [u64; 3] {
    world.model.reply("Hello.");
    world.send_and_collect("Hello").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let counts =
        || [&store.commits, &store.queued, &store.reads].map(|counter| counter.load(Ordering::Relaxed));
    let before = counts();
    for turn in 0..10 {
        let args = json!({ "what": turn.to_string() });
        world.model.call_tools(vec![
            call(&format!("l{turn}"), "look", args.clone()),
            call(&format!("b{turn}"), "book", args),
        ]);
        world.model.reply("Done.");
        world.send_and_collect("Next").await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let after = counts();
    [after[0] - before[0], after[1] - before[1], after[2] - before[2]]
}

#[tokio::test(start_paused = true)]
async fn a_turn_of_a_node_costs_no_commit_more_than_one_of_a_process_alone() {
    let (alone, shared) = (CountingStore::new(), CountingStore::new());
    let kept: Arc<dyn Store> = alone.clone();
    let alone = cost_of_turns(&World::on_store(&kept), &alone).await;
    let kept: Arc<dyn Store> = shared.clone();
    let node = World::node(&kept, "a").await;
    let shared = cost_of_turns(&node, &shared).await;
    assert_eq!(shared[0], alone[0], "commits");
    assert!(shared[1] <= alone[1], "queued: {shared:?} {alone:?}");
    // Whether another node has had the conversation is one row.
    assert_eq!(shared[2], alone[2] + 10, "reads");
}

#[tokio::test]
async fn a_first_message_and_its_session_are_stored_in_one_commit() {
    let counting = CountingStore::new();
    let store: Arc<dyn Store> = counting.clone();
    let world = World::on_store(&store);
    world.model.then(ModelStep::Hang("I am thinking"));
    let new = User { client: Client { is_new: true, ..ann().client }, ..ann() };
    let _reader = world.agent.send_message(&new, Address::New, message("Think")).await.unwrap();
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    assert_eq!((count(&counting.commits), count(&counting.reads)), (1, 0));
    let stored = |table| store.scan(table, Scan::prefix("", 10));
    let sessions = stored(Table::Sessions).await.unwrap();
    let row = sessions.iter().find(|(key, _)| key.starts_with("s/")).unwrap();
    assert_eq!((sessions.len(), &row.1.value["turn"]), (2, &json!(1)), "the session, and whose it is");
    assert_eq!(stored(Table::History).await.unwrap().len(), 2, "the turn, and its place in the list");
}

#[tokio::test]
async fn a_first_message_that_cannot_be_stored_leaves_no_session() {
    let full = Arc::new(FullStore::new(Arc::new(MemoryStore::new())));
    let store: Arc<dyn Store> = full.clone();
    let world = World::on_store(&store);
    full.is_full.store(true, Ordering::Relaxed);
    for address in [Address::New, Address::Chat("chat")] {
        let refused = world.agent.send_message(&ann(), address, message("Hello")).await;
        assert!(matches!(refused, Err(Refusal::Session(SessionError::Store(_)))), "{:?}", refused.err());
    }
    assert_eq!(store.scan(Table::Sessions, Scan::prefix("", 10)).await, Ok(Vec::new()));
    assert_eq!(world.model.requests.lock().unwrap().len(), 0);
    full.is_full.store(false, Ordering::Relaxed);
    world.model.reply("Hello.");
    assert!(world.send_and_collect("Hello").await.contains("Hello."));
}

#[tokio::test(start_paused = true)]
async fn a_call_goes_on_at_another_node_with_everything_that_was_said() {
    let base = VoiceHarness::new();
    let (a, b) = (base.node("a").await, base.node("b").await);
    let client = a.connect_client().await;
    a.model.send_all([user_said("One."), model_said("First."), turn_complete()]).await;
    let request = a.session().await;
    let refused = b.call(request.clone()).await;
    assert!(refused.received().contains("another server"), "{}", refused.received());
    let id = request.session_id.clone().unwrap();
    assert!(!b.agent.hand_over(&id).await, "it is not here");
    assert!(a.agent.hand_over(&id).await);
    run_until_idle().await;
    assert!(client.received().contains("closed: TakenOver"));
    let again = b.call(request).await;
    assert!(again.received().starts_with("ready fake/1 resumed=true\n"), "{}", again.received());
    let setup = format!("{:?}", b.model.setups()[0]);
    assert!(setup.contains("One.") && setup.contains("First."), "{setup}");
    assert_eq!((a.agent.active_calls(), b.agent.active_calls()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_node_does_not_answer_is_taken_over_at_once() {
    let base = VoiceHarness::new();
    let (a, b) = (base.node("a").await, base.node("b").await);
    let mut client = a.connect_client().await;
    a.model.send_all([user_said("One."), model_said("First."), turn_complete()]).await;
    run_until_idle().await;
    let mut request = a.session().await;
    request.dead_holder = b.orchestrator.holder(request.session_id.as_deref().unwrap()).await.unwrap();
    assert!(request.dead_holder.is_some());
    let again = b.call(request).await;
    assert!(again.received().starts_with("ready fake/1 resumed=true\n"), "{}", again.received());
    // The node that did not answer finds that out with the next thing that it stores, and lets its client go.
    a.model.send_all([tool_call("book")]).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(client.received().contains("closed"), "{}", client.received());
    assert_eq!((a.agent.active_calls(), a.runs("book")), (0, 0));
    assert_eq!(b.agent.active_calls(), 1);
    client.disconnect().await;
}

/// It was stopped while its client was away, and has the call in memory still.
#[tokio::test(start_paused = true)]
async fn a_node_that_was_stopped_does_not_go_on_with_a_call_that_another_has_continued() {
    let base = VoiceHarness::new();
    let (a, b) = (base.node("a").await, base.node("b").await);
    let mut client = a.connect_client().await;
    a.model.send_all([user_said("One."), model_said("First."), turn_complete()]).await;
    client.disconnect().await;
    run_until_idle().await;
    let mut request = a.session().await;
    let id = request.session_id.clone().unwrap();
    let to_a = request.clone();
    request.dead_holder = b.orchestrator.holder(&id).await.unwrap();
    assert!(b.call(request).await.received().starts_with("ready fake/1 resumed=true\n"));

    assert_eq!(a.agent.active_calls(), 1, "it waits for its client");
    a.clock.advance(Duration::from_secs(17));
    a.orchestrator.renew_node().await.unwrap();
    let refused = a.call(to_a).await;
    assert!(refused.received().contains("another server"), "{}", refused.received());
    assert_eq!((a.agent.active_calls(), b.agent.active_calls()), (0, 1));
}

fn tool_call(tool: &str) -> quarterdeck_contracts::LiveEvent<'static> {
    crate::voice::harness::tool_calls(&[("late-0000001", tool, json!({ "what": "late" }))])
}
