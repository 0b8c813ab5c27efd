//! A real PostgreSQL server for tests, from what `scripts/postgres` installs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod encrypted;
mod pooler;
mod process;
mod standby;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

pub use self::pooler::Pooler;
use self::process::{ServerProcess, Signal};

const USER: &str = "qd";

/// The versions that are installed, both with pgvector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostgresVersion {
    V16,
    V18,
}

impl PostgresVersion {
    pub const ALL: [Self; 2] = [Self::V16, Self::V18];

    fn major(self) -> u32 {
        match self {
            Self::V16 => 16,
            Self::V18 => 18,
        }
    }
}

/// A server on a port of loopback and on a socket in its folder, without a password. It ends with this value, and with
/// the process that started it, however that one ends.
///
/// It does not wait for the disk, so a commit survives a kill of the server and not a power cut.
pub struct PostgresServer {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
    settings: Vec<String>,
    process: Mutex<Option<ServerProcess>>,
}

impl PostgresServer {
    /// Nothing where it is not installed, which is said.
    pub fn start(version: PostgresVersion) -> Option<Self> {
        Self::start_with(version, &[])
    }

    /// With settings of the server besides, such as `max_connections=20`.
    pub fn start_with(version: PostgresVersion, settings: &[&str]) -> Option<Self> {
        Self::start_in(&std::env::temp_dir(), version, settings)
    }

    /// With its files in a folder of its own below this one, such as a small file system that a test fills up.
    pub fn start_in(parent: &Path, version: PostgresVersion, settings: &[&str]) -> Option<Self> {
        let programs = installed(version)?;
        let template = process::template(&programs, version.major());
        let folder = process::new_folder(parent);
        process::copy(&template, &folder.join("data"));
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let port = free_port();
        let server = Self { programs, folder, port, settings, process: Mutex::new(None) };
        server.restart();
        Some(server)
    }

    /// The one server of this version for all tests of a process.
    pub fn shared(version: PostgresVersion) -> Option<&'static Self> {
        static SERVERS: [OnceLock<Option<PostgresServer>>; 2] = [const { OnceLock::new() }; 2];
        SERVERS[version as usize].get_or_init(|| Self::start(version)).as_ref()
    }

    /// The address of a database, through TCP.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}?sslmode=disable", self.port)
    }

    /// The address of a database, through the socket.
    pub fn socket_url(&self, database: &str) -> String {
        let folder = self.folder.display();
        format!("postgres://{USER}@/{database}?host={folder}&port={}&sslmode=disable", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Makes an empty database of a new name and returns its address.
    pub fn create_database(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("t{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        self.execute("postgres", &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// Runs SQL in a database, and returns what it printed: a line a row, fields separated by `|`.
    ///
    /// # Panics
    ///
    /// When the server refuses it.
    pub fn execute(&self, database: &str, sql: &str) -> String {
        let output = Command::new(self.programs.join("psql"))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", USER, "-d", database, "-c", sql])
            .args(["-p", &self.port.to_string(), "-h"])
            .arg(&self.folder)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Ends every connection and the server, as an operator does in a hurry.
    pub fn stop(&self) {
        self.end(Signal::Interrupt);
    }

    /// Ends the server as a crash does; the next start recovers.
    pub fn kill(&self) {
        self.end(Signal::Kill);
    }

    /// Starts it again on the same port, with what it had; ends it first, as a crash does, if it runs.
    pub fn restart(&self) {
        self.end(Signal::Quit);
        let mut arguments =
            vec![format!("port={}", self.port), format!("unix_socket_directories={}", self.folder.display())];
        arguments.extend(self.settings.iter().cloned());
        let process = ServerProcess::start(&self.programs, &self.folder, &arguments);
        *self.process() = Some(process);
    }

    fn end(&self, signal: Signal) {
        let running = self.process().take();
        if let Some(process) = running {
            process.end(signal);
        }
    }

    fn process(&self) -> MutexGuard<'_, Option<ServerProcess>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.end(Signal::Quit);
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

fn installed(version: PostgresVersion) -> Option<PathBuf> {
    let programs =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../target/postgres/{}", version.major()));
    if programs.exists() {
        return programs.canonicalize().ok();
    }
    #[expect(clippy::disallowed_methods, reason = "a switch of the test scripts")]
    let required = std::env::var("QUARTERDECK_REQUIRE_CLIENTS").is_ok_and(|value| value == "1");
    assert!(!required, "PostgreSQL is required here; `scripts/postgres` installs it");
    #[expect(clippy::print_stderr, reason = "the reader of the result must know that nothing was tried")]
    {
        eprintln!("SKIPPED: PostgreSQL is not installed; `scripts/postgres` installs it");
    }
    None
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
