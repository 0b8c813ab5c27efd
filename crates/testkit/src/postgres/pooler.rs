//! PgBouncer in transaction mode before a server, where the system has it.

use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use super::{PostgresServer, USER, free_port, process};

/// A pooler that gives a connection to another client after each transaction. It ends with this value.
pub struct Pooler {
    process: Child,
    port: u16,
    server_port: u16,
}

impl Pooler {
    /// Nothing where PgBouncer is not installed, which is said: no script of ours can install it.
    pub fn start(server: &PostgresServer) -> Option<Self> {
        let programs = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].map(PathBuf::from);
        let Some(program) = programs.into_iter().find(|program| program.exists()) else {
            #[expect(
                clippy::print_stderr,
                reason = "the reader of the result must know that nothing was tried"
            )]
            {
                eprintln!("SKIPPED: PgBouncer is not installed (Debian: apt install pgbouncer)");
            }
            return None;
        };
        let folder = process::new_folder(&std::env::temp_dir());
        let port = free_port();
        fs::write(folder.join("users"), format!("\"{USER}\" \"\"\n")).unwrap();
        let config = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = trust\nauth_file = {}/users\npool_mode = transaction\n\
             default_pool_size = 4\nmax_client_conn = 200\nmax_db_connections = 4\n",
            server.port(),
            folder.display()
        );
        fs::write(folder.join("pgbouncer.ini"), config).unwrap();
        let arguments = ["-q".to_owned(), folder.join("pgbouncer.ini").display().to_string()];
        let process = process::watched(&folder, process::Signal::Kill, &program, &arguments);
        let pooler = Self { process, port, server_port: server.port() };
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begin.elapsed() < Duration::from_secs(60), "PgBouncer does not start");
            thread::sleep(Duration::from_millis(20));
        }
        Some(pooler)
    }

    /// An address of the server, through this.
    pub fn url(&self, url: &str) -> String {
        url.replace(&format!(":{}/", self.server_port), &format!(":{}/", self.port))
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // Without a word the folder goes too.
        drop(self.process.stdin.take());
        drop(self.process.wait());
    }
}
