//! `quarterdeck serve` as a process that can be killed, paused and started again at the same address.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const START_TIMEOUT: Duration = Duration::from_secs(90);
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// How a node is started, each time.
pub(crate) type Launch = Arc<dyn Fn(&str, SocketAddr) -> Command + Send + Sync>;

pub struct Node {
    pub name: String,
    pub address: SocketAddr,
    launch: Launch,
    child: Option<Child>,
    output: Arc<Mutex<String>>,
}

impl Node {
    /// At a free port, which it keeps.
    pub fn new(name: &str, launch: Launch) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Self { name: name.into(), address: port, launch, child: None, output: Arc::default() }
    }

    /// Starts it, and waits until it says that it listens.
    pub fn start(&mut self) {
        self.spawn();
        self.wait_until_up();
    }

    /// Starts it without waiting.
    pub fn spawn(&mut self) {
        assert!(self.child.is_none(), "{} runs already", self.name);
        let mut command = (self.launch)(&self.name, self.address);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let output = self.output.clone();
        output.lock().unwrap().push_str("--- start ---\n");
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while lines.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
                keep(&output, &String::from_utf8_lossy(&line));
                line.clear();
            }
        });
        self.child = Some(child);
    }

    pub fn wait_until_up(&mut self) {
        let begin = Instant::now();
        while !self.has_said(" on http://") {
            let ended = self.child.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "{} ended: {}", self.name, self.output());
            assert!(begin.elapsed() < START_TIMEOUT, "{} does not start: {}", self.name, self.output());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn has_said(&self, words: &str) -> bool {
        let output = self.output.lock().unwrap();
        let (_, latest) = output.rsplit_once("--- start ---\n").unwrap_or_default();
        latest.contains(words)
    }

    /// As a crash does.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// As an operator does. What it said, if it did not end well.
    pub fn stop(&mut self) -> Result<(), String> {
        self.signal("-TERM");
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let begin = Instant::now();
        loop {
            match child.try_wait().unwrap() {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("{} ended with {status}: {}", self.name, self.output())),
                None if begin.elapsed() > STOP_TIMEOUT => {
                    drop(child.kill());
                    drop(child.wait());
                    return Err(format!("{} did not stop within {STOP_TIMEOUT:?}", self.name));
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// It gets no time at all until it is resumed.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    pub fn resume(&self) {
        self.signal("-CONT");
    }

    pub fn is_running(&self) -> bool {
        self.child.is_some()
    }

    fn signal(&self, signal: &str) {
        if let Some(child) = &self.child {
            let status = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
            assert!(status.success(), "kill {signal} {}", self.name);
        }
    }

    /// What it prints, which outlives it.
    pub(crate) fn log(&self) -> Arc<Mutex<String>> {
        self.output.clone()
    }

    /// What it has printed, the end of it.
    pub fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Keeps the last part of a log.
fn keep(output: &Mutex<String>, line: &str) {
    const MAX_LOG_BYTES: usize = 4 << 20;
    let mut output = output.lock().unwrap();
    if output.len() > MAX_LOG_BYTES {
        let from = output.floor_char_boundary(MAX_LOG_BYTES / 2);
        output.drain(..from);
    }
    output.push_str(line);
}

/// The product's program: built beside this one, or built now.
pub(crate) fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let folder = own.ancestors().skip(1).find(|folder| !folder.ends_with("deps")).unwrap();
    let program = folder.join("quarterdeck");
    if !program.exists() {
        let mut build = Command::new("cargo");
        build.args(["build", "-p", "quarterdeck", "--bin", "quarterdeck"]);
        if folder.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().unwrap().success(), "the product cannot be built");
    }
    program
}
