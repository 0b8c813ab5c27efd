//! Calls that go on in the background.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::{Strategy, any, prop};
use proptest::test_runner::{Config, TestRunner};
use proptest::{prop_assert, prop_assert_eq};
use quarterdeck_contracts::{ConfirmationAnswer, ErrorType, Mode, Outcome, Scan, Store, Table, ToolResponse};
use quarterdeck_runtime::{
    Call, Client, ClientEvent, Connection, DeliveryReason, Orchestrator, PendingEnd, Policy, RuntimeParts,
    Session, Snapshot, TaskCancellation, TaskStatus, TaskSummary, list_stored_tasks,
};
use quarterdeck_store::MemoryStore;
use serde_json::{Value, json};

use super::crashing_store::{CrashPoint, CrashingStore};
use super::fixture::{EffectLog, Fixture, error_kind, snapshot, submit_one};

fn call(tool: &str, what: &str) -> Call {
    Call::new(tool, json!({ "what": what }))
}

fn task_id(response: &Arc<ToolResponse>) -> String {
    response.meta.background_task_id.clone().expect("the call goes on in the background")
}

fn data(response: &ToolResponse) -> &Value {
    match &response.outcome {
        Outcome::Success(data) => data,
        Outcome::Failure(error) => panic!("{error:?}"),
    }
}

/// The task, once it has ended.
async fn ended(fixture: &Fixture, client: &str, id: &str) -> TaskSummary {
    loop {
        let task = fixture.orchestrator.client_task(client, id).await.unwrap().unwrap();
        if task.status != TaskStatus::Running {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The notes of a new turn, which is stored as an agent stores it.
async fn notes_of_next_turn(fixture: &Fixture, session: &Session) -> Vec<String> {
    let start = session.begin_turn(None);
    fixture.store.commit(start.told).await.unwrap();
    start.notes
}

fn ended_tasks(connection: &Connection) -> Vec<Arc<ToolResponse>> {
    let mut found = Vec::new();
    while let Some(event) = connection.try_next_event() {
        if let ClientEvent::Answer { reason: DeliveryReason::TaskEnded, answer } = event {
            found.push(answer.response.clone());
        }
    }
    found
}

#[tokio::test(start_paused = true)]
async fn a_background_call_is_answered_at_once_and_its_outcome_is_told_once() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let answer = submit_one(&connection, call("report", "gated")).await;
    let id = task_id(&answer);
    assert_eq!(
        (&data(&answer)["status"], &data(&answer)["backgroundTaskId"]),
        (&json!("running"), &json!(id))
    );
    tokio::task::yield_now().await;
    let listed = fixture.orchestrator.client_tasks("ann").await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].status, listed[0].progress.as_deref()), (TaskStatus::Running, Some("half of it")));
    assert_eq!(listed[0].partial, Some(json!({ "half": "gated" })));
    assert!(
        fixture.orchestrator.client_tasks("bob").await.unwrap().is_empty(),
        "another client sees nothing"
    );

    fixture.effects.gate.notify_one();
    let task = ended(&fixture, "ann", &id).await;
    assert_eq!(task.status, TaskStatus::Done);
    assert_eq!(data(task.response.as_ref().unwrap()), &json!({ "did": "gated" }));
    let told = ended_tasks(&connection);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].meta.background_task_id.as_deref(), Some(&*id));

    let notes = notes_of_next_turn(&fixture, &session).await;
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(
        notes[0].contains(&id) && notes[0].contains("is done") && notes[0].contains("gated"),
        "{notes:?}"
    );
    assert!(notes_of_next_turn(&fixture, &session).await.is_empty());
    assert_eq!(fixture.effects.times("gated"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_outlives_the_connection_that_began_it() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let id = task_id(&submit_one(&connection, call("report", "gated")).await);
    drop(connection);
    session.interrupt();
    fixture.effects.gate.notify_one();
    assert_eq!(ended(&fixture, "ann", &id).await.status, TaskStatus::Done);
    assert_eq!(ended_tasks(&session.connect()).len(), 1, "the next connection is told");
}

#[tokio::test(start_paused = true)]
async fn a_call_becomes_a_task_only_when_it_takes_long() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let quick = submit_one(&connection, call("survey", "quick")).await;
    assert_eq!((data(&quick), &quick.meta.background_task_id), (&json!({ "did": "quick" }), &None));
    assert!(fixture.orchestrator.client_tasks("ann").await.unwrap().is_empty());

    for tool in ["survey", "survey_look"] {
        let slow = submit_one(&connection, call(tool, "seconds 5")).await;
        let id = task_id(&slow);
        assert_eq!(ended(&fixture, "ann", &id).await.status, TaskStatus::Done, "{tool}");
    }
    let notes = notes_of_next_turn(&fixture, &session).await;
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert_eq!(fixture.effects.times("seconds 5 begun"), 2);
}

#[tokio::test(start_paused = true)]
async fn an_interruption_stops_a_call_that_is_not_a_task_yet() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let batch = connection.submit(vec![call("survey_look", "seconds 5")]);
    tokio::task::yield_now().await;
    session.interrupt();
    let answer = batch.all().await.remove(0).into_answer().unwrap();
    assert_eq!(error_kind(&answer.response), Some(ErrorType::Cancelled));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(fixture.effects.times("seconds 5"), 0);
    assert!(fixture.orchestrator.client_tasks("ann").await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_stops_within_a_second_whether_it_listens_or_not() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    for (what, message) in [("listens", "cancelled"), ("deaf", "did nothing")] {
        let id = task_id(&submit_one(&connection, call("report", what)).await);
        tokio::task::yield_now().await;
        assert_eq!(fixture.orchestrator.cancel_task("bob", &id).await.unwrap(), TaskCancellation::NotFound);
        let began = tokio::time::Instant::now();
        let cancelled = fixture.orchestrator.cancel_task("ann", &id).await.unwrap();
        assert!(matches!(cancelled, TaskCancellation::Requested(_)), "{cancelled:?}");
        let task = ended(&fixture, "ann", &id).await;
        assert!(began.elapsed() < Duration::from_secs(1), "{what} took {:?}", began.elapsed());
        assert_eq!(task.status, TaskStatus::Cancelled);
        let Outcome::Failure(error) = task.response.unwrap().outcome else { panic!("{what}") };
        assert!(error.message.contains(message), "{what}: {}", error.message);
        let again = fixture.orchestrator.cancel_task("ann", &id).await.unwrap();
        assert!(matches!(again, TaskCancellation::Ended(_)), "{again:?}");
    }
    assert_eq!(fixture.effects.times("listens Stopped"), 1);
    let notes = notes_of_next_turn(&fixture, &session).await;
    assert_eq!(notes.iter().filter(|note| note.contains("was cancelled")).count(), 2, "{notes:?}");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_aborts_its_tasks() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    let id = task_id(&submit_one(&connection, call("report", "listens")).await);
    tokio::task::yield_now().await;
    session.end(PendingEnd::with_reason("user_requested")).await;
    assert_eq!(ended(&fixture, "ann", &id).await.status, TaskStatus::Cancelled);
    assert_eq!(fixture.effects.times("listens SessionEnded"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_keeps_its_session_from_ending_by_itself() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    let id = task_id(&submit_one(&connection, call("report", "gated")).await);
    drop(connection);
    fixture.clock.advance(Duration::from_secs(40 * 60));
    fixture.orchestrator.sweep().await.unwrap();
    assert!(session.state().is_active);
    fixture.effects.gate.notify_one();
    ended(&fixture, "ann", &id).await;
    fixture.clock.advance(Duration::from_secs(40 * 60));
    fixture.orchestrator.sweep().await.unwrap();
    assert!(!session.state().is_active);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_tasks_are_bounded() {
    let fixture = Fixture::new();
    let policy = Policy { max_tasks_per_client: 3, max_tasks: 10, ..Policy::default() };
    let parts = RuntimeParts { policy, ..RuntimeParts::new(fixture.store.clone()) };
    let orchestrator = Orchestrator::new(parts);
    let mut started = 0;
    for client in 0..100 {
        let client = Client::anonymous(format!("client{client}"));
        let session = orchestrator.open(client, Mode::Text, fixture.snapshot.clone()).await.unwrap();
        session.begin_turn(None);
        let connection = session.connect();
        for n in 0..10 {
            let answer = submit_one(&connection, call("report", &format!("deaf {n}"))).await;
            match &answer.outcome {
                Outcome::Success(_) => started += 1,
                Outcome::Failure(error) => {
                    assert_eq!((error.kind, error.retryable), (ErrorType::RateLimit, true));
                    assert!(error.retry_after_ms.is_some());
                }
            }
        }
        // A session lives as long as its tasks.
    }
    assert_eq!(started, 10);
    assert_eq!(orchestrator.all_tasks(1_000).await.unwrap().tasks.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn the_same_call_again_is_answered_with_the_same_task() {
    let fixture = Fixture::new();
    let (_session, connection) = fixture.open("ann", Mode::Text).await;
    let once = submit_one(&connection, call("report", "gated").with_id("provider_0001")).await;
    let again = submit_one(&connection, call("report", "gated").with_id("provider_0001")).await;
    let equal = submit_one(&connection, call("report", "gated")).await;
    assert_eq!(task_id(&once), task_id(&again));
    assert_eq!(task_id(&once), task_id(&equal));
    assert_eq!(again.meta.idempotent_cache_hit, Some(true));
    tokio::task::yield_now().await;
    assert_eq!(fixture.effects.times("gated begun"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_approved_call_may_go_on_in_the_background() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let mut batch = connection.submit(vec![call("pay_later", "gated")]);
    assert!(batch.next().await.unwrap().into_answer().is_none());
    let Some(ClientEvent::Confirmation { request, .. }) = connection.try_next_event() else { panic!() };
    let token = request.token.unwrap();
    let answer = session.resolve_confirmation(token.expose(), ConfirmationAnswer::Approve).await;
    let id = task_id(&answer.response);
    answer.mark_delivered();
    fixture.effects.gate.notify_one();
    assert_eq!(ended(&fixture, "ann", &id).await.status, TaskStatus::Done);
    assert_eq!(fixture.effects.times("gated"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_learns_of_its_deadline_before_it_is_stopped() {
    let fixture = Fixture::new();
    let (_session, connection) = fixture.open("ann", Mode::Text).await;
    let id = task_id(&submit_one(&connection, call("report", "listens")).await);
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    let task = ended(&fixture, "ann", &id).await;
    assert_eq!(fixture.effects.times("listens Deadline"), 1);
    assert_eq!(task.status, TaskStatus::Failed);
}

/// Runs a process until it is done, or has died. What it left running is gone.
fn in_process<T>(process: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(process)
}

#[test]
fn after_a_restart_an_idempotent_task_is_resumed_and_another_is_reported_as_unknown() {
    let first = Fixture::new();
    let (session_id, lost, resumed) = in_process(async {
        let (session, connection) = first.open("ann", Mode::Text).await;
        let lost = task_id(&submit_one(&connection, call("report", "gated lost")).await);
        let resumed = task_id(&submit_one(&connection, call("report_again", "gated again")).await);
        tokio::time::sleep(Duration::from_secs(1)).await;
        (session.id().to_owned(), lost, resumed)
    });

    let next = first.restarted();
    in_process(async {
        let recovered = next.orchestrator.recover_tasks(next.snapshot.clone()).await.unwrap();
        assert_eq!((recovered.resumed, recovered.lost), (1, 1));
        assert_eq!(ended(&next, "ann", &lost).await.status, TaskStatus::Unknown);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(next.effects.times("gated again begun"), 2);
        assert_eq!(next.effects.times("gated lost begun"), 1, "what is not idempotent is not run again");
        next.effects.gate.notify_one();
        assert_eq!(ended(&next, "ann", &resumed).await.status, TaskStatus::Done);

        let client = Client::anonymous("ann");
        let session = next.orchestrator.resume(&session_id, client, next.snapshot.clone()).await.unwrap();
        let notes = notes_of_next_turn(&next, &session).await;
        let about = |id: &str| notes.iter().filter(|note| note.contains(id)).count();
        assert_eq!((about(&lost), about(&resumed)), (1, 1), "{notes:?}");
        assert!(notes.iter().any(|note| note.contains("not known")), "{notes:?}");
        assert_eq!(ended_tasks(&session.connect()).len(), 2);
    });

    let last = next.restarted();
    in_process(async {
        assert_eq!(last.orchestrator.recover_tasks(last.snapshot.clone()).await.unwrap(), Default::default());
        let client = Client::anonymous("ann");
        let session = last.orchestrator.resume(&session_id, client, last.snapshot.clone()).await.unwrap();
        assert!(notes_of_next_turn(&last, &session).await.is_empty());
        assert!(ended_tasks(&session.connect()).is_empty());
    });
}

/// One process of a random history: when it dies, and how long it waits between its steps.
#[derive(Debug, Clone)]
struct Life {
    death: Option<CrashPoint>,
    pauses_ms: [u64; 2],
}

fn life() -> impl Strategy<Value = Life> {
    let death = prop::option::weighted(
        0.8,
        (0_u32..7, any::<bool>()).prop_map(|(after, applied)| CrashPoint { after, applied }),
    );
    (death, [0_u64..5_000, 0_u64..5_000]).prop_map(|(death, pauses_ms)| Life { death, pauses_ms })
}

struct History {
    store: Arc<CrashingStore>,
    snapshot: Arc<Snapshot>,
    session: Option<String>,
    turns: u32,
}

impl History {
    /// What a process does: it recovers its tasks, starts two if there are none, and takes turns.
    async fn live(&mut self, pauses_ms: [u64; 2]) {
        let orchestrator = Orchestrator::new(RuntimeParts::new(self.store.clone()));
        orchestrator.recover_tasks(self.snapshot.clone()).await.unwrap();
        let client = || Client::anonymous("ann");
        let session = match &self.session {
            Some(id) => orchestrator.resume(id, client(), self.snapshot.clone()).await.unwrap(),
            None => {
                let session = orchestrator.open(client(), Mode::Text, self.snapshot.clone()).await.unwrap();
                self.session = Some(session.id().to_owned());
                session
            }
        };
        let connection = session.connect();
        self.take_turn(&session).await;
        for tool in ["report", "report_again", "survey"] {
            drop(connection.submit(vec![call(tool, "seconds 2")]).all().await);
        }
        for pause in pauses_ms {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            self.take_turn(&session).await;
        }
    }

    /// A turn whose notes are stored as an agent stores them: in one commit with the mark that they were told.
    async fn take_turn(&mut self, session: &Session) {
        let start = session.begin_turn(None);
        self.turns += 1;
        let key = format!("s/test/{:04}", self.turns);
        self.store.commit(start.told.put(Table::History, key, json!(start.notes))).await.unwrap();
    }
}

#[test]
fn every_task_is_told_once_whatever_crashes() {
    let effects = Arc::new(EffectLog::default());
    let snapshot = snapshot(&effects);
    let config = Config { cases: 200, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let told = runner.run(&prop::collection::vec(life(), 1..6), |lives| {
        let store = CrashingStore::new(Arc::new(MemoryStore::new()));
        let mut history =
            History { store: store.clone(), snapshot: snapshot.clone(), session: None, turns: 0 };
        for Life { death, pauses_ms } in &lives {
            death.iter().for_each(|death| store.die(*death));
            in_process(async {
                let died = std::pin::pin!(store.died.notified());
                let lived = std::pin::pin!(history.live(*pauses_ms));
                futures_util::future::select(lived, died).await;
            });
            store.lose_queue();
        }
        // The last process lives until everything has ended.
        in_process(history.live([100_000, 0]));
        let tasks = in_process(list_stored_tasks(&*store, 1_000)).unwrap().tasks;
        let turns = in_process(store.scan(Table::History, Scan::prefix("s/test/", 1_000))).unwrap();
        let notes: Vec<String> = turns
            .into_iter()
            .flat_map(|(_, row)| serde_json::from_value::<Vec<String>>(row.value).unwrap())
            .collect();
        prop_assert!(!tasks.is_empty());
        for task in tasks {
            prop_assert!(task.status != TaskStatus::Running, "{:?}", task);
            let told = notes.iter().filter(|note| note.contains(&task.id)).count();
            prop_assert_eq!(told, 1, "{:?} in {:?}", task, notes);
        }
        Ok(())
    });
    told.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_task_is_waited_for_by_its_own_client_alone() {
    let fixture = Fixture::new();
    let (_session, connection) = fixture.open("ann", Mode::Text).await;
    let id = task_id(&submit_one(&connection, call("report", "gated")).await);
    // Another client's task, and none at all, are nothing to wait for.
    fixture.orchestrator.task_ended("bob", &id).await;
    fixture.orchestrator.task_ended("ann", "task_0").await;
    let early = tokio::time::timeout(Duration::from_secs(1), fixture.orchestrator.task_ended("ann", &id));
    assert!(early.await.is_err(), "it still runs");
    let (orchestrator, task) = (fixture.orchestrator.clone(), id.clone());
    let waiting = tokio::spawn(async move { orchestrator.task_ended("ann", &task).await });
    tokio::task::yield_now().await;
    fixture.effects.gate.notify_one();
    waiting.await.unwrap();
    let task = fixture.orchestrator.client_task("ann", &id).await.unwrap().unwrap();
    assert_eq!(task.status, TaskStatus::Done, "what it came to is known when its end is");
    fixture.orchestrator.task_ended("ann", &id).await;
}
