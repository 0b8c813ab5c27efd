//! One node on a file: what several nodes must not do worse.

use std::time::Duration;

use quarterdeck_cluster_faults::{LoadSize, World, WorldOptions};

#[tokio::test(flavor = "multi_thread")]
async fn a_node_on_a_file_that_is_killed_in_its_writes_does_none_twice_and_loses_none() {
    let mut world = World::start(WorldOptions::file()).await.unwrap();
    let load = world.load(LoadSize { chats: 12, calls: 4, think: Duration::from_millis(400) });
    world.outside.set_delay(Duration::from_millis(60));
    for round in 0..3 {
        assert!(load.progresses(20, Duration::from_secs(60)).await, "round {round}: nothing is answered");
        world.nodes[0].kill();
        world.nodes[0].start();
    }
    assert!(load.progresses(20, Duration::from_secs(60)).await, "nothing is answered after the last kill");
    let outcome = world.judge(load).await;
    println!("{:?}", outcome.counts);
    let found: Vec<String> = outcome.violations.iter().map(ToString::to_string).collect();
    assert!(found.is_empty() && outcome.troubles.is_empty(), "{found:#?} {:#?}", outcome.troubles);
}
