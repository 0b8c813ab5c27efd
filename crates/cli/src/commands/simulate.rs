//! `quarterdeck simulate`: a provider that is not there.

mod espeak;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use quarterdeck_rehearsal::Rehearsal;
use quarterdeck_simulator::live::{ConnectionEnd, EndedBy, LiveSimulator, Report, Scenario};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub(crate) use self::espeak::Espeak;
use crate::ExitStatus;
use crate::arguments::simulate::{SimulateCommand, SimulateLiveOptions, Speech};
use crate::shutdown::ShutdownSignal;
use crate::terminal::{count, info, plain};

const MAX_CONNECTIONS: usize = 64;

pub(crate) fn run(command: &SimulateCommand) -> anyhow::Result<ExitStatus> {
    let SimulateCommand::Live(options) = command;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(live(options))
}

async fn live(options: &SimulateLiveOptions) -> anyhow::Result<ExitStatus> {
    let (simulator, plays) = match &options.scenario {
        Some(path) => {
            let scenario = read(path)?;
            let plays = format!("{} ({})", path.display(), count(scenario.turns(), "turn"));
            (LiveSimulator::from_scenario(scenario), plays)
        }
        None => {
            let rehearsal = LiveSimulator::from_chat_model(Arc::new(Rehearsal::new()));
            (rehearsal, "no scenario: the rehearsal model answers text".to_owned())
        }
    };
    let (simulator, speech) = with_speech(simulator, options.speech).await?;
    let listener = TcpListener::bind(options.listen).await.with_context(|| {
        format!(
            "cannot listen on {}; stop what listens there, or choose another address with `--listen`",
            options.listen
        )
    })?;
    let address = listener.local_addr()?;
    let shutdown = ShutdownSignal::listen();
    let speech = speech.describe();
    info(&format!("simulating Gemini Live on http://{address}\n  plays     {plays}\n  speech    {speech}"));
    tokio::select! {
        () = serve(&simulator, &listener, options.once) => {}
        () = shutdown.wait() => {}
    }
    Ok(summary(&simulator.report()))
}

fn read(path: &Path) -> anyhow::Result<Scenario> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Scenario::parse(&text).with_context(|| {
        format!("{} is not a scenario; docs/SIMULATOR.md describes the format", path.display())
    })
}

/// What speaks for a simulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpeechSource {
    Espeak,
    /// Nothing, as it was asked for.
    Tones,
    /// Nothing, because espeak-ng is not installed.
    NotInstalled,
}

impl SpeechSource {
    fn describe(self) -> &'static str {
        match self {
            Self::Espeak => "espeak-ng",
            Self::Tones => "tones",
            Self::NotInstalled => "tones (install espeak-ng to hear speech)",
        }
    }
}

async fn with_speech(
    simulator: LiveSimulator,
    wanted: Speech,
) -> anyhow::Result<(LiveSimulator, SpeechSource)> {
    if wanted == Speech::Tones {
        return Ok((simulator, SpeechSource::Tones));
    }
    match (Espeak::find().await, wanted) {
        (Some(espeak), _) => Ok((simulator.with_voice(Arc::new(espeak)), SpeechSource::Espeak)),
        (None, Speech::Espeak) => {
            anyhow::bail!("espeak-ng cannot be started; install it, or choose `--speech tones`")
        }
        (None, _) => Ok((simulator, SpeechSource::NotInstalled)),
    }
}

/// Accepts connections; with `once`, until the scenario is done.
async fn serve(simulator: &LiveSimulator, listener: &TcpListener, once: bool) {
    let mut connections = JoinSet::new();
    while !(once && connections.is_empty() && simulator.is_done()) {
        tokio::select! {
            Some(ended) = connections.join_next() => {
                if let Ok(end) = ended {
                    report_end(&end);
                }
            }
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    // Small audio frames must not be delayed.
                    let _ = stream.set_nodelay(true);
                    let simulator = simulator.clone();
                    connections.spawn(async move { simulator.serve(stream).await });
                }
                // Too many open files, most likely: some will be closed.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
        }
    }
}

fn report_end(end: &ConnectionEnd) {
    let by = match end.by {
        EndedBy::Client => "client",
        EndedBy::Simulator => "simulator",
    };
    let (received, sent) = (count(end.received, "frame"), end.sent);
    let name = match end.connection {
        0 => "no connection".to_owned(),
        number => format!("connection {number}"),
    };
    info(&format!("{name}: {} (by the {by}; {received} in, {sent} out)", plain(&end.how)));
}

fn summary(report: &Report) -> ExitStatus {
    let turns = count(report.turns, "turn");
    let calls = count(report.calls.len(), "call");
    info(&format!("{}: {turns}, {calls}", count(report.connections, "connection")));
    for fault in &report.faults {
        info(&format!("fault: {}", plain(fault)));
    }
    if report.faults.is_empty() { ExitStatus::Success } else { ExitStatus::Problems }
}
