//! The tables of `docs/SCALE.md`.

use std::fmt::Write;

use super::cluster::{Cluster, Load, Outcome, simulate};
use super::costs::Costs;
use super::plot::Curve;

const SEED: u64 = 19;
const SIMULATED_SECONDS: f64 = 8.0;
/// Parts of the question's load for each database, until one is beyond the knee.
const SHARES: [f64; 14] = [0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 24.0];
/// How often the step from the last good load to the first bad one is halved.
const KNEE_HALVINGS: u32 = 4;
const CORES_PER_NODE: usize = 8;
const CORES_PER_DATABASE: usize = 8;
/// Nodes are added until their cores are busy for no more than this, so that two of three carry the load of a lost one.
const MAX_NODE_BUSY: f64 = 0.5;
/// A load is beyond the knee when the 99th percentile is so many times that of the lightest one: as much time is spent
/// waiting then as working.
const KNEE_FACTOR: f64 = 2.0;
/// The load of the question: ten thousand calls at a time, and a million chats a day.
const CALLS: f64 = 10_000.0;
const CHATS_PER_DAY: f64 = 1e6;

/// The tables, and the curves that are drawn of them.
pub(crate) fn write(costs: &Costs) -> (String, Vec<Curve>) {
    let mut text = format!("Costs: {}.\n\n", costs.measured.on);
    demand(costs, &mut text);
    let mut knees = format!(
        "\n**The knee**: beyond it the 99th percentile is {KNEE_FACTOR} times that of the lightest load, or work comes faster than it is done\n\n\
         | databases | calls at a time | chats a day | nodes | commits/s | database CPU |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    let mut curves = Vec::new();
    for partitions in [1, 2, 4] {
        let steps = growing_load(costs, partitions);
        if partitions == 1 {
            growth(&steps, &mut text);
        }
        let knee = knee(costs, partitions, &steps);
        let _ = writeln!(
            knees,
            "| {partitions} | {} | {} | {} | {} | {:.0} % |",
            grouped(knee.share * CALLS),
            grouped(knee.share * CHATS_PER_DAY),
            knee.cluster.nodes,
            grouped(knee.outcome.commits_per_second),
            knee.outcome.database_busy * 100.0,
        );
        curves.push(curve(partitions, &steps));
    }
    text.push_str(&knees);
    disks(costs, &mut text);
    lost_node(costs, &mut text);
    (text, curves)
}

/// `share` of the load of the question, in the busiest hour of the day.
fn load(costs: &Costs, share: f64) -> Load {
    let assumed = &costs.assumed;
    let mean = CHATS_PER_DAY * assumed.turns_per_chat / 86_400.0;
    Load { turns_per_second: share * mean * assumed.peak_factor, calls: share * CALLS }
}

/// Cores of nodes that a load takes.
fn node_cores(costs: &Costs, load: Load) -> f64 {
    let measured = &costs.measured;
    let exchanges = load.calls / costs.assumed.exchange_seconds;
    load.calls * measured.audio_core
        + load.turns_per_second * measured.turn.node_cpu_us.mean() / 1e6
        + exchanges * measured.exchange.node_cpu_us.mean() / 1e6
}

fn cluster(costs: &Costs, load: Load, partitions: usize) -> Cluster {
    let nodes = (node_cores(costs, load) / MAX_NODE_BUSY / CORES_PER_NODE as f64).ceil() as usize;
    Cluster {
        nodes: nodes.max(2),
        cores_per_node: CORES_PER_NODE,
        partitions,
        cores_per_database: CORES_PER_DATABASE,
        sync_us: costs.measured.sync_us.scaled_to(costs.assumed.durable_sync_us),
    }
}

/// The arithmetic without queues.
fn demand(costs: &Costs, text: &mut String) {
    let (measured, assumed) = (&costs.measured, &costs.assumed);
    let full = load(costs, 1.0);
    let exchanges = full.calls / assumed.exchange_seconds;
    let rows = [
        ("turns of chats", full.turns_per_second, &measured.turn, 0.0),
        ("exchanges of calls", exchanges, &measured.exchange, full.calls * measured.audio_core),
    ];
    text.push_str(
        "| in the busiest hour | each second | node cores | of these audio | database cores | commits/s | log MB/s |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (name, rate, work, audio) in rows {
        let _ = writeln!(
            text,
            "| {name} | {rate:.0} | {:.1} | {audio:.1} | {:.1} | {:.0} | {:.1} |",
            audio + rate * work.node_cpu_us.mean() / 1e6,
            rate * work.database_cpu_us.mean() / 1e6,
            rate * work.commits,
            rate * work.log_bytes / 1e6,
        );
    }
}

/// One load and what came of it.
struct Step {
    share: f64,
    cluster: Cluster,
    outcome: Outcome,
}

/// `share` of the load on as many nodes as it needs.
fn step(costs: &Costs, share: f64, partitions: usize) -> Step {
    let offered = load(costs, share);
    let cluster = cluster(costs, offered, partitions);
    let outcome = simulate(&cluster, offered, costs, SEED, SIMULATED_SECONDS);
    Step { share, cluster, outcome }
}

/// More and more load on so many databases, up to the first that is beyond the knee.
fn growing_load(costs: &Costs, partitions: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for share in SHARES {
        let step = step(costs, share * partitions as f64, partitions);
        steps.push(step);
        if is_beyond_knee(&steps[0], &steps[steps.len() - 1]) {
            break;
        }
    }
    steps
}

/// The largest load that is not beyond the knee, as near as halving comes.
fn knee(costs: &Costs, partitions: usize, steps: &[Step]) -> Step {
    let share_of = |step: Option<&Step>| step.map_or(0.0, |step| step.share);
    let mut good = share_of(steps.iter().rfind(|step| !is_beyond_knee(&steps[0], step)));
    let mut bad = share_of(steps.last()).max(good);
    for _ in 0..KNEE_HALVINGS {
        let between = f64::midpoint(good, bad);
        let is_beyond = is_beyond_knee(&steps[0], &step(costs, between, partitions));
        *(if is_beyond { &mut bad } else { &mut good }) = between;
    }
    step(costs, good, partitions)
}

fn curve(partitions: usize, steps: &[Step]) -> Curve {
    let name = if partitions == 1 { "one database".to_owned() } else { format!("{partitions} databases") };
    let points = steps.iter().map(|step| (step.share * CALLS, step.outcome.turn_p99)).collect();
    Curve { name, points }
}

fn growth(steps: &[Step], text: &mut String) {
    let _ = write!(
        text,
        "\n**More and more load** on one database of {CORES_PER_DATABASE} cores, with nodes of {CORES_PER_NODE}\n\n\
         | calls at a time | chats a day | nodes | commits/s | for each sync | node CPU | database CPU | turn p50/p99 | exchange p50/p99 |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for Step { share, cluster, outcome } in steps {
        let _ = writeln!(text, "{}", row(*share, cluster, outcome));
    }
}

fn is_beyond_knee(lightest: &Step, step: &Step) -> bool {
    let (light, outcome) = (&lightest.outcome, &step.outcome);
    !outcome.keeps_up
        || outcome.turn_p99 > KNEE_FACTOR * light.turn_p99
        || outcome.exchange_p99 > KNEE_FACTOR * light.exchange_p99
}

fn row(share: f64, cluster: &Cluster, outcome: &Outcome) -> String {
    let times = |p50: f64, p99: f64| {
        if outcome.keeps_up { format!("{p50:.1}/{p99:.1} ms") } else { "grows without end".to_owned() }
    };
    format!(
        "| {} | {} | {} | {} | {:.1} | {:.0} % | {:.0} % | {} | {} |",
        grouped(share * CALLS),
        grouped(share * CHATS_PER_DAY),
        cluster.nodes,
        grouped(outcome.commits_per_second),
        outcome.commits_per_sync,
        outcome.node_busy * 100.0,
        outcome.database_busy * 100.0,
        times(outcome.turn_p50, outcome.turn_p99),
        times(outcome.exchange_p50, outcome.exchange_p99),
    )
}

/// The question's load on disks that sync faster and slower.
fn disks(costs: &Costs, text: &mut String) {
    text.push_str(
        "\n**The same load on other disks**: 10,000 calls and a million chats, one database\n\n\
         | one sync | commits for each sync | database CPU | turn p50/p99 | exchange p50/p99 |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    let offered = load(costs, 1.0);
    for sync_ms in [0.1, 0.5, 2.0, 5.0, 10.0] {
        let mut cluster = cluster(costs, offered, 1);
        cluster.sync_us = costs.measured.sync_us.scaled_to(sync_ms * 1e3);
        let outcome = simulate(&cluster, offered, costs, SEED, SIMULATED_SECONDS);
        let times = |p50: f64, p99: f64| format!("{p50:.1}/{p99:.1} ms");
        let _ = writeln!(
            text,
            "| {sync_ms} ms | {:.1} | {:.0} % | {} | {} |",
            outcome.commits_per_sync,
            outcome.database_busy * 100.0,
            times(outcome.turn_p50, outcome.turn_p99),
            times(outcome.exchange_p50, outcome.exchange_p99),
        );
    }
}

/// What the nodes that are left do with the load of all.
fn lost_node(costs: &Costs, text: &mut String) {
    let offered = load(costs, 1.0);
    let whole = cluster(costs, offered, 1);
    let _ = write!(
        text,
        "\n**Nodes lost** under the same load, of {} with {CORES_PER_NODE} cores\n\n\
         | nodes left | node CPU | turn p50/p99 | exchange p50/p99 |\n| --- | --- | --- | --- |\n",
        whole.nodes,
    );
    for nodes in (1..=whole.nodes).rev() {
        let left = Cluster { nodes, ..whole.clone() };
        let outcome = simulate(&left, offered, costs, SEED, SIMULATED_SECONDS);
        let times = |p50: f64, p99: f64| {
            if outcome.keeps_up { format!("{p50:.1}/{p99:.1} ms") } else { "grows without end".to_owned() }
        };
        let _ = writeln!(
            text,
            "| {nodes} | {:.0} % | {} | {} |",
            outcome.node_busy * 100.0,
            times(outcome.turn_p50, outcome.turn_p99),
            times(outcome.exchange_p50, outcome.exchange_p99),
        );
        if !outcome.keeps_up {
            break;
        }
    }
}

/// A number with a comma between thousands.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
