//! Versions where several nodes share the store.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{Commit, Mode, Scan, Store, Table};
use quarterdeck_runtime::{AllowedDigests, Audience, Client};
use serde_json::json;

use super::world::{Disk, World, bundles, call, digest, version_of};

/// Another node: the same store, and a disk of its own.
fn other_disk(disk: &Disk) -> Disk {
    Disk { store: disk.store.clone(), ..Disk::new() }
}

async fn node(disk: &Disk, base: usize, name: &str) -> World {
    World::start_node(disk, base, AllowedDigests::Any, Some(name)).await
}

/// Lets a node follow the others.
fn follow(world: &World) {
    world.admin.follow();
    let orchestrator = world.orchestrator.clone();
    tokio::spawn(async move { orchestrator.follow_changes().await });
}

#[tokio::test(start_paused = true)]
async fn an_activated_version_is_loaded_by_the_other_nodes_at_once() {
    let disk = Disk::new();
    let one = node(&disk, 0, "one").await;
    let two = node(&other_disk(&disk), 0, "two").await;
    follow(&two);
    tokio::time::sleep(Duration::from_millis(10)).await;
    one.activate(1).await;
    for _ in 0..1_000 {
        if two.loaded().contains(&1) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let session = two.open("ann").await;
    assert_eq!(version_of(&session), 1);
    call(&session).await;
    two.set_rollout(json!({ "rest": digest(0) })).await;
    one.admin.catch_up().await.unwrap();
    assert_eq!(version_of(&one.open("bob").await), 0, "the rollout is one for all");
}

#[tokio::test]
async fn a_node_that_starts_later_finds_what_was_activated() {
    let disk = Disk::new();
    let one = node(&disk, 0, "one").await;
    one.activate(1).await;
    one.admin.activate(&digest(2), Some(bundles()[2].clone()), Audience::Unchanged).await.unwrap();
    let late = node(&other_disk(&disk), 0, "late").await;
    assert_eq!(late.loaded(), [0, 1, 2]);
    assert_eq!(version_of(&late.open("ann").await), 1);
    // And it can be activated there by its digest alone.
    late.admin.activate(&digest(2), None, Audience::Everyone).await.unwrap();
    one.admin.catch_up().await.unwrap();
    assert_eq!(version_of(&one.open("ann").await), 2);
}

#[tokio::test]
async fn a_retired_version_is_dropped_everywhere_when_no_session_has_it() {
    let disk = Disk::new();
    let one = node(&disk, 0, "one").await;
    let two = node(&other_disk(&disk), 0, "two").await;
    one.activate(1).await;
    two.admin.catch_up().await.unwrap();
    let held = two.open("ann").await;
    assert_eq!(version_of(&held), 1);
    one.activate(2).await;
    assert!(!one.admin.retire(&digest(1)).await.unwrap().is_dropped, "the other node has a session of it");
    two.admin.catch_up().await.unwrap();
    call(&held).await;
    held.end(quarterdeck_runtime::PendingEnd::with_reason("done")).await;
    drop(held);
    two.admin.drop_unheld().await.unwrap();
    one.admin.catch_up().await.unwrap();
    one.admin.drop_unheld().await.unwrap();
    assert_eq!((one.loaded(), two.loaded()), (vec![0, 2], vec![0, 2]));
}

#[tokio::test]
async fn during_an_upgrade_sessions_of_either_artifact_go_on_at_any_node() {
    let disk = Disk::new();
    let old = node(&disk, 0, "old").await;
    let new = node(&other_disk(&disk), 1, "new").await;
    old.admin.catch_up().await.unwrap();
    new.admin.catch_up().await.unwrap();
    assert_eq!((version_of(&old.open("ann").await), version_of(&new.open("ann").await)), (0, 1));
    assert_eq!((old.loaded(), new.loaded()), (vec![0, 1], vec![1, 0]));
    for world in [&old, &new] {
        world.admin.drop_unheld().await.unwrap();
        assert_eq!(world.loaded().len(), 2, "the other node lives");
    }
    let refused = Client { requested_version: None, ..Client::anonymous("ann") };
    let chosen = old.orchestrator.choose_tools(&refused, &old.registry).unwrap();
    assert_eq!(chosen.snapshot.content_hash(), digest(0), "new sessions get the node's own");
}

#[tokio::test]
async fn two_operators_do_not_undo_each_other() {
    let disk = Disk::new();
    let one = node(&disk, 0, "one").await;
    let two = node(&other_disk(&disk), 0, "two").await;
    one.admin.activate(&digest(1), Some(bundles()[1].clone()), Audience::Unchanged).await.unwrap();
    // It has not been told of that.
    two.admin.activate(&digest(2), Some(bundles()[2].clone()), Audience::Unchanged).await.unwrap();
    one.admin.catch_up().await.unwrap();
    assert_eq!((one.loaded(), two.loaded()), (vec![0, 1, 2], vec![0, 1, 2]));
}

#[tokio::test]
async fn what_was_changed_in_the_store_is_not_loaded() {
    let disk = Disk::new();
    let one = node(&disk, 0, "one").await;
    one.activate(1).await;
    let pieces = disk.store.scan(Table::Bundles, Scan::prefix("p/", 1_000)).await.unwrap();
    for (key, row) in pieces {
        let text = row.value.as_str().unwrap().replace("For tests.", "For texts.");
        disk.store.commit(Commit::default().put(Table::Bundles, key, json!(text))).await.unwrap();
    }
    let late = node(&other_disk(&disk), 0, "late").await;
    assert_eq!(late.loaded(), [0]);
    let text = late.audit.text();
    assert!(text.contains("version_not_loaded") && text.contains("its bytes have changed"), "{text}");
    // It goes on with what it has, and gets it when it is given again.
    let session = late.orchestrator.open(Client::anonymous("ann"), Mode::Text, &late.registry).await.unwrap();
    assert_eq!(version_of(&session), 0);
    late.activate(1).await;
    let later = node(&other_disk(&disk), 0, "later").await;
    assert_eq!(later.loaded(), [0, 1]);
}

#[tokio::test]
async fn a_locked_node_loads_nothing_that_is_not_on_its_list() {
    let disk = Disk::new();
    let one = node(&disk, 0, "one").await;
    one.activate(1).await;
    let locked = AllowedDigests::Listed([digest(0)].into());
    let two = World::start_node(&other_disk(&disk), 0, locked, Some("two")).await;
    two.admin.catch_up().await.unwrap();
    two.admin.catch_up().await.unwrap();
    assert_eq!(two.loaded(), [0]);
    assert_eq!(two.audit.count("version_not_loaded"), 1, "said once");
    let store: Arc<dyn Store> = disk.store.clone();
    let row = store.get(Table::Versions, "state").await.unwrap().unwrap();
    assert!(row.value.to_string().contains(&digest(1)), "and takes it from no other node");
}
