//! What turns and calls cost: measured by `scripts/bench-cluster --record`, and the assumptions about users beside it.

use serde::Deserialize;

use super::random::Quantiles;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Costs {
    pub(crate) measured: Measured,
    pub(crate) assumed: Assumed,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Measured {
    /// Of what and where, for the reader of the output.
    pub(crate) on: String,
    /// One turn of a written conversation.
    pub(crate) turn: Work,
    /// One exchange of a call: the user speaks, the agent looks something up and answers.
    pub(crate) exchange: Work,
    /// The part of one core that the audio of one call takes.
    pub(crate) audio_core: f64,
    /// One sync of the database's log.
    pub(crate) sync_us: Quantiles,
}

/// What one unit of work takes.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Work {
    pub(crate) node_cpu_us: Quantiles,
    pub(crate) database_cpu_us: Quantiles,
    /// Durable commits, in the mean.
    pub(crate) commits: f64,
    /// Bytes of the database's log, in the mean.
    pub(crate) log_bytes: f64,
}

/// What was not measured, because it is up to users, providers and the data centre.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Assumed {
    pub(crate) turns_per_chat: f64,
    /// How much busier than the mean the busiest hour of a day is.
    pub(crate) peak_factor: f64,
    /// From one exchange of a call to the next.
    pub(crate) exchange_seconds: f64,
    /// From a node to the database and back.
    pub(crate) round_trip_us: f64,
    /// A sync on a disk that survives a power cut, where the measured one does not.
    pub(crate) durable_sync_us: f64,
    /// Commits of a node that renews its row and takes part in chores, each second.
    pub(crate) node_commits_per_second: f64,
    /// Connections of one node.
    pub(crate) pool_size: usize,
}

impl Costs {
    /// Reads a file of costs.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let costs: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let Measured { turn, exchange, sync_us, .. } = &costs.measured;
        let all = [turn, exchange]
            .into_iter()
            .flat_map(|work| [&work.node_cpu_us, &work.database_cpu_us])
            .chain([sync_us]);
        for quantiles in all {
            if !quantiles.is_valid() {
                return Err(format!("quantiles must be two or more numbers that grow: {quantiles:?}"));
            }
        }
        Ok(costs)
    }
}
