//! The faults, and a run of one of them under load.

mod database;
mod nodes;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::chat::Chat;
use crate::checker::{Counts, Violation};
use crate::database::Setup;
use crate::journal::Ask;
use crate::load::{Load, LoadSize};
use crate::world::{Engine, World, WorldOptions};

/// How long the site may take until it answers again.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(90);
/// How many answers show that it does.
const RECOVERED_ANSWERS: usize = 10;
/// Clicks on one approval, at the same time, over all nodes.
const CLICKS: usize = 100;
/// Connections of a node whose pool is too small for its load.
const SMALL_POOL: usize = 2;

/// Something that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// `kill -9` of a node in a write.
    Kill,
    /// A node gets no time for longer than its lease, and then goes on as if nothing had been.
    Pause,
    /// A node's packets to the database are swallowed for longer than its lease.
    Partition,
    /// The database is restarted.
    Restart,
    /// Lines are cut in commits: before they arrive, while they are worked on, and between them and their answer.
    Cut,
    /// The database is lost and its synchronous standby takes its place.
    Failover,
    /// There are far fewer connections than calls.
    Pool,
    /// A node's clock is five minutes ahead, or behind, or jumps.
    Clock,
    /// A hundred clicks on one approval over all nodes.
    Clicks,
    /// One node after the other is stopped and started.
    Rolling,
    /// The disk of the database is full for a while.
    Disk,
}

impl Fault {
    pub const ALL: [Self; 11] = [
        Self::Kill,
        Self::Pause,
        Self::Partition,
        Self::Restart,
        Self::Cut,
        Self::Failover,
        Self::Pool,
        Self::Clock,
        Self::Clicks,
        Self::Rolling,
        Self::Disk,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Pause => "pause",
            Self::Partition => "partition",
            Self::Restart => "restart",
            Self::Cut => "cut",
            Self::Failover => "failover",
            Self::Pool => "pool",
            Self::Clock => "clock",
            Self::Clicks => "clicks",
            Self::Rolling => "rolling",
            Self::Disk => "disk",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }

    fn options(self) -> WorldOptions {
        let cluster = WorldOptions::cluster();
        match self {
            Self::Failover => WorldOptions { engine: Engine::Postgres(Setup::Two), ..cluster },
            Self::Disk => WorldOptions { engine: Engine::Postgres(Setup::SmallDisk), ..cluster },
            Self::Pool => WorldOptions { pool: Some(SMALL_POOL), ..cluster },
            Self::Clock => WorldOptions { has_clock: true, ..cluster },
            _ => cluster,
        }
    }

    /// How long the site is well before the next one of a kind that lasts, so that users who were not heard can say it again.
    fn calm(self) -> Duration {
        match self {
            Self::Pause | Self::Partition => Duration::from_secs(8),
            _ => Duration::ZERO,
        }
    }

    /// Injects it once, and heals it.
    async fn inject(self, world: &mut World, load: &Load, round: usize) {
        match self {
            Self::Kill => nodes::kill(world, round).await,
            Self::Pause => nodes::pause(world, round).await,
            Self::Partition => database::partition(world, round).await,
            Self::Restart => database::restart(world, round),
            Self::Cut => database::cut(world, round).await,
            Self::Failover => database::fail_over(world),
            Self::Pool => database::exhaust_pool(world).await,
            Self::Clock => nodes::set_clock(world, round).await,
            Self::Clicks => Chat::new(load.surroundings(), 1_000 + round).await.click_often(CLICKS).await,
            Self::Rolling => nodes::roll(world),
            Self::Disk => database::fill_disk(world).await,
        }
    }
}

/// What came of a fault that was injected again and again.
pub struct Report {
    pub fault: Fault,
    pub rounds: usize,
    pub counts: Counts,
    pub violations: Vec<Violation>,
    /// What did not work, though no promise was broken.
    pub troubles: Vec<String>,
    /// How long it took after each fault until the site answered again.
    pub recoveries: Vec<Duration>,
    /// How long calls were without a node.
    pub calls_without_node: Vec<Duration>,
    /// How long chats took that had to ask again.
    pub chats_asked_again: Vec<Duration>,
    /// Requests that were refused as a whole, by reason.
    pub refusals: Vec<(String, usize)>,
    /// What happened to the clients of broken promises.
    pub stories: BTreeMap<String, Ask>,
    /// What the nodes have printed.
    pub logs: Vec<String>,
}

/// Injects a fault so often under a load. Nothing where something is not installed that it needs.
pub async fn run(fault: Fault, rounds: usize, size: LoadSize) -> Option<Report> {
    let mut world = World::start(fault.options()).await?;
    let load = world.load(size);
    let (mut troubles, mut recoveries) = (Vec::new(), Vec::new());
    if !load.progresses(RECOVERED_ANSWERS, RECOVERY_TIMEOUT).await {
        troubles.push("nothing is answered before the first fault".to_owned());
    }
    for round in 0..rounds {
        fault.inject(&mut world, &load, round).await;
        let begin = Instant::now();
        if load.progresses(RECOVERED_ANSWERS, RECOVERY_TIMEOUT).await {
            recoveries.push(begin.elapsed());
            tokio::time::sleep(fault.calm()).await;
        } else {
            troubles
                .push(format!("round {}: nothing is answered for {RECOVERY_TIMEOUT:?} after it", round + 1));
            break;
        }
    }
    recoveries.sort();
    let logs = world.nodes.iter().map(|node| node.log()).collect::<Vec<_>>();
    let outcome = world.judge(load).await;
    troubles.extend(outcome.troubles);
    let journal = &outcome.of.journal;
    let mut stories = journal.asks();
    stories.retain(|key, _| outcome.violations.iter().any(|violation| violation.key() == Some(key)));
    Some(Report {
        fault,
        rounds,
        counts: outcome.counts,
        violations: outcome.violations,
        troubles,
        recoveries,
        calls_without_node: journal.times("call goes on"),
        chats_asked_again: journal.times("chat after a fault"),
        refusals: journal.refusals().into_iter().collect(),
        stories,
        logs: logs.into_iter().map(|log| log.lock().unwrap().clone()).collect(),
    })
}

/// One of so many parts of sorted times, the shortest first.
pub fn percentile(times: &[Duration], percent: usize) -> Option<Duration> {
    times.get((times.len() * percent).div_ceil(100).saturating_sub(1)).copied()
}
