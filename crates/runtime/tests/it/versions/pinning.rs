//! Which version a new session gets.

use std::collections::BTreeMap;
use std::sync::Arc;

use quarterdeck_contracts::Mode;
use quarterdeck_runtime::gates::ClientFacts;
use quarterdeck_runtime::{Client, RequestedVersion, SessionError};
use serde_json::json;

use super::world::{Disk, World, call, digest, number_of, version_of};

async fn two_versions() -> (Disk, World) {
    let disk = Disk::new();
    let world = World::start(&disk, 0).await;
    world.activate(1).await;
    (disk, world)
}

#[tokio::test]
async fn two_variants_share_ten_thousand_clients_as_the_rollout_says_to_one_point() {
    let (_disk, world) = two_versions().await;
    let share = json!({ "percent": 30, "version": digest(1) });
    world.set_rollout(json!({ "shares": [share], "rest": digest(0) })).await;
    let mut counts = [0_u32; 2];
    for number in 0..10_000 {
        let client = Client::anonymous(format!("web-{number}"));
        let pin = world.orchestrator.choose_tools(&client, &world.registry).unwrap();
        let again = world.orchestrator.choose_tools(&client, &world.registry).unwrap();
        assert_eq!(
            pin.snapshot.content_hash(),
            again.snapshot.content_hash(),
            "the same client, the same variant"
        );
        counts[number_of(pin.snapshot.content_hash())] += 1;
    }
    assert!((2_900..=3_100).contains(&counts[1]) && counts[0] + counts[1] == 10_000, "{counts:?}");
}

#[tokio::test]
async fn a_client_has_one_variant_in_all_its_sessions_and_the_trail_says_why() {
    let (_disk, world) = two_versions().await;
    let share = json!({ "percent": 50, "version": digest(1) });
    world.set_rollout(json!({ "shares": [share], "rest": digest(0) })).await;
    let mut seen = [0; 2];
    for number in 0..20 {
        let client = format!("web-{number}");
        let (first, second) = (world.open(&client).await, world.open(&client).await);
        assert_eq!(version_of(&first), version_of(&second));
        call(&first).await;
        seen[version_of(&first)] += 1;
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
    let trail = world.audit.text();
    let lines =
        |by: &str| trail.lines().filter(|line| line.contains(&format!("\"pinnedBy\":\"{by}\""))).count();
    assert_eq!((lines("percentage"), lines("rest")), (2 * seen[1], 2 * seen[0]));
    let calls: Vec<_> = trail.lines().filter(|line| line.starts_with("tool_execution")).collect();
    assert!(calls.iter().all(|line| line.contains("\"registryVersion\":\"1.0.")), "{calls:#?}");
    let metrics = world.orchestrator.metrics().versions();
    let of = |number: usize| &metrics[world.registry.versions()[number].snapshot.version()];
    assert_eq!((of(0).calls, of(1).calls), (seen[0] as u64, seen[1] as u64));
    assert_eq!((of(0).sessions, of(1).sessions), (2 * seen[0] as u64, 2 * seen[1] as u64));
}

#[tokio::test]
async fn claims_and_organisations_lead_to_their_versions() {
    let (_disk, world) = two_versions().await;
    world
        .set_rollout(json!({
            "claims": [{ "claim": "role=staff", "version": digest(1) }],
            "organisations": [{ "organisation": "acme", "version": digest(1) }],
            "rest": digest(0),
        }))
        .await;
    for (claims, expected) in [
        (json!({ "role": "staff" }), 1),
        (json!({ "role": "guest" }), 0),
        (json!({ "org_id": "acme" }), 1),
        (json!({ "org_id": ["acme"] }), 0),
        (json!({ "organisation": "acme" }), 0),
        (json!({}), 0),
    ] {
        let facts = ClientFacts {
            authenticated: true,
            claims: serde_json::from_value::<BTreeMap<_, _>>(claims.clone()).unwrap(),
        };
        let client = Client::known("ann", Arc::new(facts));
        let session = world.orchestrator.open(client, Mode::Text, &world.registry).await.unwrap();
        assert_eq!(version_of(&session), expected, "{claims}");
    }
}

#[tokio::test]
async fn a_header_counts_from_a_trusted_key_only_and_for_new_sessions_only() {
    let (_disk, world) = two_versions().await;
    world.set_rollout(json!({ "headerFrom": ["ci"], "rest": digest(0) })).await;
    let asking = |key: &str, version: &str| Client {
        requested_version: Some(RequestedVersion { key: key.into(), version: version.into() }),
        ..Client::anonymous(format!("key:{key}"))
    };
    let open = async |client: Client| world.orchestrator.open(client, Mode::Text, &world.registry).await;
    let label = world.registry.versions()[1].snapshot.version().to_owned();
    for name in [digest(1), digest(1)[..8].to_owned(), label, digest(1).to_uppercase()] {
        assert_eq!(version_of(&open(asking("ci", &name)).await.unwrap()), 1, "{name}");
        assert_eq!(version_of(&open(asking("other", &name)).await.unwrap()), 0, "{name}");
    }
    let session = open(asking("ci", &digest(1))).await.unwrap();
    let id = session.id().to_owned();
    for name in [digest(0), "1.0.unknown".into()] {
        let resumed = world.orchestrator.resume(&id, asking("ci", &name), &world.registry).await.unwrap();
        assert_eq!(version_of(&resumed), 1, "it is pinned for good");
    }
    for unknown in ["1.0.unknown", "", "0", &"f".repeat(64)] {
        let Err(SessionError::Version(error)) = open(asking("ci", unknown)).await else {
            panic!("another version than the one that was named must not answer")
        };
        assert!(error.to_string().contains("quarterdeck registry list"), "{error}");
    }
}
