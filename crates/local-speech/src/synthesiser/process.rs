//! The process of an engine: its own group, an empty environment, and an end that it cannot refuse.

use std::io;
use std::process::{ExitStatus, Stdio};

use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A running engine. Dropping it kills it, with all that it has started.
pub(super) struct EngineProcess {
    child: Child,
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

/// Its two ends.
pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
}

impl EngineProcess {
    /// Starts a program. It finds no secrets of ours in its environment, and its complaints are thrown away: they may
    /// quote what it was given to say.
    pub(super) fn start(mut command: Command) -> io::Result<(Self, Pipes)> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        // Python on Windows does not start without some of it.
        #[cfg(unix)]
        command.env_clear().env("LANG", "C.UTF-8").process_group(0);
        let mut child = command.spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let process = Self {
            #[cfg(unix)]
            leader: child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw),
            child,
        };
        match (stdin, stdout) {
            (Some(stdin), Some(stdout)) => Ok((process, Pipes { stdin, stdout })),
            _ => Err(io::Error::other("its pipes are not there")),
        }
    }

    /// Waits for its end. What it has started ends when this is dropped.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }
}

#[cfg(unix)]
impl Drop for EngineProcess {
    fn drop(&mut self) {
        if let Some(leader) = self.leader {
            // It fails when nothing is left of the group, which is what was wanted.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}
