//! Faults of the database and of the way to it.

use std::time::{Duration, Instant};

use super::nodes::PAST_LEASE;
use crate::proxy::{Cut, Weather};
use crate::world::World;

/// Commits of each node that are cut off.
const CUTS: usize = 4;

pub(super) async fn partition(world: &World, round: usize) {
    let Some(databases) = &world.databases else { return };
    let proxy = &databases.proxies[round % databases.proxies.len()];
    proxy.set_weather(Weather::Swallow);
    tokio::time::sleep(PAST_LEASE).await;
    proxy.set_weather(Weather::Fair);
}

/// As a crash does, and as an operator does, in turns.
pub(super) fn restart(world: &World, round: usize) {
    let Some(databases) = &world.databases else { return };
    if round % 2 == 1 {
        databases.primary.stop();
    }
    databases.primary.restart();
}

pub(super) async fn cut(world: &World, round: usize) {
    let Some(databases) = &world.databases else { return };
    // Most often where it hurts most.
    let cut = [Cut::After, Cut::During, Cut::After, Cut::Before][round % 4];
    let before: u64 = databases.proxies.iter().map(|proxy| proxy.commits_cut()).sum();
    databases.proxies.iter().for_each(|proxy| proxy.cut_commits(CUTS, cut));
    let wanted = before + (CUTS * databases.proxies.len()) as u64;
    let begin = Instant::now();
    while databases.proxies.iter().map(|proxy| proxy.commits_cut()).sum::<u64>() < wanted {
        assert!(begin.elapsed() < Duration::from_secs(60), "no commit came by to be cut");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(super) fn fail_over(world: &mut World) {
    let Some(databases) = &mut world.databases else { return };
    databases.fail_over();
    databases.follow();
}

/// Every answer of the database takes its time, so that the few connections are always in use.
pub(super) async fn exhaust_pool(world: &World) {
    let Some(databases) = &world.databases else { return };
    databases.proxies.iter().for_each(|proxy| proxy.set_weather(Weather::Slow(Duration::from_millis(60))));
    tokio::time::sleep(Duration::from_secs(4)).await;
    databases.proxies.iter().for_each(|proxy| proxy.set_weather(Weather::Fair));
}

pub(super) async fn fill_disk(world: &World) {
    let Some(databases) = &world.databases else { return };
    let Some(disk) = &databases.disk else { return };
    disk.fill();
    tokio::time::sleep(Duration::from_secs(3)).await;
    disk.clear();
    // A server that could not write its log has ended, and does not come back by itself.
    databases.primary.restart();
}
