//! One call through the whole orchestrator, and what idle sessions cost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quarterdeck_contracts::{Mode, Store};
use quarterdeck_runtime::{Call, Client, Connection, Orchestrator, Reply, RuntimeParts, Session};
use quarterdeck_store::{MemoryStore, SqliteStore};

use crate::dispatch::World;
use crate::fixtures::{Fixtures, VARIANTS};
use crate::rounds::{PerCall, measure_given};

/// The budget of a written turn, so that every call runs.
const CALLS_PER_TURN: usize = 5;

/// A native handler behind all gates, with ledger and store in memory, from parsed arguments to the envelope.
pub(crate) fn orchestrated(fixtures: &Fixtures, calls: usize) -> PerCall {
    let (world, values) = (World::native(fixtures), fixtures.values());
    world.runtime.block_on(async {
        let (session, connection) = open(&world, Arc::new(MemoryStore::new())).await;
        let work = async |call, args| {
            if call % CALLS_PER_TURN == 0 {
                session.begin_turn(None);
            }
            search(&connection, args).await;
        };
        measure_given(calls, |call| values[call % VARIANTS].clone(), work).await
    })
}

/// The 99th percentile of a read-only call on a store on disk, while another session writes as fast as the disk syncs.
/// `cpu_ns` is the median.
pub(crate) fn on_disk(fixtures: &Fixtures, calls: usize) -> PerCall {
    let (world, values) = (World::native(fixtures), fixtures.values());
    let folder = std::env::temp_dir().join(format!("quarterdeck-bench-{}", std::process::id()));
    let times = world.runtime.block_on(async {
        let store = Arc::new(SqliteStore::open(folder.join("quarterdeck.db")).expect("the store opens"));
        let (session, connection) = open(&world, store.clone()).await;
        let writing = tokio::spawn(write_forever(store));
        let mut times = Vec::with_capacity(calls);
        for call in 0..calls {
            if call % CALLS_PER_TURN == 0 {
                session.begin_turn(None);
            }
            let start = Instant::now();
            search(&connection, values[call % VARIANTS].clone()).await;
            times.push(start.elapsed());
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        writing.abort();
        times
    });
    let _ = std::fs::remove_dir_all(&folder);
    let mut times = times;
    times.sort();
    PerCall { wall: times[calls * 99 / 100], cpu: times[calls / 2] }
}

async fn write_forever(store: Arc<SqliteStore>) {
    for number in 0_u64.. {
        let commit = quarterdeck_contracts::Commit::default().put(
            quarterdeck_contracts::Table::Values,
            format!("bench/{}", number % 1_000),
            number.into(),
        );
        store.commit(commit).await.expect("the store writes");
    }
}

/// Bytes of memory for each session that has had a turn and waits.
pub(crate) fn idle(fixtures: &Fixtures, count: usize) -> u64 {
    let (world, values) = (World::native(fixtures), fixtures.values());
    world.runtime.block_on(async {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let orchestrator = Orchestrator::new(RuntimeParts::new(store));
        let before = resident();
        let mut sessions = Vec::with_capacity(count);
        for number in 0..count {
            let client = Client::anonymous(format!("client-{number}"));
            let session =
                orchestrator.open(client, Mode::Text, world.snapshot.clone()).await.expect("it opens");
            session.begin_turn(None);
            let connection = session.connect();
            search(&connection, values[number % VARIANTS].clone()).await;
            sessions.push((session, connection));
        }
        // Everything that waits to be stored is stored.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let after = resident();
        drop(sessions);
        after.saturating_sub(before)
    })
}

async fn open(world: &World, store: Arc<dyn Store>) -> (Session, Connection) {
    let orchestrator = Orchestrator::new(RuntimeParts::new(store));
    let client = Client::anonymous("bench");
    let session = orchestrator.open(client, Mode::Text, world.snapshot.clone()).await.expect("it opens");
    let connection = session.connect();
    (session, connection)
}

async fn search(connection: &Connection, args: serde_json::Value) {
    let mut batch = connection.submit(vec![Call::new("kb_search", args)]);
    match batch.next().await {
        Some(Reply::Answer(answer)) => {
            assert!(answer.response.is_ok(), "{:?}", answer.response);
            answer.mark_delivered();
        }
        other => panic!("{other:?}"),
    }
}

/// Bytes of memory that the process holds, as the system counts them.
pub(crate) fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap_or(0) * 1_024
}
