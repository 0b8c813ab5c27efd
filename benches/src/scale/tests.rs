//! The simulator against what queueing theory knows in closed form.

use super::cluster::{Cluster, Load, Outcome, simulate};
use super::costs::{Assumed, Costs, Measured, Work};
use super::random::{Quantiles, Random};
use super::stations::{Log, Station};

fn constant(value: f64) -> Quantiles {
    Quantiles(vec![value, value])
}

/// Turns of `node_us` and exchanges of the same; no commits and no network unless a test says otherwise.
fn costs(node_us: f64) -> Costs {
    let work = Work {
        node_cpu_us: constant(node_us),
        database_cpu_us: constant(200.0),
        commits: 0.0,
        log_bytes: 0.0,
    };
    Costs {
        measured: Measured {
            on: String::new(),
            turn: work.clone(),
            exchange: work,
            audio_core: 0.0,
            sync_us: constant(1_000.0),
        },
        assumed: Assumed {
            turns_per_chat: 5.0,
            peak_factor: 3.0,
            exchange_seconds: 10.0,
            round_trip_us: 0.0,
            durable_sync_us: 1_000.0,
            node_commits_per_second: 0.0,
            pool_size: 16,
        },
    }
}

fn cluster() -> Cluster {
    Cluster { nodes: 1, cores_per_node: 1, partitions: 1, cores_per_database: 4, sync_us: constant(1_000.0) }
}

fn run(costs: &Costs, cluster: &Cluster, turns_per_second: f64, seconds: f64) -> Outcome {
    simulate(cluster, Load { turns_per_second, calls: 0.0 }, costs, 5, seconds)
}

fn assert_near(measured: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((measured / expected - 1.0).abs() < tolerance, "{what}: {measured} instead of {expected}");
}

/// The mean wait of M/M/c by Erlang's formula C.
fn erlang_wait(rate: f64, mean_service: f64, servers: u32) -> f64 {
    let offered = rate * mean_service;
    let mut term = 1.0;
    let mut sum = 0.0;
    for busy in 0..servers {
        sum += term;
        term *= offered / f64::from(busy + 1);
    }
    let last = term / (1.0 - offered / f64::from(servers));
    let waits = last / (sum + last);
    waits * mean_service / (f64::from(servers) - offered)
}

/// The mean wait at a station whose arrivals and services are both exponential, by simulation.
fn simulated_wait(rate: f64, mean_service: f64, servers: usize) -> f64 {
    let mut random = Random::new(11);
    let mut station = Station::new(servers);
    let (mut ends, mut total, mut count): (Vec<f64>, f64, u32) = (Vec::new(), 0.0, 0);
    let mut next_arrival = random.exponential(1.0 / rate);
    while count < 400_000 {
        let next_end = ends.iter().copied().min_by(f64::total_cmp).unwrap_or(f64::INFINITY);
        let now = next_arrival.min(next_end);
        let started = if next_end <= next_arrival {
            ends.retain(|end| *end > next_end);
            station.leave(now)
        } else {
            next_arrival = now + random.exponential(1.0 / rate);
            station.enter(now, now)
        };
        if let Some(arrived) = started {
            total += now - arrived;
            count += 1;
            ends.push(now + random.exponential(mean_service));
        }
    }
    total / f64::from(count)
}

#[test]
fn station_waits_as_erlang_says() {
    for (rate, servers) in [(0.8, 1), (3.2, 4), (14.0, 16)] {
        let expected = erlang_wait(rate, 1.0, servers);
        assert_near(simulated_wait(rate, 1.0, servers as usize), expected, 0.06, "mean wait of M/M/c");
    }
    // A value from the tables: M/M/1 at 80 % waits four services.
    assert_near(erlang_wait(0.8, 1.0, 1), 4.0, 1e-9, "Erlang C with one server");
}

#[test]
fn one_core_waits_as_pollaczek_and_khinchine_say() {
    let (service_ms, busy) = (2.0, 0.7);
    let outcome = run(&costs(service_ms * 1e3), &cluster(), busy / service_ms * 1e3, 600.0);
    let expected = service_ms + busy * service_ms / (2.0 * (1.0 - busy));
    assert_near(outcome.turn_mean, expected, 0.03, "mean time of M/D/1");
    assert_near(outcome.node_busy, busy, 0.02, "utilisation");
    assert!(outcome.keeps_up);
}

#[test]
fn audio_slows_turns_down_as_a_slower_core_would() {
    let mut costs = costs(1_000.0);
    costs.measured.audio_core = 0.001;
    costs.assumed.exchange_seconds = 1e12;
    let load = Load { turns_per_second: 300.0, calls: 500.0 };
    let outcome = simulate(&cluster(), load, &costs, 5, 600.0);
    // Half of the core is left: services of 2 ms, 60 % of its time.
    assert_near(outcome.turn_mean, 2.0 + 0.6 * 2.0 / (2.0 * 0.4), 0.03, "mean time beside audio");
    assert_near(outcome.node_busy, 0.5 + 0.3, 0.02, "utilisation with audio");
}

#[test]
fn log_shares_syncs_as_the_theory_of_bulk_service_says() {
    // A sync takes D for everything that waits. Idle with probability 1 / (1 + r D exp(r D)); who comes while it runs
    // waits for half a sync in the mean, then for its own.
    let (rate, sync) = (800.0, 0.002_f64);
    let mut random = Random::new(3);
    let mut log = Log::new();
    let (mut next_arrival, mut next_end) = (0.0, f64::INFINITY);
    let (mut total, mut count) = (0.0, 0_u32);
    while count < 400_000 {
        if next_arrival < next_end {
            if log.enter(next_arrival) {
                next_end = next_arrival + sync;
            }
            next_arrival += random.exponential(1.0 / rate);
        } else {
            let (done, again) = log.finish();
            total += done.iter().map(|arrived| next_end - arrived).sum::<f64>();
            count += done.len() as u32;
            next_end = if again { next_end + sync } else { f64::INFINITY };
        }
    }
    let product = rate * sync * (rate * sync).exp();
    let expected = sync + product / (1.0 + product) * sync / 2.0;
    assert_near(total / f64::from(count), expected, 0.01, "mean time to durable");
}

#[test]
fn unloaded_turn_takes_the_sum_of_its_parts() {
    let mut costs = costs(900.0);
    costs.measured.turn.commits = 2.0;
    costs.measured.turn.database_cpu_us = constant(400.0);
    costs.assumed.round_trip_us = 250.0;
    let outcome = run(&costs, &cluster(), 1.0, 400.0);
    assert_near(outcome.turn_p50, 0.9 + 2.0 * (0.25 + 0.2 + 1.0), 0.001, "time of a turn without a queue");
    assert_near(outcome.commits_per_second, 2.0, 0.1, "commits");
}

#[test]
fn databases_share_the_work_and_move_the_knee() {
    let mut costs = costs(100.0);
    costs.measured.turn.commits = 4.0;
    costs.measured.turn.database_cpu_us = constant(4_000.0);
    let mut cluster = Cluster { nodes: 4, cores_per_node: 4, ..cluster() };
    // Four cores do a thousand turns of 4 ms each second.
    let at = |cluster: &Cluster, rate| run(&costs, cluster, rate, 20.0);
    let (calm, near, beyond) = (at(&cluster, 500.0), at(&cluster, 950.0), at(&cluster, 1_200.0));
    assert_near(calm.database_busy, 0.5, 0.03, "utilisation of the database");
    assert!(near.turn_p99 > 1.5 * calm.turn_p99, "{near:?} {calm:?}");
    assert!(near.keeps_up && !beyond.keeps_up, "{near:?} {beyond:?}");
    cluster.partitions = 2;
    assert!(at(&cluster, 1_200.0).keeps_up);
}

#[test]
fn same_seed_has_the_same_outcome() {
    let costs = costs(500.0);
    let with = |seed| simulate(&cluster(), Load { turns_per_second: 900.0, calls: 10.0 }, &costs, seed, 20.0);
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
}

#[test]
fn costs_that_cannot_be_drawn_from_are_refused() {
    let text = include_str!("../../fixtures/cluster-costs.json");
    assert!(Costs::parse(text).is_ok());
    let one = text.replacen("\"sync_us\": [", "\"sync_us\": [-1.0, ", 1);
    assert_ne!(one, text);
    let refused = Costs::parse(&one).expect_err("a negative time is refused");
    assert!(refused.contains("-1.0"), "{refused}");
}
