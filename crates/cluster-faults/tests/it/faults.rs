//! Three nodes on a database: faults three times each under load. `scripts/soak` does all of them, fifty times.

use std::time::Duration;

use quarterdeck_cluster_faults::LoadSize;
use quarterdeck_cluster_faults::faults::{Fault, percentile, run};

const ROUNDS: usize = 3;
const SIZE: LoadSize = LoadSize { chats: 100, calls: 30, think: Duration::from_secs(6) };

async fn survives(fault: Fault) {
    let Some(report) = run(fault, ROUNDS, SIZE).await else { return };
    println!("{}: {:?}, {:#?}", fault.name(), report.counts, report.refusals);
    let (half, most) =
        (percentile(&report.calls_without_node, 50), percentile(&report.calls_without_node, 95));
    println!(
        "{} times a call was without a node, p50 {half:?}, p95 {most:?}",
        report.calls_without_node.len()
    );
    let found: Vec<String> = report.violations.iter().map(ToString::to_string).collect();
    assert!(found.is_empty() && report.troubles.is_empty(), "{found:#?} {:#?}", report.troubles);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_killed_in_a_write() {
    survives(Fault::Kill).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_paused_past_its_lease() {
    survives(Fault::Pause).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_cut_off_from_the_database_past_its_lease() {
    survives(Fault::Partition).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_restarted() {
    survives(Fault::Restart).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_are_cut_in_the_middle_of_commits() {
    survives(Fault::Cut).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failover_to_a_synchronous_standby() {
    survives(Fault::Failover).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_is_exhausted() {
    survives(Fault::Pool).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_five_minutes_off() {
    survives(Fault::Clock).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_clicks_on_one_approval() {
    survives(Fault::Clicks).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart() {
    survives(Fault::Rolling).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_whose_disk_is_full() {
    survives(Fault::Disk).await;
}
