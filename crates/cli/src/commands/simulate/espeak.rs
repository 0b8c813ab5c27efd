//! Speech by espeak-ng, where it is installed.

use std::process::Stdio;
use std::time::Duration;

use quarterdeck_simulator::live::{Speaking, Voice, samples_from_wav};
use tokio::process::Command;

/// How long a text may take it.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much of a text it is given, in bytes: about two minutes.
const MOST_TEXT: usize = 2_000;

/// The program, which is there.
pub(crate) struct Espeak;

impl Espeak {
    /// Looks for it.
    pub(crate) async fn find() -> Option<Self> {
        let found = output(&mut command(&["--version"])).await;
        found.map(|_| Self)
    }
}

impl Voice for Espeak {
    fn speak(&self, text: &str) -> Speaking {
        let text = &text[..text.floor_char_boundary(MOST_TEXT)];
        let mut command = command(&["-v", "en", "--stdout", "--", text]);
        Box::pin(async move { samples_from_wav(&output(&mut command).await?) })
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new("espeak-ng");
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    command
}

/// What it writes, if it ends well and in time.
async fn output(command: &mut Command) -> Option<Vec<u8>> {
    let output = tokio::time::timeout(PATIENCE, command.output()).await.ok()?.ok()?;
    output.status.success().then_some(output.stdout)
}
