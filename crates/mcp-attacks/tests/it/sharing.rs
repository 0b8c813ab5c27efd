//! Many sessions, one server.

use std::collections::BTreeSet;

use crate::http::HttpServer;
use crate::world::{LOOK, Settings, World, assert_honest};

const SESSIONS: usize = 100;

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_sessions_share_one_process() {
    let world = World::stdio("honest");
    call_from_all(&world).await;
    assert_eq!(world.notes.count("start"), 1);
    assert_eq!(world.notes.count("initialize"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_sessions_share_one_mcp_session_over_http() {
    let server = HttpServer::start("honest", &[]);
    let world = server.world(Settings::default());
    call_from_all(&world).await;
    assert_eq!(world.notes.count("initialize"), 1);
}

async fn call_from_all(world: &World) {
    // The first ones come before the connection is there.
    let calls = (0..SESSIONS).map(|n| async move {
        let what = format!("thing {n}");
        assert_honest(&world.call(LOOK, &what).await, "lookup", &what);
        what
    });
    let asked: BTreeSet<String> = join_all(calls).await.into_iter().collect();
    let received = world.notes.calls();
    assert_eq!(received.len(), SESSIONS);
    assert_eq!(received.into_iter().collect::<BTreeSet<_>>(), asked);
}

async fn join_all<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut futures: Vec<_> = futures.map(Box::pin).collect();
    let mut results: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        let mut is_done = true;
        for (future, result) in futures.iter_mut().zip(&mut results) {
            if result.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(value) => *result = Some(value),
                    std::task::Poll::Pending => is_done = false,
                }
            }
        }
        if is_done { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    results.into_iter().flatten().collect()
}
