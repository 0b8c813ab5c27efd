//! Random histories of a session: frames, duplicates, cancellations, confirmations, disconnects, resumes and crashes, in
//! any order, and a second node that takes the session over or is given it. Whatever happens, calls are answered once,
//! writes run once, and budgets hold.

mod check;
mod op;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use proptest::prelude::{Strategy, any, prop};
use proptest::strategy::BoxedStrategy;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use quarterdeck_contracts::{ConfirmationAnswer, ErrorType, Mode, Outcome, ToolResponse};
use quarterdeck_runtime::audit::AuditLog;
use quarterdeck_runtime::{
    Answer, Batch, Call, Client, ClientEvent, Clock, Connection, NodeParts, Orchestrator, Reply,
    RuntimeParts, Session, Snapshot,
};
use quarterdeck_testkit::new_store;
use serde_json::json;

use self::op::{CallTemplate, Op, op, op_of_nodes};
use super::crashing_store::{CrashPoint, CrashingStore};
use super::fixture::{EffectLog, ManualClock, Run, error_kind, snapshot};

/// Sequences in one run of one test; there are four of them.
const SEQUENCES: u32 = 2_500;
/// The same of several nodes; there are eight of them.
const SEQUENCES_OF_NODES: u32 = 1_250;

/// Stands among the runs for an answer that was delivered.
const DELIVERED: &str = "(delivered)";

/// What the driver remembers across restarts.
struct Scenario {
    prefix: String,
    mode: Mode,
    effects: Arc<EffectLog>,
    store: Arc<CrashingStore>,
    clock: Arc<ManualClock>,
    snapshot: Arc<Snapshot>,
    session: Option<String>,
    frames: Vec<Vec<Call>>,
    ids: u32,
    /// Tokens that were shown, with what they were shown for.
    tokens: Vec<(String, String)>,
    approvals: BTreeMap<String, u32>,
    /// Answers that were delivered, by tool, what and turn.
    delivered: BTreeMap<(String, String), u32>,
    crashes: u32,
    /// How many nodes there have been; `None` for a process that is alone on its store.
    nodes: Option<u32>,
    /// Whether the session may have been given away and not taken since: then a crash costs no budget.
    is_released: bool,
    /// Whether a node has lived on without its session.
    has_zombies: bool,
    /// The turn in which each process resumed the session.
    resumed_in: BTreeMap<u32, u64>,
    folder: Option<tempfile::TempDir>,
}

/// One process.
struct Process {
    session: Session,
    connection: Option<Connection>,
    batches: Vec<(Batch, usize)>,
    orchestrator: Orchestrator,
    /// Processes that have lost their session and go on all the same.
    zombies: Vec<Process>,
}

/// Time passes for sessions, and no node is ever slow to renew its row: what is played here is not that.
struct PunctualClock(Arc<ManualClock>);

impl Clock for PunctualClock {
    fn now(&self) -> SystemTime {
        self.0.now()
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }

    fn uptime(&self) -> Duration {
        Duration::ZERO
    }
}

fn run(test: u8) {
    run_with(test, SEQUENCES, None, &op().boxed());
}

fn run_nodes(test: u8) {
    run_with(test, SEQUENCES_OF_NODES, Some(0), &op_of_nodes().boxed());
}

fn run_with(test: u8, cases: u32, nodes: Option<u32>, op: &BoxedStrategy<Op>) {
    let effects = Arc::new(EffectLog::default());
    let snapshot = snapshot(&effects);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[test; 32]));
    let told = Cell::new(0_u32);
    // A database is for all lives of a test: to make one takes longer than a life does.
    let database = Some(new_store()).filter(|store| store.is_shared());
    let restarts = (prop::collection::vec(op.clone(), 1..30), any::<bool>());
    let result = runner.run(&restarts, |(ops, is_voice)| {
        let number = told.get() + 1;
        told.set(number);
        let mut scenario = Scenario {
            prefix: format!("{test}-{number}"),
            mode: if is_voice { Mode::Voice } else { Mode::Text },
            effects: effects.clone(),
            store: CrashingStore::new(database.clone().unwrap_or_else(new_store)),
            clock: ManualClock::new(),
            snapshot: snapshot.clone(),
            session: None,
            frames: Vec::new(),
            ids: 0,
            tokens: Vec::new(),
            approvals: BTreeMap::new(),
            delivered: BTreeMap::new(),
            crashes: 0,
            nodes,
            is_released: false,
            has_zombies: false,
            resumed_in: BTreeMap::new(),
            // An audit log on disk takes time, so every tenth scenario has one.
            folder: number.is_multiple_of(10).then(|| tempfile::tempdir().unwrap()),
        };
        scenario.play(&ops);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[test]
fn whatever_happens_calls_are_answered_once_and_writes_run_once_1() {
    run(1);
}

#[test]
fn whatever_happens_calls_are_answered_once_and_writes_run_once_2() {
    run(2);
}

#[test]
fn whatever_happens_calls_are_answered_once_and_writes_run_once_3() {
    run(3);
}

#[test]
fn whatever_happens_calls_are_answered_once_and_writes_run_once_4() {
    run(4);
}

#[test]
fn whatever_happens_between_nodes_calls_are_answered_once_and_writes_run_once_1() {
    run_nodes(11);
}

#[test]
fn whatever_happens_between_nodes_calls_are_answered_once_and_writes_run_once_2() {
    run_nodes(12);
}

#[test]
fn whatever_happens_between_nodes_calls_are_answered_once_and_writes_run_once_3() {
    run_nodes(13);
}

#[test]
fn whatever_happens_between_nodes_calls_are_answered_once_and_writes_run_once_4() {
    run_nodes(14);
}

#[test]
fn whatever_happens_between_nodes_calls_are_answered_once_and_writes_run_once_5() {
    run_nodes(15);
}

#[test]
fn whatever_happens_between_nodes_calls_are_answered_once_and_writes_run_once_6() {
    run_nodes(16);
}

#[test]
fn whatever_happens_between_nodes_calls_are_answered_once_and_writes_run_once_7() {
    run_nodes(17);
}

#[test]
fn whatever_happens_between_nodes_calls_are_answered_once_and_writes_run_once_8() {
    run_nodes(18);
}

impl Scenario {
    fn play(&mut self, ops: &[Op]) {
        let mut rest = ops;
        loop {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .start_paused(true)
                .build()
                .unwrap();
            let done = runtime.block_on(async {
                let died = self.store.clone();
                tokio::select! {
                    biased;
                    done = self.run_process(rest) => done,
                    () = died.died.notified() => None,
                }
            });
            // Every task of the process dies with its runtime.
            drop(runtime);
            self.store.lose_queue();
            match done {
                Some(None) => break,
                Some(Some(left)) => rest = &rest[rest.len() - left..],
                // it died somewhere in a commit, and how far it came is not known, so it goes on with what is left.
                None => rest = &rest[rest.len().min(1)..],
            }
            self.crashes += 1;
            self.effects.restarts.fetch_add(1, Ordering::Relaxed);
        }
        self.check();
    }

    /// One process. `None` when the scenario is over, or how many operations are left after a crash.
    async fn run_process(&mut self, ops: &[Op]) -> Option<Option<usize>> {
        let mut process = self.start().await;
        for (index, op) in ops.iter().enumerate() {
            if matches!(op, Op::Crash) {
                return Some(Some(ops.len() - index - 1));
            }
            self.act(&mut process, op).await;
        }
        self.store.lose_plan();
        self.finish(process).await;
        Some(None)
    }

    async fn start(&mut self) -> Process {
        let audit: Arc<dyn quarterdeck_runtime::audit::AuditSink> = match &self.folder {
            None => Arc::new(quarterdeck_runtime::audit::NoAudit),
            Some(folder) => {
                let path = folder.path().join("audit.jsonl");
                Arc::new(AuditLog::open(&path, &self.chain(), self.store.clone()).await.unwrap())
            }
        };
        let orchestrator = self.process(audit);
        let client = self.client();
        let session = match &self.session {
            None => orchestrator.open(client, self.mode, self.snapshot.clone()).await.unwrap(),
            Some(id) => orchestrator.resume(id, client, self.snapshot.clone()).await.unwrap(),
        };
        session.hold().await.unwrap();
        if self.session.is_none() {
            session.begin_turn(None);
        }
        if self.session.is_some() && !std::mem::take(&mut self.is_released) {
            self.resumed_in.insert(self.effects.restarts.load(Ordering::Relaxed), session.turn());
        }
        self.session = Some(session.id().to_owned());
        let connection = Some(session.connect());
        Process { session, connection, batches: Vec::new(), orchestrator, zombies: Vec::new() }
    }

    /// A client that no other life has, as all may be in one store.
    fn client(&self) -> Client {
        Client::anonymous(format!("ann-{}", self.prefix))
    }

    fn chain(&self) -> String {
        format!("test-{}", self.prefix)
    }

    /// A process; where there are nodes, one that the others do not know, so that its sessions are anyone's.
    fn process(&mut self, audit: Arc<dyn quarterdeck_runtime::audit::AuditSink>) -> Orchestrator {
        let node = self.nodes.as_mut().map(|count| {
            *count += 1;
            let name = format!("{}-node{count}", self.prefix);
            NodeParts { address: format!("http://{name}.test"), name }
        });
        let clock: Arc<dyn Clock> = match &node {
            Some(_) => Arc::new(PunctualClock(self.clock.clone())),
            None => self.clock.clone(),
        };
        Orchestrator::new(RuntimeParts { clock, audit, node, ..RuntimeParts::new(self.store.clone()) })
    }

    /// Another node continues the session. The one that had it lives on, with everything that runs in it.
    async fn move_on(&mut self, process: &mut Process, is_clean: bool) {
        if is_clean {
            // The client goes with its session, and reads nothing here any more.
            process.batches.clear();
            process.connection = None;
            // The process may die within, and what goes on now may end, and the session be free, later.
            self.is_released = true;
            if !process.session.release().await.unwrap() {
                return;
            }
        }
        let orchestrator = self.process(Arc::new(quarterdeck_runtime::audit::NoAudit));
        let client = self.client();
        let resumed = orchestrator.resume(process.session.id(), client, self.snapshot.clone()).await;
        // It may have ended.
        let Ok(session) = resumed else { return };
        session.hold().await.unwrap();
        self.is_released = false;
        if !is_clean {
            // What it was about to deliver may come twice, as after a crash.
            self.crashes += 1;
            self.has_zombies = true;
        }
        let connection = (is_clean || process.connection.is_some()).then(|| session.connect());
        let zombies = std::mem::take(&mut process.zombies);
        let next = Process { session, connection, batches: Vec::new(), orchestrator, zombies };
        let zombie = std::mem::replace(process, next);
        process.zombies.push(zombie);
    }

    async fn act(&mut self, process: &mut Process, op: &Op) {
        match op {
            Op::Frame(template) => {
                let calls: Vec<_> = template.iter().map(|template| self.call(template)).collect();
                self.frames.push(calls.clone());
                self.submit(process, calls);
            }
            Op::Again(which) => {
                if let Some(calls) = pick(&self.frames, *which) {
                    let calls = calls.clone();
                    self.submit(process, calls);
                }
            }
            Op::Read(which) if !process.batches.is_empty() => {
                let place = which % process.batches.len();
                let (batch, left) = &mut process.batches[place];
                let next = tokio::time::timeout(Duration::from_millis(500), batch.next()).await;
                if let Ok(reply) = next {
                    *left -= 1;
                    let reply = reply.expect("as many replies as calls");
                    if *left == 0 {
                        assert!(batch.next().await.is_none(), "not one more");
                        drop(process.batches.swap_remove(place));
                    }
                    self.deliver_reply(reply);
                }
            }
            Op::Drop(which) if !process.batches.is_empty() => {
                let place = which % process.batches.len();
                drop(process.batches.swap_remove(place));
            }
            Op::BeginTurn => {
                for answer in process.session.begin_turn(None).answers {
                    self.deliver(answer);
                }
            }
            Op::Interrupt => process.session.interrupt(),
            Op::Cancel(which) => {
                if let Some(id) = pick(&self.frames, *which).and_then(|calls| calls[0].id.clone()) {
                    process.session.cancel(&[&id]);
                }
            }
            Op::Disconnect => {
                process.batches.clear();
                process.connection = None;
            }
            Op::Connect => process.connection = Some(process.session.connect()),
            Op::Answer(which, answer, twice) => self.answer(process, *which, *answer, *twice).await,
            Op::Wait(ms) => {
                tokio::time::sleep(Duration::from_millis(*ms)).await;
                self.clock.advance(Duration::from_millis(*ms));
            }
            Op::TakeOver => self.move_on(process, false).await,
            Op::HandOver => self.move_on(process, true).await,
            Op::CrashInCommit(after, applied) => {
                self.store.die(CrashPoint { after: *after, applied: *applied });
            }
            Op::Read(_) | Op::Drop(_) | Op::Crash => {}
        }
        self.read_events(process);
    }

    fn call(&mut self, template: &CallTemplate) -> Call {
        let what = format!("{}/{}/{}", self.prefix, template.tool, template.what);
        let call = Call::new(template.tool, json!({ "what": what }));
        if !template.has_id {
            return call;
        }
        self.ids += 1;
        call.with_id(format!("provider_{:05}", self.ids))
    }

    fn submit(&mut self, process: &mut Process, calls: Vec<Call>) {
        let Some(connection) = &process.connection else { return };
        let count = calls.len();
        process.batches.push((connection.submit(calls), count));
    }

    async fn answer(&mut self, process: &Process, which: usize, answer: ConfirmationAnswer, twice: bool) {
        let Some((token, what)) = pick(&self.tokens, which).cloned() else { return };
        let answers = if twice {
            let (a, b) = tokio::join!(
                process.session.resolve_confirmation(&token, answer),
                process.session.resolve_confirmation(&token, answer)
            );
            vec![a, b]
        } else {
            vec![process.session.resolve_confirmation(&token, answer).await]
        };
        for answer in answers {
            if answer.response.is_ok() && answer.response.meta.idempotent_cache_hit.is_none() {
                *self.approvals.entry(token.clone()).or_default() += 1;
                let Outcome::Success(data) = &answer.response.outcome else { unreachable!() };
                assert_eq!(data["did"], json!(what), "only what was shown");
            }
            self.deliver(answer);
        }
    }

    fn read_events(&mut self, process: &Process) {
        while let Some(event) = process.connection.as_ref().and_then(Connection::try_next_event) {
            match event {
                ClientEvent::Confirmation { request, .. } => {
                    let token = request.token.expect("the user gets the token").expose().to_owned();
                    let what = request.args["what"].as_str().unwrap().to_owned();
                    if !self.tokens.iter().any(|(known, _)| *known == token) {
                        self.tokens.push((token, what));
                    }
                }
                ClientEvent::Answer { answer, .. } => self.deliver(answer),
                _ => {}
            }
        }
    }

    fn deliver_reply(&mut self, reply: Reply) {
        match reply {
            Reply::Answer(answer) => self.deliver(answer),
            Reply::AwaitingConfirmation { request, .. } => assert_eq!(request.token, None),
        }
    }

    fn deliver(&mut self, answer: Answer) {
        let response = answer.response.clone();
        assert!(!json!(*response).to_string().contains("qdc_"), "nothing that a model can see has a token");
        if answer.is_wanted && is_first(&response) {
            *self.delivered.entry((answer.call_id.to_string(), answer.name.to_string())).or_default() += 1;
        }
        if answer.is_wanted {
            self.note_delivery(&answer);
            answer.mark_delivered();
        }
    }

    /// Notes among the runs that an answer was delivered: from here on an equal write of a later turn is a new one.
    fn note_delivery(&self, answer: &Answer) {
        let what = match &answer.response.outcome {
            Outcome::Success(data) => data["did"].as_str().unwrap_or_default().to_owned(),
            // What it was about is not in the answer; it may have been any of the tool's.
            Outcome::Failure(_) => format!("{}/{}", self.prefix, answer.name),
        };
        self.effects.runs.lock().unwrap().push(Run { tool: DELIVERED, what, turn: 0, process: 0 });
    }

    /// Everything comes to rest: every reply is there, and what was not delivered is handed over.
    async fn finish(&mut self, mut process: Process) {
        for zombie in std::mem::take(&mut process.zombies) {
            self.finish_zombie(zombie).await;
        }
        for (mut batch, left) in std::mem::take(&mut process.batches) {
            for _ in 0..left {
                let next = tokio::time::timeout(Duration::from_secs(120), batch.next()).await;
                let reply = next.expect("every call is answered").expect("as many replies as calls");
                self.deliver_reply(reply);
            }
            assert!(batch.next().await.is_none());
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        process.connection = Some(process.session.connect());
        self.read_events(&process);
        let again = process.session.connect();
        assert!(
            std::iter::from_fn(|| again.try_next_event())
                .all(|event| !matches!(event, ClientEvent::Answer { .. })),
            "what was handed over is not handed over again"
        );
        drop(again);
        drop(process);
        self.check_audit_log().await;
    }

    /// What runs in a process that has lost its session comes to an end as well, and every call of it is answered.
    async fn finish_zombie(&mut self, zombie: Process) {
        for (mut batch, left) in zombie.batches {
            for _ in 0..left {
                let next = tokio::time::timeout(Duration::from_secs(120), batch.next()).await;
                let reply = next.expect("every call is answered").expect("as many replies as calls");
                self.deliver_reply(reply);
            }
            assert!(batch.next().await.is_none());
        }
        let held = zombie.orchestrator.holder(zombie.session.id()).await;
        assert!(held.is_ok());
    }
}

/// Whether an answer is a handler's own, given for the first time.
fn is_first(response: &Arc<ToolResponse>) -> bool {
    response.meta.idempotent_cache_hit.is_none()
        && !matches!(
            error_kind(response),
            Some(
                // The first gates judge a redelivered call anew, and in the same way.
                ErrorType::NotFound
                    | ErrorType::Cancelled
                    | ErrorType::ConfirmationRequired
                    | ErrorType::ConfirmationInvalid
                    | ErrorType::ConfirmationExpired
            )
        )
}

fn pick<T>(list: &[T], which: usize) -> Option<&T> {
    if list.is_empty() { None } else { list.get(which % list.len()) }
}
