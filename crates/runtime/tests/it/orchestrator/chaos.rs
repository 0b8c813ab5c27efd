//! Random histories of a session: frames, duplicates, cancellations, confirmations, disconnects, resumes and crashes, in
//! any order. Whatever happens, calls are answered once, writes run once, and budgets hold.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use proptest::prelude::{Strategy, any, prop, prop_oneof};
use proptest::strategy::Just;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use quarterdeck_contracts::{ConfirmationAnswer, ErrorType, Mode, Outcome, ToolResponse};
use quarterdeck_runtime::audit::{AuditLog, verify};
use quarterdeck_runtime::{
    Answer, Batch, Call, Client, ClientEvent, Connection, Orchestrator, Reply, RuntimeParts, Session,
    Snapshot,
};
use serde_json::json;

use super::crashing_store::{CrashPoint, CrashingStore};
use super::fixture::{EffectLog, ManualClock, Run, error_kind, snapshot};

/// Sequences in one run of one test; there are four of them.
const SEQUENCES: u32 = 2_500;

/// Stands among the runs for an answer that was delivered.
const DELIVERED: &str = "(delivered)";

/// Something that happens.
#[derive(Debug, Clone)]
enum Op {
    /// A message with calls.
    Frame(Vec<CallTemplate>),
    /// An earlier message again, with the same ids.
    Again(usize),
    /// The client reads one reply of an open batch.
    Read(usize),
    /// The client stops reading an open batch.
    Drop(usize),
    BeginTurn,
    Interrupt,
    Cancel(usize),
    Disconnect,
    Connect,
    /// The user decides, perhaps twice at once.
    Answer(usize, ConfirmationAnswer, bool),
    Wait(u64),
    /// The process dies here and now.
    Crash,
    /// The process will die in a commit.
    CrashInCommit(u32, bool),
}

#[derive(Debug, Clone)]
struct CallTemplate {
    tool: &'static str,
    what: u8,
    has_id: bool,
}

fn op() -> impl Strategy<Value = Op> {
    let tool = prop_oneof![
        4 => Just("book"), 3 => Just("slow_book"), 3 => Just("look"), 2 => Just("slow_look"), 3 => Just("pay"),
        1 => Just("count"), 1 => Just("hang_up"), 1 => Just("crash"), 1 => Just("no_such_tool"),
    ];
    let template =
        (tool, 0_u8..3, any::<bool>()).prop_map(|(tool, what, has_id)| CallTemplate { tool, what, has_id });
    let answer = prop_oneof![3 => Just(ConfirmationAnswer::Approve), 1 => Just(ConfirmationAnswer::Deny)];
    prop_oneof![
        8 => prop::collection::vec(template, 1..5).prop_map(Op::Frame),
        4 => any::<usize>().prop_map(Op::Again),
        6 => any::<usize>().prop_map(Op::Read),
        2 => any::<usize>().prop_map(Op::Drop),
        3 => Just(Op::BeginTurn),
        2 => Just(Op::Interrupt),
        2 => any::<usize>().prop_map(Op::Cancel),
        2 => Just(Op::Disconnect),
        2 => Just(Op::Connect),
        4 => (any::<usize>(), answer, any::<bool>()).prop_map(|(which, answer, twice)| Op::Answer(which, answer, twice)),
        4 => (0_u64..4_000).prop_map(Op::Wait),
        1 => Just(Op::Crash),
        1 => (0_u32..4, any::<bool>()).prop_map(|(after, applied)| Op::CrashInCommit(after, applied)),
    ]
}

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
    /// The turn in which each process resumed the session.
    resumed_in: BTreeMap<u32, u64>,
    folder: Option<tempfile::TempDir>,
}

/// One process.
struct Process {
    session: Session,
    connection: Option<Connection>,
    batches: Vec<(Batch, usize)>,
    _orchestrator: Orchestrator,
}

fn run(test: u8) {
    let effects = Arc::new(EffectLog::default());
    let snapshot = snapshot(&effects);
    let config = Config { cases: SEQUENCES, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[test; 32]));
    let told = Cell::new(0_u32);
    let restarts = (prop::collection::vec(op(), 1..30), any::<bool>());
    let result = runner.run(&restarts, |(ops, is_voice)| {
        let number = told.get() + 1;
        told.set(number);
        let mut scenario = Scenario {
            prefix: format!("{test}-{number}"),
            mode: if is_voice { Mode::Voice } else { Mode::Text },
            effects: effects.clone(),
            store: CrashingStore::new(),
            clock: ManualClock::new(),
            snapshot: snapshot.clone(),
            session: None,
            frames: Vec::new(),
            ids: 0,
            tokens: Vec::new(),
            approvals: BTreeMap::new(),
            delivered: BTreeMap::new(),
            crashes: 0,
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
                Arc::new(AuditLog::open(&path, "test", self.store.clone()).await.unwrap())
            }
        };
        let orchestrator = Orchestrator::new(RuntimeParts {
            clock: self.clock.clone(),
            audit,
            ..RuntimeParts::new(self.store.clone())
        });
        let client = Client::anonymous("ann");
        let session = match &self.session {
            None => orchestrator.open(client, self.mode, self.snapshot.clone()).await.unwrap(),
            Some(id) => orchestrator.resume(id, client, self.snapshot.clone()).await.unwrap(),
        };
        if self.session.is_none() {
            session.begin_turn(None);
        }
        if self.session.is_some() {
            self.resumed_in.insert(self.effects.restarts.load(Ordering::Relaxed), session.turn());
        }
        self.session = Some(session.id().to_owned());
        let connection = Some(session.connect());
        Process { session, connection, batches: Vec::new(), _orchestrator: orchestrator }
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

    async fn check_audit_log(&self) {
        if let Some(folder) = &self.folder {
            let verification =
                verify(&folder.path().join("audit.jsonl"), "test", &*self.store).await.unwrap();
            assert_eq!(verification.fault, None);
            assert!(verification.lines > 0);
        }
    }

    fn check(&self) {
        let runs = std::mem::take(&mut *self.effects.runs.lock().unwrap());
        let ours: Vec<_> =
            runs.iter().filter(|run| run.what.starts_with(&format!("{}/", self.prefix))).collect();
        check_writes(&ours);
        self.check_budgets(&ours);
        self.check_confirmations(&ours);
        // An answer is given for the first time once; a crash may lose the receipt.
        for (call, times) in &self.delivered {
            assert!(*times <= 1 + self.crashes, "{call:?} was answered {times} times");
        }
    }

    fn check_budgets(&self, ours: &[&Run]) {
        // Budgets hold in every turn. What the user approves was counted when it was requested.
        let (calls, retrieval) = if self.mode == Mode::Voice { (3, 2) } else { (10, 5) };
        let mut per_turn: BTreeMap<(u32, u64), (u32, u32)> = BTreeMap::new();
        let mut counted = BTreeSet::new();
        for run in ours.iter().filter(|run| !matches!(run.tool, "pay" | "hang_up" | DELIVERED)) {
            // A call whose rows were changed by another is run again on what is there; it is one call.
            if run.tool == "count" && !counted.insert((run.process, run.turn, &run.what)) {
                continue;
            }
            let counts = per_turn.entry((run.process, run.turn)).or_default();
            counts.0 += 1;
            counts.1 += u32::from(run.tool == "look");
        }
        assert!(per_turn.values().all(|counts| counts.0 <= calls && counts.1 <= retrieval), "{per_turn:?}");
        // A turn that was cut by a crash gets no second budget.
        assert!(
            self.resumed_in.iter().all(|(process, turn)| !per_turn.contains_key(&(*process, *turn))),
            "{per_turn:?}"
        );
    }

    fn check_confirmations(&self, ours: &[&Run]) {
        // A confirmed call runs at most once for each request.
        let mut asked: BTreeMap<&str, u32> = BTreeMap::new();
        for (_, what) in &self.tokens {
            *asked.entry(what).or_default() += 1;
        }
        let mut paid: BTreeMap<&str, u32> = BTreeMap::new();
        for run in ours.iter().filter(|run| run.tool == "pay") {
            *paid.entry(&run.what).or_default() += 1;
        }
        assert!(
            paid.iter().all(|(what, times)| times <= asked.get(what).unwrap_or(&0)),
            "{paid:?} {asked:?}"
        );
        assert!(self.approvals.values().all(|times| *times <= 1), "a token was redeemed twice");
    }
}

fn check_writes(ours: &[&Run]) {
    // No write runs twice in a turn, whatever is delivered twice.
    let mut seen = BTreeSet::new();
    for run in ours.iter().filter(|run| matches!(run.tool, "book" | "slow_book")) {
        assert!(seen.insert((run.tool, &run.what, run.turn)), "{} ran twice in turn {}", run.what, run.turn);
    }
    // A write is not repeated in a later turn while its answer was not delivered.
    for (place, run) in ours.iter().enumerate().filter(|(_, run)| matches!(run.tool, "book" | "slow_book")) {
        let before = ours[..place].iter().rposition(|other| other.tool == run.tool && other.what == run.what);
        let is_delivered = |other: &&&Run| other.tool == DELIVERED && run.what.starts_with(&other.what);
        assert!(
            before.is_none_or(|before| ours[before..place].iter().any(|other| is_delivered(&other))),
            "{} was repeated before it was delivered",
            run.what
        );
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
