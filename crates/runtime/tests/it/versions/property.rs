//! A session never changes its variant, whatever operators do and however often the process ends.

use std::collections::BTreeMap;

use proptest::prelude::{Just, ProptestConfig, Strategy, prop, prop_oneof, proptest};
use quarterdeck_runtime::{Audience, PendingEnd, Session};
use serde_json::json;

use super::world::{Disk, World, bundles, call, digest, number_of, version_of};

/// As many as may be loaded, so that the limit refuses nothing.
const VERSIONS: usize = 4;
const CLIENTS: usize = 6;

#[derive(Debug, Clone)]
enum Step {
    Open(usize),
    Call(usize),
    /// Drops every handle, so that the session waits in the store.
    Leave(usize),
    End(usize),
    Activate(usize, bool),
    Retire(usize),
    Rollout(usize, u8, usize),
    Sweep,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..CLIENTS).prop_map(Step::Open),
        6 => (0..CLIENTS).prop_map(Step::Call),
        3 => (0..CLIENTS).prop_map(Step::Leave),
        1 => (0..CLIENTS).prop_map(Step::End),
        3 => (0..VERSIONS, prop::bool::ANY).prop_map(|(version, all)| Step::Activate(version, all)),
        3 => (0..VERSIONS).prop_map(Step::Retire),
        3 => (0..VERSIONS, 1..=100_u8, 0..VERSIONS).prop_map(|(share, percent, rest)| Step::Rollout(share, percent, rest)),
        2 => Just(Step::Sweep),
        2 => Just(Step::Restart),
    ]
}

/// What must be so: each client's session and its version.
#[derive(Default)]
struct Expected {
    sessions: BTreeMap<usize, (String, usize)>,
    held: BTreeMap<usize, Session>,
}

async fn run(steps: Vec<Step>) {
    let disk = Disk::new();
    let mut world = World::start(&disk, 0).await;
    let mut expected = Expected::default();
    for step in steps {
        match step {
            Step::Open(client) => {
                let session = world.open(&format!("web-{client}")).await;
                expected.sessions.insert(client, (session.id().to_owned(), version_of(&session)));
                expected.held.insert(client, session);
            }
            Step::Call(client) => {
                let Some((id, version)) = expected.sessions.get(&client) else { continue };
                let session = world.resume(id, &format!("web-{client}")).await;
                assert_eq!(version_of(&session), *version, "a session keeps its variant");
                call(&session).await;
                expected.held.insert(client, session);
            }
            Step::Leave(client) => drop(expected.held.remove(&client)),
            Step::End(client) => {
                let Some((id, _)) = expected.sessions.remove(&client) else { continue };
                let session = world.resume(&id, &format!("web-{client}")).await;
                session.end(PendingEnd::with_reason("done")).await;
                expected.held.remove(&client);
            }
            Step::Activate(version, all) => {
                let audience = if all { Audience::Everyone } else { Audience::Unchanged };
                let bundle = Some(bundles()[version].clone());
                world.admin.activate(&digest(version), bundle, audience).await.unwrap();
            }
            // What takes sessions is refused, and so are rules for what takes none: both change nothing.
            Step::Retire(version) => drop(world.admin.retire(&digest(version)).await),
            Step::Rollout(share, percent, rest) => {
                let share = json!({ "percent": percent, "version": digest(share) });
                let rules =
                    serde_json::from_value(json!({ "shares": [share], "rest": digest(rest) })).unwrap();
                drop(world.admin.set_rollout(rules).await);
            }
            Step::Sweep => drop(world.admin.drop_unheld().await.unwrap()),
            Step::Restart => {
                expected.held.clear();
                drop(world);
                world = World::start(&disk, 0).await;
            }
        }
    }
    for (client, (id, version)) in &expected.sessions {
        let session = world.resume(id, &format!("web-{client}")).await;
        assert_eq!(number_of(session.snapshot().content_hash()), *version);
        call(&session).await;
    }
    assert!(!world.audit.text().contains("\"pinnedAnew\":true"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_session_never_changes_its_variant(steps in prop::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run(steps));
    }
}
