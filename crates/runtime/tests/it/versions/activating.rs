//! What may be activated, and what is refused with the way out.

use std::collections::BTreeSet;

use quarterdeck_runtime::{AllowedDigests, Audience, VersionError};

use super::world::{Disk, MAX_LOADED, World, bundles, call, digest, version_of};

#[tokio::test]
async fn activation_is_for_new_sessions_and_rolling_back_needs_the_digest_alone() {
    let disk = Disk::new();
    let world = World::start(&disk, 0).await;
    let before = world.open("ann").await;
    world.activate(1).await;
    let after = world.open("ann").await;
    assert_eq!((version_of(&before), version_of(&after)), (0, 1));
    call(&before).await;
    call(&after).await;
    // The one of the start was stored, so that its digest brings it back even when it was dropped.
    drop(before);
    world.admin.retire(&digest(0)).await.unwrap();
    world.admin.activate(&digest(0), None, Audience::Everyone).await.unwrap();
    let rolled_back = world.open("ann").await;
    assert_eq!((version_of(&after), version_of(&rolled_back)), (1, 0));
    call(&rolled_back).await;
}

#[tokio::test]
async fn a_version_can_be_loaded_without_any_session() {
    let disk = Disk::new();
    let world = World::start(&disk, 0).await;
    let bundle = Some(bundles()[1].clone());
    world.admin.activate(&digest(1), bundle, Audience::Unchanged).await.unwrap();
    assert_eq!((world.loaded(), version_of(&world.open("ann").await)), (vec![0, 1], 0));
}

#[tokio::test]
async fn what_is_not_the_digest_is_refused_and_changes_nothing() {
    let disk = Disk::new();
    let world = World::start(&disk, 0).await;
    let activate = async |name: &str, bundle| {
        world.admin.activate(name, bundle, Audience::Everyone).await.err().unwrap()
    };
    let other = activate(&digest(1), Some(bundles()[2].clone())).await;
    assert!(other.to_string().contains(&digest(2)) && other.to_string().contains(&digest(1)), "{other}");
    let missing = activate(&digest(3), None).await.to_string();
    assert!(missing.contains("--artifact"), "{missing}");
    for name in ["latest", "", "1.0.12345678", "../../../etc/passwd", &"G".repeat(64)] {
        assert!(matches!(activate(name, None).await, VersionError::NotADigest { .. }), "{name}");
    }
    assert_eq!(world.loaded(), [0]);
    assert_eq!(version_of(&world.open("ann").await), 0);
}

#[tokio::test]
async fn a_locked_server_takes_only_the_digests_that_it_was_started_with() {
    let disk = Disk::new();
    let allowed = AllowedDigests::Listed(BTreeSet::from([digest(1)]));
    let world = World::start_with(&disk, 0, allowed.clone()).await;
    world.activate(1).await;
    let bundle = Some(bundles()[2].clone());
    let error = world.admin.activate(&digest(2), bundle, Audience::Everyone).await.err().unwrap();
    assert!(error.to_string().contains(&format!("--allow-digests {}", digest(2))), "{error}");
    assert!(!disk.bundle_file(2).exists(), "nor is it stored");
    world.admin.activate(&digest(0), None, Audience::Everyone).await.unwrap();
    assert_eq!(world.loaded(), [0, 1]);
}

#[tokio::test]
async fn the_number_of_loaded_versions_is_bounded() {
    let disk = Disk::new();
    let world = World::start(&disk, 0).await;
    for number in 1..MAX_LOADED {
        world.activate(number).await;
    }
    let bundle = Some(bundles()[MAX_LOADED].clone());
    let error = world.admin.activate(&digest(MAX_LOADED), bundle, Audience::Everyone).await.err().unwrap();
    assert!(error.to_string().contains("retire one, or raise `versions.max_loaded`"), "{error}");
    assert_eq!(world.loaded().len(), MAX_LOADED);
    world.admin.retire(&digest(0)).await.unwrap();
    world.activate(MAX_LOADED).await;
    assert_eq!(world.loaded(), [1, 2, 3, 4]);
}
