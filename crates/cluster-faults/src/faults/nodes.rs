//! Faults of nodes.

use std::time::{Duration, Instant};

use crate::world::World;

/// Longer than a lease is kept for a node that says nothing.
pub(super) const PAST_LEASE: Duration = Duration::from_secs(17);

/// Kills a node while something is being done, and starts it again when the others have had to do without it.
pub(super) async fn kill(world: &mut World, round: usize) {
    world.outside.set_delay(Duration::from_millis(80));
    // The outside world has just done something, and its answer is on the way.
    let (before, begin) = (world.outside.count(), Instant::now());
    while world.outside.count() == before && begin.elapsed() < Duration::from_secs(10) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let index = round % world.nodes.len();
    world.nodes[index].kill();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    world.nodes[index].start();
}

pub(super) async fn pause(world: &mut World, round: usize) {
    world.outside.set_delay(Duration::from_millis(80));
    let node = &world.nodes[round % world.nodes.len()];
    node.pause();
    tokio::time::sleep(PAST_LEASE).await;
    node.resume();
}

pub(super) async fn set_clock(world: &World, round: usize) {
    const OFFSETS: [i64; 4] = [300, 0, -300, 300];
    world.set_clock(OFFSETS[round % OFFSETS.len()]);
    tokio::time::sleep(Duration::from_secs(3)).await;
}

/// Stops one node after the other as an operator does, each when the one before serves again.
pub(super) fn roll(world: &mut World) {
    for node in &mut world.nodes {
        let stopped = node.stop();
        assert!(stopped.is_ok(), "{stopped:?}");
        node.start();
    }
}
