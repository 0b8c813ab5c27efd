//! A version is dropped when its last session ends, and not before.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_runtime::{PendingEnd, VersionError};
use serde_json::json;

use super::world::{Disk, World, call, digest, version_of};

#[tokio::test]
async fn a_retired_version_is_freed_when_its_last_session_ends() {
    let disk = Disk::new();
    let world = World::start(&disk, 0).await;
    let old = Arc::downgrade(&world.registry.snapshot());
    let (first, second) = (world.open("ann").await, world.open("bob").await);
    world.activate(1).await;
    let retired = world.admin.retire(&digest(0)).await.unwrap();
    assert!(!retired.is_dropped, "two sessions have it");
    assert_eq!(version_of(&world.open("cat").await), 1, "it takes no new sessions");
    call(&first).await;

    first.end(PendingEnd::with_reason("done")).await;
    drop(first);
    assert!(world.admin.drop_unheld().await.unwrap().is_empty(), "one session has it");
    assert!(old.upgrade().is_some());
    call(&second).await;
    second.end(PendingEnd::with_reason("done")).await;
    drop(second);
    assert_eq!(world.admin.drop_unheld().await.unwrap(), [digest(0)]);
    assert!(old.upgrade().is_none(), "nothing holds it: its memory is free");
    assert_eq!(world.loaded(), [1]);
    assert_eq!(world.audit.count("version_dropped"), 1);
}

#[tokio::test]
async fn a_session_that_waits_in_the_store_keeps_its_version_loaded_until_it_cannot_be_resumed() {
    let disk = Disk::new();
    let world = World::start(&disk, 0).await;
    let session = world.open("ann").await;
    let id = session.id().to_owned();
    call(&session).await;
    drop(session);
    assert!(world.orchestrator.find(&id).is_none(), "it is not in memory");
    world.activate(1).await;
    assert!(!world.admin.retire(&digest(0)).await.unwrap().is_dropped);
    let session = world.resume(&id, "ann").await;
    assert_eq!(version_of(&session), 0);
    call(&session).await;
    drop(session);
    world.clock.advance(Duration::from_secs(30 * 60));
    assert!(world.admin.drop_unheld().await.unwrap().is_empty(), "half an hour is not over");
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(world.admin.drop_unheld().await.unwrap(), [digest(0)]);
}

#[tokio::test]
async fn a_version_that_new_sessions_get_is_not_retired() {
    let disk = Disk::new();
    let world = World::start(&disk, 0).await;
    for (name, expected) in [(digest(0), "registry rollout"), ("1.0.unknown".into(), "registry list")] {
        let error = world.admin.retire(&name).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    world.activate(1).await;
    let share = json!({ "percent": 1, "version": digest(0) });
    world.set_rollout(json!({ "shares": [share], "rest": digest(1) })).await;
    assert!(matches!(world.admin.retire(&digest(0)).await, Err(VersionError::InUse { .. })));
    world.set_rollout(json!({ "rest": digest(1) })).await;
    assert!(world.admin.retire(&digest(0)).await.unwrap().is_dropped, "no session has it");
    let error = world.admin.set_rollout(serde_json::from_value(json!({})).unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("activate it again"), "the rest would be the retired one: {error}");
}

#[tokio::test]
async fn a_retiring_version_that_is_activated_again_takes_sessions_again() {
    let disk = Disk::new();
    let world = World::start(&disk, 0).await;
    let held = world.open("ann").await;
    world.activate(1).await;
    world.admin.retire(&digest(0)).await.unwrap();
    let rules = serde_json::from_value(json!({ "rest": digest(0) })).unwrap();
    assert!(matches!(world.admin.set_rollout(rules).await, Err(VersionError::Retiring { .. })));
    world.activate(0).await;
    let new = world.open("bob").await;
    assert_eq!((version_of(&held), version_of(&new)), (0, 0));
    assert!(Arc::ptr_eq(held.snapshot(), new.snapshot()), "it was not loaded a second time");
}
