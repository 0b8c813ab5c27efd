//! Nodes, their pools and partitioned databases under a load of turns and calls, event by event.
//!
//! A turn takes the CPU of its node in pieces; between two of them is a commit, which waits for a connection of the node's
//! pool, the network, the database's CPU and the sync of its log. What the model takes is left out: it delays a turn and
//! loads nothing. Audio is a steady part of a node's cores, so it slows everything else on them down.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::costs::{Costs, Work};
use super::random::{Quantiles, Random};
use super::stations::{Log, Station};

/// The machines.
#[derive(Debug, Clone)]
pub(crate) struct Cluster {
    pub(crate) nodes: usize,
    pub(crate) cores_per_node: usize,
    /// Databases, each with a part of the sessions.
    pub(crate) partitions: usize,
    pub(crate) cores_per_database: usize,
    pub(crate) sync_us: Quantiles,
}

/// What is asked of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Load {
    pub(crate) turns_per_second: f64,
    /// Calls at a time.
    pub(crate) calls: f64,
}

/// What came of it. Times are what the machines add to a turn or an exchange, in milliseconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) turn_mean: f64,
    pub(crate) turn_p50: f64,
    pub(crate) turn_p99: f64,
    pub(crate) exchange_p50: f64,
    pub(crate) exchange_p99: f64,
    /// Parts of the time that cores were busy, audio included.
    pub(crate) node_busy: f64,
    pub(crate) database_busy: f64,
    pub(crate) commits_per_second: f64,
    pub(crate) commits_per_sync: f64,
    /// Whether work was done as fast as it came.
    pub(crate) keeps_up: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Turn,
    Exchange,
    /// A node renews its row.
    Renewal,
}

struct Job {
    kind: Kind,
    arrived: f64,
    node: usize,
    database: usize,
    commits_left: u32,
    node_seconds: f64,
    database_seconds: f64,
}

enum Event {
    Arrive(Kind),
    NodeDone(Job),
    AtDatabase(Job),
    DatabaseDone(Job),
    Synced { database: usize },
    Committed(Job),
}

struct Timed {
    at: f64,
    number: u64,
    event: Event,
}

impl PartialEq for Timed {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Timed {}
impl PartialOrd for Timed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Timed {
    // The heap gives its largest: the earliest, and of two at the same time the one that was made first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.total_cmp(&self.at).then(other.number.cmp(&self.number))
    }
}

/// Runs so many seconds, the first fifth of which is not counted in the times.
pub(crate) fn simulate(cluster: &Cluster, load: Load, costs: &Costs, seed: u64, seconds: f64) -> Outcome {
    let mut run = Run::new(cluster, load, costs, seed, seconds);
    for kind in [Kind::Turn, Kind::Exchange, Kind::Renewal] {
        run.expect_arrival(kind);
    }
    while let Some(next) = run.events.pop() {
        if next.at > seconds {
            break;
        }
        run.now = next.at;
        run.handle(next.event);
    }
    run.outcome()
}

struct Run<'a> {
    cluster: &'a Cluster,
    costs: &'a Costs,
    load: Load,
    random: Random,
    events: BinaryHeap<Timed>,
    numbers: u64,
    now: f64,
    seconds: f64,
    cores: Vec<Station<Job>>,
    pools: Vec<Station<Job>>,
    databases: Vec<Station<Job>>,
    logs: Vec<Log<Job>>,
    tally: Tally,
}

#[derive(Default)]
struct Tally {
    turns: Vec<f64>,
    exchanges: Vec<f64>,
    arrived: u64,
    done: u64,
    commits: u64,
}

impl<'a> Run<'a> {
    fn new(cluster: &'a Cluster, load: Load, costs: &'a Costs, seed: u64, seconds: f64) -> Self {
        let stations = |count: usize, servers: usize| (0..count).map(|_| Station::new(servers)).collect();
        Self {
            cluster,
            costs,
            load,
            random: Random::new(seed),
            events: BinaryHeap::new(),
            numbers: 0,
            now: 0.0,
            seconds,
            cores: stations(cluster.nodes, cluster.cores_per_node),
            pools: stations(cluster.nodes, costs.assumed.pool_size),
            databases: stations(cluster.partitions, cluster.cores_per_database),
            logs: (0..cluster.partitions).map(|_| Log::new()).collect(),
            tally: Tally::default(),
        }
    }

    fn after(&mut self, seconds: f64, event: Event) {
        self.numbers += 1;
        self.events.push(Timed { at: self.now + seconds, number: self.numbers, event });
    }

    fn expect_arrival(&mut self, kind: Kind) {
        let assumed = &self.costs.assumed;
        let per_second = match kind {
            Kind::Turn => self.load.turns_per_second,
            Kind::Exchange => self.load.calls / assumed.exchange_seconds,
            Kind::Renewal => assumed.node_commits_per_second * self.cluster.nodes as f64,
        };
        if per_second > 0.0 {
            let wait = self.random.exponential(1.0 / per_second);
            self.after(wait, Event::Arrive(kind));
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrive(kind) => {
                self.expect_arrival(kind);
                self.tally.arrived += 1;
                let job = self.job(kind);
                self.compute(job);
            }
            Event::NodeDone(job) => {
                let node = job.node;
                if let Some(next) = self.cores[node].leave(self.now) {
                    self.run_on_node(next);
                }
                self.go_on(job);
            }
            Event::AtDatabase(job) => {
                let database = job.database;
                if let Some(job) = self.databases[database].enter(job, self.now) {
                    self.after(job.database_seconds, Event::DatabaseDone(job));
                }
            }
            Event::DatabaseDone(job) => {
                let database = job.database;
                if let Some(next) = self.databases[database].leave(self.now) {
                    self.after(next.database_seconds, Event::DatabaseDone(next));
                }
                if self.logs[database].enter(job) {
                    self.sync(database);
                }
            }
            Event::Synced { database } => self.synced(database),
            Event::Committed(job) => {
                self.tally.commits += 1;
                if let Some(next) = self.pools[job.node].leave(self.now) {
                    self.send(next);
                }
                self.compute(job);
            }
        }
    }

    fn job(&mut self, kind: Kind) -> Job {
        let (node, database) =
            (self.random.below(self.cluster.nodes), self.random.below(self.cluster.partitions));
        let measured = &self.costs.measured;
        let work = match kind {
            Kind::Turn | Kind::Renewal => &measured.turn,
            Kind::Exchange => &measured.exchange,
        };
        let Work { node_cpu_us, database_cpu_us, commits, .. } = work;
        let mut share = 1.0;
        let commits_left = match kind {
            // One commit of the many that a turn has.
            Kind::Renewal => {
                share = 1.0 / commits.max(1.0);
                1
            }
            _ => self.random.around(*commits),
        };
        let node_seconds = node_cpu_us.draw(&mut self.random) * share / 1e6 / f64::from(commits_left + 1);
        let database_seconds =
            database_cpu_us.draw(&mut self.random) * share / 1e6 / f64::from(commits_left.max(1));
        Job { kind, arrived: self.now, node, database, commits_left, node_seconds, database_seconds }
    }

    fn compute(&mut self, job: Job) {
        if let Some(job) = self.cores[job.node].enter(job, self.now) {
            self.run_on_node(job);
        }
    }

    fn run_on_node(&mut self, job: Job) {
        self.after(job.node_seconds / (1.0 - self.audio()).max(0.001), Event::NodeDone(job));
    }

    /// The part of each node's cores that audio takes.
    fn audio(&self) -> f64 {
        let cores = (self.cluster.nodes * self.cluster.cores_per_node) as f64;
        (self.load.calls * self.costs.measured.audio_core / cores).min(1.0)
    }

    /// After a piece of the node's work: the next commit, or the end.
    fn go_on(&mut self, mut job: Job) {
        if job.commits_left == 0 {
            return self.end(&job);
        }
        job.commits_left -= 1;
        if let Some(job) = self.pools[job.node].enter(job, self.now) {
            self.send(job);
        }
    }

    fn send(&mut self, job: Job) {
        let one_way = self.costs.assumed.round_trip_us / 2e6;
        self.after(one_way, Event::AtDatabase(job));
    }

    fn sync(&mut self, database: usize) {
        let seconds = self.cluster.sync_us.draw(&mut self.random) / 1e6;
        self.after(seconds, Event::Synced { database });
    }

    fn synced(&mut self, database: usize) {
        let (done, again) = self.logs[database].finish();
        let one_way = self.costs.assumed.round_trip_us / 2e6;
        for job in done {
            self.after(one_way, Event::Committed(job));
        }
        if again {
            self.sync(database);
        }
    }

    fn end(&mut self, job: &Job) {
        self.tally.done += 1;
        if job.arrived < self.seconds / 5.0 {
            return;
        }
        let milliseconds = (self.now - job.arrived) * 1e3;
        match job.kind {
            Kind::Turn => self.tally.turns.push(milliseconds),
            Kind::Exchange => self.tally.exchanges.push(milliseconds),
            Kind::Renewal => {}
        }
    }

    fn outcome(mut self) -> Outcome {
        let (now, audio) = (self.seconds, self.audio());
        let mean = |stations: &mut [Station<Job>]| -> f64 {
            let busy: f64 = stations.iter_mut().map(|station| station.utilisation(now)).sum();
            busy / stations.len() as f64
        };
        let syncs: u64 = self.logs.iter().map(|log| log.syncs).sum();
        let computing = mean(&mut self.cores);
        let Tally { turns, exchanges, arrived, done, commits } = self.tally;
        let turn_mean = turns.iter().sum::<f64>() / turns.len().max(1) as f64;
        let [turn_p50, turn_p99] = percentiles(turns);
        let [exchange_p50, exchange_p99] = percentiles(exchanges);
        Outcome {
            turn_mean,
            turn_p50,
            turn_p99,
            exchange_p50,
            exchange_p99,
            node_busy: audio + computing * (1.0 - audio),
            database_busy: mean(&mut self.databases),
            commits_per_second: commits as f64 / now,
            commits_per_sync: commits as f64 / syncs.max(1) as f64,
            keeps_up: done as f64 > 0.98 * arrived as f64,
        }
    }
}

fn percentiles(mut values: Vec<f64>) -> [f64; 2] {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    [50, 99].map(|percent| values.get(last * percent / 100).copied().unwrap_or(0.0))
}
