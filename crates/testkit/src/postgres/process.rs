//! The server's files and its process.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The server refuses to run as root, so root runs it as another user, and any will do.
const UNPRIVILEGED: u32 = 65_534;

/// A busy machine is slow to start it.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// Runs a program, waits for a signal's name or for the end of the test's process, and ends the program. Then the folder is
/// of no use to anyone either, which only an orderly end says otherwise.
const WATCH: &str = r#"
folder=$1; default=$2; shift 2
"$@" </dev/null >"$folder/log" 2>&1 &
server=$!
read -r signal
kill -"${signal:-$default}" $server
wait $server
[ -n "$signal" ] || rm -rf "$folder"
"#;

/// How the server is told to end.
#[derive(Clone, Copy)]
pub(super) enum Signal {
    /// Connections are ended, what is committed is written out.
    Interrupt,
    /// At once, without anything.
    Quit,
    /// At once, and the server's children find out by themselves.
    Kill,
}

impl Signal {
    fn as_str(self) -> &'static str {
        match self {
            Self::Interrupt => "INT",
            Self::Quit => "QUIT",
            Self::Kill => "KILL",
        }
    }
}

pub(super) struct ServerProcess {
    watch: Child,
}

impl ServerProcess {
    /// Starts a server in a folder and waits until it answers.
    pub(super) fn start(programs: &Path, folder: &Path, settings: &[String]) -> Self {
        let begin = Instant::now();
        let data = folder.join("data");
        let before = postmaster(&data).map(|(pid, _)| pid);
        loop {
            let mut process = Self { watch: spawn(programs, folder, settings) };
            while process.watch.try_wait().unwrap().is_none() {
                assert!(begin.elapsed() < START_TIMEOUT, "PostgreSQL does not start: {}", log(folder));
                match postmaster(&data) {
                    Some((pid, true)) if before.as_ref() != Some(&pid) => return process,
                    _ if has_given_up(folder) => break,
                    _ => thread::sleep(Duration::from_millis(10)),
                }
            }
            // Children of a server that was killed still hold its memory, for a moment.
            process.end(Signal::Kill);
            assert!(begin.elapsed() < START_TIMEOUT, "PostgreSQL does not start: {}", log(folder));
            thread::sleep(Duration::from_millis(50));
        }
    }

    pub(super) fn end(mut self, signal: Signal) {
        if let Some(mut input) = self.watch.stdin.take() {
            // It may have ended by itself.
            drop(writeln!(input, "{}", signal.as_str()));
        }
        drop(self.watch.wait());
    }
}

fn spawn(programs: &Path, folder: &Path, settings: &[String]) -> Child {
    // So that it does not speak of the last attempt.
    drop(fs::remove_file(folder.join("log")));
    let data = folder.join("data");
    let mut arguments = vec!["-D".to_owned(), data.display().to_string()];
    let fixed = ["listen_addresses=127.0.0.1", "fsync=off", "full_page_writes=off", "max_connections=60"];
    for setting in fixed.iter().copied().chain(settings.iter().map(String::as_str)) {
        arguments.extend(["-c".to_owned(), setting.to_owned()]);
    }
    watched(folder, Signal::Quit, &programs.join("postgres"), &arguments)
}

/// Starts a program as the server's user, which is ended by a signal when this process ends. A line with a signal's name
/// ends it sooner.
pub(super) fn watched(folder: &Path, end: Signal, program: &Path, arguments: &[String]) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", WATCH, "sh"]).arg(folder).arg(end.as_str()).arg(program).args(arguments);
    // Its output is in the log, and the test's own must end with the test.
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    as_server_user(&mut command).spawn().unwrap()
}

/// The process id in the server's own file, and whether it says that it is ready, if only to be read from.
fn postmaster(data: &Path) -> Option<(String, bool)> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let mut lines = text.lines();
    let pid = lines.next()?.to_owned();
    Some((pid, lines.nth(6).is_some_and(|state| matches!(state.trim(), "ready" | "standby"))))
}

fn has_given_up(folder: &Path) -> bool {
    let log = log(folder);
    log.contains("FATAL:")
        && !log.contains("the database system is")
        && !log.contains("terminating connection")
}

fn log(folder: &Path) -> String {
    fs::read_to_string(folder.join("log")).unwrap_or_default()
}

/// A folder that belongs to the server's user.
pub(super) fn new_folder(parent: &Path) -> PathBuf {
    let folder = tempfile::Builder::new().prefix("quarterdeck-pg-").tempdir_in(parent).unwrap().keep();
    give_to_server_user(&folder);
    folder
}

/// Fresh data of a server, made once for a checkout: that takes longer than all the rest.
pub(super) fn template(programs: &Path, major: u32) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/postgres");
    fs::create_dir_all(&folder).unwrap();
    let uid = if is_root() { UNPRIVILEGED } else { own_uid() };
    let template = folder.join(format!("data-{major}-{uid}"));
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    if template.exists() {
        return template;
    }
    let partial = folder.join(format!("partial-{major}-{uid}"));
    drop(fs::remove_dir_all(&partial));
    fs::create_dir(&partial).unwrap();
    give_to_server_user(&partial);
    let mut command = Command::new(programs.join("initdb"));
    command.args([
        "-U",
        "qd",
        "-A",
        "trust",
        "--no-sync",
        "-E",
        "UTF8",
        "--locale=C",
        "--wal-segsize=1",
        "-D",
    ]);
    command.arg(&partial).current_dir("/");
    let output = as_server_user(&mut command).output().unwrap();
    assert!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
    fs::rename(&partial, &template).unwrap();
    template
}

pub(super) fn copy(from: &Path, to: &Path) {
    let mut command = Command::new("cp");
    let status = as_server_user(command.arg("-a").arg(from).arg(to)).status().unwrap();
    assert!(status.success(), "the data of PostgreSQL cannot be copied to {}", to.display());
}

/// The user that the server runs as, which is never root.
pub(super) fn as_server_user(command: &mut Command) -> &mut Command {
    if is_root() { command.uid(UNPRIVILEGED).gid(UNPRIVILEGED) } else { command }
}

fn give_to_server_user(folder: &Path) {
    if is_root() {
        chown(folder, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
    }
}

fn is_root() -> bool {
    own_uid() == 0
}

fn own_uid() -> u32 {
    fs::metadata("/proc/self").map_or(1, |own| own.uid())
}
