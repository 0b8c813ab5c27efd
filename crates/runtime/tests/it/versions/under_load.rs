//! Activating and rolling back while calls run loses none of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use quarterdeck_runtime::{Audience, PendingEnd};

use super::world::{Disk, World, call, digest, version_of};

const CLIENTS: usize = 8;
const ROUNDS: usize = 25;
const CALLS_PER_SESSION: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_rollback_under_load_loses_no_call() {
    let disk = Disk::new();
    let world = Arc::new(World::start(&disk, 0).await);
    let (is_over, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (world, is_over, calls) = (world.clone(), is_over.clone(), calls.clone());
            tokio::spawn(async move {
                let mut seen = [0_u64; 2];
                while !is_over.load(Ordering::Relaxed) {
                    let session = world.open(&format!("web-{number}")).await;
                    let version = version_of(&session);
                    for _ in 0..CALLS_PER_SESSION {
                        // Asserts that it is answered, once and by the session's version.
                        call(&session).await;
                        calls.fetch_add(1, Ordering::Relaxed);
                    }
                    assert_eq!(version_of(&session), version);
                    seen[version] += 1;
                    session.end(PendingEnd::with_reason("done")).await;
                }
                seen
            })
        })
        .collect();
    world.activate(1).await;
    for round in 0..ROUNDS {
        // Each is rolled back while sessions of both are busy, and the other is retired and dropped where it can be.
        let (next, last) = (digest(round % 2), digest((round + 1) % 2));
        world.admin.activate(&next, None, Audience::Everyone).await.unwrap();
        world.admin.retire(&last).await.unwrap();
        let before = calls.load(Ordering::Relaxed);
        while calls.load(Ordering::Relaxed) < before + CLIENTS as u64 {
            tokio::task::yield_now().await;
        }
        world.admin.drop_unheld().await.unwrap();
    }
    is_over.store(true, Ordering::Relaxed);
    let mut seen = [0_u64; 2];
    for client in clients {
        let of_client = client.await.expect("no call was lost");
        seen = [seen[0] + of_client[0], seen[1] + of_client[1]];
    }
    let made = calls.load(Ordering::Relaxed);
    assert_eq!(disk.runs.load(Ordering::Relaxed), made, "every call ran exactly once");
    assert!(seen[0] > 0 && seen[1] > 0, "both took sessions: {seen:?}");
    // A line is written after its answer was given.
    while (world.audit.count("tool_execution") as u64) < made {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.audit.count("tool_execution") as u64, made, "and is on record once");
    world.admin.drop_unheld().await.unwrap();
    assert_eq!(world.loaded().len(), 1, "what was retired is dropped");
}
