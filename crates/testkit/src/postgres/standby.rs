//! A second server that follows a first one.

use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use super::process::{self, as_server_user};
use super::{PostgresServer, USER, free_port};

/// Copying and catching up takes a second; a busy machine is slower.
const FOLLOW_TIMEOUT: Duration = Duration::from_secs(120);

impl PostgresServer {
    /// Starts a standby of this server, and has this one wait for it with every commit from now on.
    pub fn start_synchronous_standby(&self) -> Self {
        let folder = process::new_folder(&std::env::temp_dir());
        let mut command = Command::new(self.programs.join("pg_basebackup"));
        command.args(["-R", "-X", "stream", "-c", "fast", "-U", USER, "-p", &self.port.to_string(), "-h"]);
        command.arg(&self.folder).arg("-D").arg(folder.join("data")).current_dir("/").stdin(Stdio::null());
        let output = as_server_user(&mut command).output().unwrap();
        assert!(output.status.success(), "pg_basebackup: {}", String::from_utf8_lossy(&output.stderr));
        let (programs, settings) = (self.programs.clone(), self.settings.clone());
        let standby = Self { programs, folder, port: free_port(), settings, process: Mutex::new(None) };
        standby.restart();
        // The copy brings the setting along, and a standby that is promoted must not wait for one of its own.
        standby.execute("postgres", "ALTER SYSTEM RESET synchronous_standby_names");
        self.execute("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.execute("postgres", "SELECT pg_reload_conf()");
        let begin = Instant::now();
        let is_followed = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        while self.execute("postgres", is_followed) == "0" {
            assert!(begin.elapsed() < FOLLOW_TIMEOUT, "the standby does not follow");
            thread::sleep(Duration::from_millis(20));
        }
        standby
    }

    /// Makes a standby a server of its own right.
    pub fn promote(&self) {
        assert_eq!(
            self.execute("postgres", "SELECT pg_promote(true, 60)"),
            "t",
            "the standby is not promoted"
        );
    }
}
