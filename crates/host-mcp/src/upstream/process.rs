//! The process of a stdio server: its own group, an environment that holds only what is configured, and an end that it
//! cannot refuse.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::stderr_log;
use crate::server_config::StdioConfig;

/// A running server.
pub(crate) struct ServerProcess {
    child: Child,
    group: ProcessGroup,
}

/// Its two ends.
pub(crate) struct Pipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
}

impl ServerProcess {
    /// Starts it. What it writes to its standard error goes to the log.
    pub(crate) fn start(server: &str, config: &StdioConfig) -> Result<(Self, Pipes), String> {
        let mut command = Command::new(&config.command);
        command.args(&config.args).env_clear().kill_on_drop(true);
        command.envs(config.env.iter().map(|(name, value)| (name, value.expose())));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(cwd) = &config.cwd {
            command.current_dir(cwd);
        }
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn().map_err(|error| describe(&error, config))?;
        let group = ProcessGroup::of(&child);
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(stderr_log::run(server.to_owned(), stderr));
        }
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            return Err("its standard input and output are not there".to_owned());
        };
        Ok((Self { child, group }, Pipes { stdin, stdout }))
    }

    /// Asks it to end, and ends it with all that it has started when it has not within `stop_timeout`.
    pub(crate) async fn stop(mut self, stop_timeout: Duration) {
        self.group.terminate();
        let _ = tokio::time::timeout(stop_timeout, self.child.wait()).await;
        self.group.kill();
        let _ = self.child.wait().await;
    }

    /// Ends when the process does, with what an operator is told.
    pub(crate) async fn wait(&mut self) -> String {
        match self.child.wait().await {
            Ok(status) => format!("its process ended: {status}"),
            Err(error) => format!("its process is lost: {error}"),
        }
    }
}

fn describe(error: &io::Error, config: &StdioConfig) -> String {
    let command = &config.command;
    if error.kind() != io::ErrorKind::NotFound {
        return format!("`{command}` does not start: {error}");
    }
    match &config.cwd {
        Some(cwd) if !Path::new(cwd).is_dir() => format!("its folder {} does not exist", cwd.display()),
        _ => format!("`{command}` was not found; give its full path, or a PATH in its `env`"),
    }
}

/// A process with all that it has started. What is left of it is killed when this is dropped.
struct ProcessGroup {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

#[cfg(unix)]
impl ProcessGroup {
    fn of(child: &Child) -> Self {
        let leader =
            child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        Self { leader }
    }

    fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    fn kill(&mut self) {
        self.signal(rustix::process::Signal::KILL);
        // Its number may soon be another's.
        self.leader = None;
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(leader) = self.leader {
            // It fails when nothing is left of the group, which is what was wanted.
            let _ = rustix::process::kill_process_group(leader, signal);
        }
    }
}

#[cfg(not(unix))]
impl ProcessGroup {
    fn of(_: &Child) -> Self {
        Self {}
    }

    /// There is no gentle way: the process is killed when its handle is dropped.
    fn terminate(&self) {}

    fn kill(&mut self) {}
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::collections::BTreeMap;

    use quarterdeck_outbound::SecretText;
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

    use super::*;

    fn shell(script: &str) -> StdioConfig {
        StdioConfig {
            command: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: BTreeMap::from([("GREETING".into(), SecretText::from("hello"))]),
            cwd: None,
        }
    }

    fn is_alive(pid: i32) -> bool {
        // A zombie has no command line.
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
    }

    #[tokio::test]
    async fn a_server_finds_only_what_is_configured_in_its_environment() {
        let (_process, mut pipes) = ServerProcess::start("test", &shell("/usr/bin/env")).unwrap();
        let mut text = String::new();
        pipes.stdout.read_to_string(&mut text).await.unwrap();
        let lines: Vec<_> =
            text.lines().filter(|line| !line.starts_with("PWD=") && !line.starts_with("_=")).collect();
        // A shell adds these two by itself, and its depth.
        assert_eq!(
            lines.into_iter().filter(|line| !line.starts_with("SHLVL=")).collect::<Vec<_>>(),
            ["GREETING=hello"]
        );
    }

    #[tokio::test]
    async fn a_server_that_ignores_the_signal_is_killed_with_what_it_has_started() {
        let script =
            "trap '' TERM; (trap '' TERM; sleep 1000) & echo $!; echo $$; while :; do sleep 1000; done";
        let (process, pipes) = ServerProcess::start("test", &shell(script)).unwrap();
        let mut lines = BufReader::new(pipes.stdout).lines();
        let mut next = async || lines.next_line().await.unwrap().unwrap().parse::<i32>().unwrap();
        let (child, leader) = (next().await, next().await);
        assert!(is_alive(child) && is_alive(leader));
        process.stop(Duration::from_millis(200)).await;
        assert!(!is_alive(leader));
        // It is reaped by another process, in its own time.
        while is_alive(child) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test]
    async fn dropping_a_server_kills_its_group() {
        let (process, pipes) = ServerProcess::start("test", &shell("sleep 1000 & echo $!; wait")).unwrap();
        let mut lines = BufReader::new(pipes.stdout).lines();
        let child: i32 = lines.next_line().await.unwrap().unwrap().parse().unwrap();
        drop(process);
        while is_alive(child) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test]
    async fn a_command_that_is_not_there_is_named_with_what_to_do() {
        let config = StdioConfig { command: "no-such-mcp-server".into(), ..shell("") };
        let error = ServerProcess::start("test", &config).map(|_| ()).unwrap_err();
        assert!(error.contains("`no-such-mcp-server` was not found; give its full path"), "{error}");
    }
}
