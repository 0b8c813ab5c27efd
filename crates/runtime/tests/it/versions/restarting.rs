//! What a restart keeps, and what it says about the rest.

use std::collections::BTreeSet;
use std::fs;

use quarterdeck_contracts::{ConfirmationAnswer, ErrorType};
use quarterdeck_runtime::{AllowedDigests, Call, ClientEvent};
use serde_json::json;

use super::world::{Disk, World, call, digest, version_of};
use crate::orchestrator::fixture::{error_kind, receive};

#[tokio::test]
async fn sessions_and_rollout_are_the_same_after_a_restart() {
    let disk = Disk::new();
    let world = World::start(&disk, 0).await;
    let old = world.open("ann").await;
    world.activate(1).await;
    let new = world.open("ann").await;
    let share = json!({ "percent": 40, "version": digest(0) });
    world.set_rollout(json!({ "shares": [share], "rest": digest(1) })).await;
    let variant = |world: &World, number: usize| {
        let client = quarterdeck_runtime::Client::anonymous(format!("web-{number}"));
        world.orchestrator.choose_tools(&client, &world.registry).unwrap().snapshot.version().to_owned()
    };
    let before: Vec<_> = (0..100).map(|number| variant(&world, number)).collect();
    let rollout = world.registry.rollout();
    let ids = (old.id().to_owned(), new.id().to_owned());
    drop((old, new, world));

    let world = World::start(&disk, 0).await;
    assert_eq!(world.registry.rollout(), rollout);
    assert_eq!((0..100).map(|number| variant(&world, number)).collect::<Vec<_>>(), before);
    let (old, new) = (world.resume(&ids.0, "ann").await, world.resume(&ids.1, "ann").await);
    assert_eq!((version_of(&old), version_of(&new)), (0, 1));
    call(&old).await;
    call(&new).await;
    let trail = world.audit.text();
    assert_eq!(trail.matches("\"pinnedAnew\":false").count(), 2, "{trail}");
}

#[tokio::test]
async fn a_rollout_outlives_another_artifact_of_the_start() {
    let disk = Disk::new();
    let world = World::start(&disk, 0).await;
    world.activate(1).await;
    drop(world);
    let world = World::start(&disk, 2).await;
    assert_eq!(version_of(&world.open("ann").await), 1, "the operator's word counts");
    assert_eq!(world.loaded(), [2, 1]);
}

#[tokio::test]
async fn where_the_folder_is_compiled_a_session_follows_it() {
    let disk = Disk::new();
    let world = World::start(&disk, 0).await;
    let id = world.open("ann").await.id().to_owned();
    drop(world);
    let world = World::start(&disk, 1).await;
    assert_eq!(version_of(&world.resume(&id, "ann").await), 1);
}

#[tokio::test]
async fn a_locked_server_keeps_the_version_of_its_last_start_for_the_sessions_that_have_it() {
    let disk = Disk::new();
    let allowed = AllowedDigests::Listed(BTreeSet::from([digest(0), digest(1)]));
    let world = World::start_with(&disk, 0, allowed.clone()).await;
    let id = world.open("ann").await.id().to_owned();
    drop(world);
    let world = World::start_with(&disk, 1, allowed).await;
    let session = world.resume(&id, "ann").await;
    assert_eq!((version_of(&session), version_of(&world.open("bob").await)), (0, 1));
    call(&session).await;
    session.end(quarterdeck_runtime::PendingEnd::with_reason("done")).await;
    drop(session);
    assert_eq!(world.admin.drop_unheld().await.unwrap(), [digest(0)], "and no longer");
}

/// A restart in which the version of a session with an open confirmation is missing.
async fn without_version(allowed: AllowedDigests, removes_bundle: bool, expected: &str) {
    let disk = Disk::new();
    let both = AllowedDigests::Listed(BTreeSet::from([digest(0), digest(1)]));
    let world = World::start_with(&disk, 0, both).await;
    world.activate(1).await;
    let session = world.open("ann").await;
    let id = session.id().to_owned();
    session.begin_turn(None);
    let connection = session.connect();
    drop(connection.submit(vec![Call::new("ask", json!({}))]).all().await);
    let Some(ClientEvent::Confirmation { request, .. }) = connection.try_next_event() else {
        panic!("asked")
    };
    let token = request.token.unwrap().expose().to_owned();
    drop((session, connection, world));
    if removes_bundle {
        fs::remove_file(disk.bundle_file(1)).unwrap();
    }

    let world = World::start_with(&disk, 0, allowed).await;
    assert_eq!(world.audit.count("version_not_loaded"), 1);
    assert!(world.audit.text().contains(expected), "{}", world.audit.text());
    let session = world.resume(&id, "ann").await;
    assert_eq!(version_of(&session), 0);
    let trail = world.audit.text();
    assert!(trail.contains("\"pinnedAnew\":true") && trail.contains("\"voidConfirmations\":1"), "{trail}");
    let answer = receive(session.resolve_confirmation(&token, ConfirmationAnswer::Approve).await);
    assert_eq!(error_kind(&answer), Some(ErrorType::ConfirmationInvalid));
    assert_eq!(disk.runs.load(std::sync::atomic::Ordering::Relaxed), 0, "nothing was done");
    call(&session).await;
    drop((session, world));
    // It is pinned to the new one for good.
    let both = AllowedDigests::Listed(BTreeSet::from([digest(0), digest(1)]));
    let world = World::start_with(&disk, 0, both).await;
    assert_eq!(version_of(&world.resume(&id, "ann").await), 0);
}

#[tokio::test]
async fn a_session_whose_artifact_is_not_stored_is_pinned_anew_and_audited() {
    let allowed = AllowedDigests::Listed(BTreeSet::from([digest(0), digest(1)]));
    without_version(allowed, true, "is not stored here").await;
}

#[tokio::test]
async fn a_session_whose_artifact_is_not_allowed_any_more_is_pinned_anew_and_audited() {
    let allowed = AllowedDigests::Listed(BTreeSet::from([digest(0)]));
    without_version(allowed, false, "not on its list").await;
}
