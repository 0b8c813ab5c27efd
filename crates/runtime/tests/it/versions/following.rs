//! A registry that follows a folder: sessions move on between turns, and what is replaced is dropped.

use quarterdeck_contracts::Mode;
use quarterdeck_runtime::{Call, Client, Session};
use serde_json::json;

use super::world::{Disk, World, bundles, call, digest, version_of};

async fn following(disk: &Disk) -> World {
    let world = World::start(disk, 0).await;
    world.registry.follow();
    world
}

async fn save(world: &World, number: usize) {
    world.admin.succeed_base(bundles()[number].clone()).await.unwrap();
}

async fn repin(world: &World, session: Session, client: &str) -> Session {
    world.orchestrator.repin(session, Client::anonymous(client), &world.registry).await.unwrap()
}

#[tokio::test]
async fn a_text_session_has_the_new_tools_in_its_next_turn_and_keeps_its_turns() {
    let disk = Disk::new();
    let world = following(&disk).await;
    let session = world.open("ann").await;
    let id = session.id().to_owned();
    call(&session).await;
    save(&world, 1).await;
    assert_eq!(version_of(&session), 0, "it never changes while it is used");
    let session = repin(&world, session, "ann").await;
    assert_eq!((session.id(), version_of(&session), session.turn()), (&*id, 1, 1));
    call(&session).await;
    assert_eq!(session.turn(), 2, "no turn is counted twice or lost");
    let session = repin(&world, session, "ann").await;
    assert_eq!(version_of(&session), 1, "there is nothing newer");
    assert_eq!(version_of(&world.open("bob").await), 1);
}

#[tokio::test]
async fn a_session_with_an_open_question_keeps_its_tools_until_it_is_answered() {
    let disk = Disk::new();
    let world = following(&disk).await;
    let session = world.open("ann").await;
    session.begin_turn(None);
    let connection = session.connect();
    drop(connection.submit(vec![Call::new("ask", json!({}))]).all().await);
    drop(connection);
    save(&world, 1).await;
    let session = repin(&world, session, "ann").await;
    assert_eq!(version_of(&session), 0);
    drop(session);
    save(&world, 2).await;
    assert!(world.loaded().contains(&0), "the question is about its tools: {:?}", world.loaded());
}

#[tokio::test]
async fn a_session_that_is_still_connected_or_held_elsewhere_is_left_as_it_is() {
    let disk = Disk::new();
    let world = following(&disk).await;
    let session = world.open("ann").await;
    save(&world, 1).await;
    let connection = session.connect();
    let session = repin(&world, session, "ann").await;
    assert_eq!(version_of(&session), 0, "connected");
    drop(connection);
    let other = session.clone();
    let session = repin(&world, session, "ann").await;
    assert_eq!(version_of(&session), 0, "held");
    drop(other);
    assert_eq!(version_of(&repin(&world, session, "ann").await), 1);
}

#[tokio::test]
async fn a_voice_session_keeps_its_tools() {
    let disk = Disk::new();
    let world = following(&disk).await;
    let client = Client::anonymous("ann");
    let session = world.orchestrator.open(client, Mode::Voice, &world.registry).await.unwrap();
    save(&world, 1).await;
    assert_eq!(version_of(&repin(&world, session, "ann").await), 0);
}

#[tokio::test]
async fn versions_that_no_session_has_are_dropped_with_the_next_save() {
    let disk = Disk::new();
    let world = following(&disk).await;
    let session = world.open("ann").await;
    call(&session).await;
    let id = session.id().to_owned();
    for _ in 0..50 {
        for number in [1, 2, 0] {
            save(&world, number).await;
            assert!(world.loaded().len() <= 2, "{:?}", world.loaded());
        }
    }
    drop(session);
    save(&world, 1).await;
    assert_eq!(world.loaded(), [1], "a session that waits in the store moves on, too");
    let session = world.resume(&id, "ann").await;
    assert_eq!(version_of(&session), 1);
    call(&session).await;
}

#[tokio::test]
async fn a_save_is_never_refused_because_too_many_versions_are_loaded() {
    let disk = Disk::new();
    let world = following(&disk).await;
    let mut held = Vec::new();
    for number in 0..bundles().len() {
        save(&world, number).await;
        assert_eq!(version_of(&world.open("new").await), number);
        held.push(world.open("ann").await);
        assert!(world.loaded().len() <= world.admin.max_loaded(), "{:?}", world.loaded());
    }
    for session in &held {
        call(session).await;
    }
}

#[tokio::test]
async fn after_a_restart_nothing_of_what_a_folder_was_in_between_is_missed() {
    let disk = Disk::new();
    let world = following(&disk).await;
    let session = world.open("ann").await;
    call(&session).await;
    let id = session.id().to_owned();
    save(&world, 1).await;
    let other = world.open("bob").await;
    save(&world, 2).await;
    drop((session, other, world));
    let world = World::start(&disk, 2).await;
    assert_eq!(world.audit.count("version_not_loaded"), 0);
    assert!(world.loaded().contains(&2));
    call(&world.resume(&id, "ann").await).await;
    assert!(!world.loaded().contains(&1), "{}", digest(1));
}
