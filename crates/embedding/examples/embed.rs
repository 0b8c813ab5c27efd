//! Prints the vectors of the lines on standard input, or measures: `embed <model folder> [measure]`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::io::{Read, stdin};
use std::path::Path;
use std::time::Instant;

use quarterdeck_contracts::Embedder;
use quarterdeck_embedding::Model;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let folder = arguments.get(1).ok_or("usage: embed <model folder> [measure]")?;
    let begun = Instant::now();
    let model = Model::load(Path::new(folder))?;
    let loaded = begun.elapsed();
    let mut text = String::new();
    stdin().read_to_string(&mut text)?;
    let lines: Vec<&str> = text.lines().collect();
    if arguments.get(2).is_none() {
        for vector in model.embed(&lines)? {
            println!("{vector:?}");
        }
        return Ok(());
    }
    let mut times = Vec::new();
    for line in lines.iter().cycle().take(1000) {
        let begun = Instant::now();
        model.embed(&[line])?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    println!("loaded in {loaded:?}; one by one p50 {:?} p99 {:?}", times[500], times[990]);
    let begun = Instant::now();
    model.embed(&lines)?;
    println!("{} at once: {:.0} a second", lines.len(), lines.len() as f64 / begun.elapsed().as_secs_f64());
    Ok(())
}
