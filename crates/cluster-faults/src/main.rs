//! Injects faults for as long as one likes: `quarterdeck-soak [--rounds N] [--chats N] [--calls N] [--think-ms N] [FAULT…]`.
//! Ends with an error if a promise was broken.

#![expect(clippy::print_stdout, reason = "it reports to a terminal")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use quarterdeck_cluster_faults::LoadSize;
use quarterdeck_cluster_faults::faults::{Fault, Report, percentile, run};

struct Plan {
    rounds: usize,
    size: LoadSize,
    faults: Vec<Fault>,
}

fn main() -> ExitCode {
    let plan = match plan(std::env::args().skip(1)) {
        Ok(plan) => plan,
        Err(problem) => {
            let names: Vec<_> = Fault::ALL.iter().map(|fault| fault.name()).collect();
            println!(
                "{problem}; --rounds, --chats, --calls and --think-ms take a number, faults are {}",
                names.join(", ")
            );
            return ExitCode::from(2);
        }
    };
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().enable_all().build() else {
        println!("no threads can be started");
        return ExitCode::from(2);
    };
    let mut is_kept = true;
    for fault in plan.faults {
        let begin = Instant::now();
        match runtime.block_on(run(fault, plan.rounds, plan.size)) {
            Some(report) => {
                is_kept &= report.violations.is_empty() && report.troubles.is_empty();
                print(&report, begin.elapsed());
            }
            None => println!("{:9} not tried: something that it needs is not installed here", fault.name()),
        }
    }
    if is_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn plan(mut arguments: impl Iterator<Item = String>) -> Result<Plan, String> {
    let size = LoadSize { chats: 100, calls: 30, think: Duration::from_secs(4) };
    let mut plan = Plan { rounds: 50, size, faults: Vec::new() };
    while let Some(argument) = arguments.next() {
        let Some(option) = argument.strip_prefix("--") else {
            plan.faults.push(Fault::parse(&argument).ok_or(format!("there is no fault {argument}"))?);
            continue;
        };
        let number = arguments.next().and_then(|number| number.parse().ok());
        let number: usize = number.ok_or(format!("--{option} has no number"))?;
        match option {
            "rounds" => plan.rounds = number,
            "chats" => plan.size.chats = number,
            "calls" => plan.size.calls = number,
            "think-ms" => plan.size.think = Duration::from_millis(number as u64),
            _ => return Err(format!("there is no option --{option}")),
        }
    }
    if plan.faults.is_empty() {
        plan.faults = Fault::ALL.to_vec();
    }
    Ok(plan)
}

fn print(report: &Report, took: Duration) {
    let Report { fault, counts, .. } = report;
    println!(
        "{:9} {} rounds in {} s: {} asked, {} done, {} unknown, {} not done; {} violations, {} troubles",
        fault.name(),
        report.rounds,
        took.as_secs(),
        counts.asked,
        counts.done,
        counts.unknown,
        counts.not_done,
        report.violations.len(),
        report.troubles.len(),
    );
    let times = [
        ("answers again after", &report.recoveries),
        ("calls without a node", &report.calls_without_node),
        ("chats that asked again", &report.chats_asked_again),
    ];
    for (what, times) in times {
        if let (Some(half), Some(most), Some(max)) =
            (percentile(times, 50), percentile(times, 95), times.last())
        {
            println!(
                "          {what}: {} times, p50 {half:.2?}, p95 {most:.2?}, max {max:.2?}",
                times.len()
            );
        }
    }
    for (reason, count) in report.refusals.iter().take(12) {
        println!("          refused {count} times: {reason}");
    }
    report.violations.iter().take(40).for_each(|violation| println!("          VIOLATION {violation}"));
    report.troubles.iter().for_each(|trouble| println!("          TROUBLE {trouble}"));
    if !(report.violations.is_empty() && report.troubles.is_empty()) {
        keep_logs(report);
    }
}

/// What the nodes have printed and what the clients met, to look for the reason.
fn keep_logs(report: &Report) {
    let stories: Vec<_> = report
        .stories
        .iter()
        .map(|(key, ask)| format!("{key}: {:?}\n{}\n", ask.told, ask.story.join("\n")))
        .collect();
    keep_log(report.fault, "clients", &stories.join("\n"));
    for (index, log) in report.logs.iter().enumerate() {
        keep_log(report.fault, &format!("n{}", index + 1), log);
    }
}

fn keep_log(fault: Fault, of: &str, log: &str) {
    let path = std::env::temp_dir().join(format!("quarterdeck-soak-{}-{of}.log", fault.name()));
    if std::fs::write(&path, log).is_ok() {
        println!("          log of {of}: {}", path.display());
    }
}
