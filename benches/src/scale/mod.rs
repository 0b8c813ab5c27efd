//! `quarterdeck-benches scale [COSTS] [PLOT]`: from what a turn and a call cost to how many machines many of them need.
//!
//! A simulation of discrete events, fed with what `scripts/bench-cluster --record` has measured. The same file and seed
//! give the same tables. What it cannot know is in `docs/SCALE.md`.

mod cluster;
mod costs;
mod plot;
mod random;
mod report;
mod stations;
#[cfg(test)]
mod tests;

use std::path::Path;

use costs::Costs;

/// Prints the tables, and writes the plot where there is a path for it.
pub(crate) fn run(costs: Option<&str>, plot: Option<&str>) -> Result<String, String> {
    let path = costs.unwrap_or(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/cluster-costs.json"));
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let costs = Costs::parse(&text).map_err(|error| format!("{path}: {error}"))?;
    let (tables, curves) = report::write(&costs);
    if let Some(plot) = plot {
        std::fs::write(Path::new(plot), plot::draw(&curves)).map_err(|error| format!("{plot}: {error}"))?;
    }
    Ok(tables)
}
