//! `quarterdeck serve` as a process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quarterdeck_contracts::{Scan, Store, Table};
use quarterdeck_store::SqliteStore;
use quarterdeck_testkit::Tree;
use serde_json::Value;

use super::tools::tools;

pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// Tools and a data folder, which outlive the servers on them.
pub(crate) struct Site {
    pub(crate) tools: Tree,
    data: tempfile::TempDir,
    /// Its environment.
    variables: Vec<(String, String)>,
}

pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    output: Arc<Mutex<String>>,
}

impl Site {
    /// A new site whose voice is the provider at this address.
    pub(crate) fn new(provider: &str) -> Self {
        let mut site = Self { tools: tools(), data: tempfile::tempdir().unwrap(), variables: vec![] };
        if !provider.is_empty() {
            site.set("QUARTERDECK_VOICE__BASE_URL", provider);
        }
        site
    }

    /// Sets a variable of the servers to come.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// A new site whose voice is a pipeline of the engines at this address.
    pub(crate) fn with_pipeline(base_url: &str) -> Self {
        let mut site = Self::new("");
        site.set("QUARTERDECK_VOICE__PROVIDER", "pipeline");
        site.set("QUARTERDECK_TEXT__MODEL", "scripted");
        for engine in ["TEXT", "SPEECH__STT", "SPEECH__TTS"] {
            site.set(&format!("QUARTERDECK_{engine}__PROVIDER"), "openai");
            site.set(&format!("QUARTERDECK_{engine}__BASE_URL"), base_url);
        }
        site
    }

    /// A new site with these of the built-in tools, whose voice is the built-in simulator.
    pub(crate) fn built_in(folders: &[&str]) -> Self {
        let site = Self::new("");
        let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools");
        for folder in folders {
            let copy = site.tools.path().join(folder);
            std::fs::create_dir_all(&copy).unwrap();
            for entry in std::fs::read_dir(source.join(folder)).unwrap() {
                let entry = entry.unwrap();
                std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
            }
        }
        site
    }

    /// Starts a server on it and waits until it listens.
    pub(crate) fn serve(&self) -> Server {
        self.serve_with(&[])
    }

    pub(crate) fn serve_with(&self, options: &[&str]) -> Server {
        let mut command = self.command();
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        self.start(command, options)
    }

    /// Starts a server on a socket that the test holds, as systemd does.
    pub(crate) fn serve_on(&self, socket: &TcpListener, options: &[&str]) -> Server {
        let program = self.command();
        let mut command = Command::new("sh");
        // The socket comes as standard input, because that is what a child can be given, and becomes the first after the
        // standard ones. The shell becomes the program, and so has its process id.
        let script = r#"export LISTEN_FDS=1 LISTEN_PID=$$; exec "$0" "$@" 3<&0 0</dev/null"#;
        command.args(["-c", script]).arg(program.get_program()).arg("serve");
        command.stdin(OwnedFd::from(socket.try_clone().unwrap())).stdout(Stdio::null());
        command.current_dir(self.tools.path());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        self.start(command, options)
    }

    fn start(&self, mut command: Command, options: &[&str]) -> Server {
        command.args(["--kb", "no-kb", "--tools"]);
        command.arg(self.tools.path()).arg("--data").arg(self.data.path());
        command.args(options);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.env("QUARTERDECK_TEXT__REHEARSAL__PACE_MS", "0");
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let output = Arc::new(Mutex::new(String::new()));
        let address = loop {
            let mut line = String::new();
            assert!(lines.read_line(&mut line).unwrap() > 0, "it ended: {}", output.lock().unwrap());
            output.lock().unwrap().push_str(&line);
            if let Some((_, address)) = line.trim().split_once(" on http://") {
                break address.parse().unwrap();
            }
        };
        // The pipe must be drained, or the server would block on it.
        let log = output.clone();
        std::thread::spawn(move || {
            let mut line = String::new();
            while lines.read_line(&mut line).is_ok_and(|count| count > 0) {
                log.lock().unwrap().push_str(&std::mem::take(&mut line));
            }
        });
        Server { child, address, output }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quarterdeck"));
        command.current_dir(self.tools.path()).stdin(Stdio::null()).stdout(Stdio::null());
        for name in
            ["GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"]
        {
            command.env_remove(name);
        }
        command.env("XDG_CACHE_HOME", self.data.path());
        command
    }

    /// Runs an operator's command, which must succeed.
    pub(crate) fn run_command(&self, arguments: &[&str]) -> String {
        let mut command = self.command();
        command.args(arguments).arg("--data").arg(self.data.path());
        let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn build(&self) {
        let mut command = self.command();
        let output = command.args(["build", "--tools"]).arg(self.tools.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// The lines of the trail about an event.
    pub(crate) fn trail(&self, event: &str) -> Vec<Value> {
        let found = self.run_command(&["audit", "query", "--event", event, "--format", "json"]);
        found.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// How often a handler has run, by its own line in the trail.
    pub(crate) fn count_runs(&self, event: &str, what: &str) -> usize {
        let is_it = |line: &&Value| {
            line["source"] == "handler" && line.to_string().contains(&format!("\"what\":\"{what}\""))
        };
        self.trail(event).iter().filter(is_it).count()
    }

    /// The sum of a tool's counters over all clients. The server must have stopped.
    pub(crate) async fn stored_count(&self, tool: &str) -> u64 {
        let store = SqliteStore::open(self.data.path().join("quarterdeck.db")).unwrap();
        let rows = store.scan(Table::Values, Scan::prefix("", 100)).await.unwrap();
        let of_tool = rows.iter().filter(|(key, _)| key.contains(&format!("/{tool}/")));
        let kept = of_tool.filter_map(|(_, row)| row.value.as_u64()).sum();
        store.close().await.unwrap();
        kept
    }
}

impl Server {
    /// The cookie of a new client.
    pub(crate) fn new_cookie(&self) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        write!(stream, "GET /api/me HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.address)
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        cookie.unwrap_or_else(|| panic!("no cookie: {answer}")).split(';').next().unwrap().to_owned()
    }

    pub(crate) fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn request_stop(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }

    /// It must stop with success.
    pub(crate) fn wait_until_stopped(mut self) -> String {
        let since = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert!(status.success(), "{status}: {}", self.output());
                return self.output();
            }
            assert!(since.elapsed() < TIMEOUT, "it does not stop: {}", self.output());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn stop(self) -> String {
        self.request_stop();
        self.wait_until_stopped()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
