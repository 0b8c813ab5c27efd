//! A server that encrypts. The wheel's ones cannot, so it is the system's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use super::process::{self, as_server_user};
use super::{PostgresServer, free_port};

/// Makes an authority, and a certificate for `localhost` signed by it.
const CERTIFICATES: &str = r#"
set -e
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout ca.key -out ca.crt -subj "/CN=Authority of the tests" \
  -addext basicConstraints=critical,CA:TRUE
openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost
printf 'subjectAltName=DNS:localhost\n' >names
openssl x509 -req -days 2 -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -extfile names -out server.crt
chmod 600 server.key
"#;

impl PostgresServer {
    /// A server that encrypts, as `localhost`, and the file with the authority that signed its certificate. Nothing where the
    /// system has no PostgreSQL or no `openssl`, which is said: no script of ours can install them.
    pub fn start_encrypted() -> Option<(Self, PathBuf)> {
        let Some((programs, major)) = systems_programs() else {
            #[expect(
                clippy::print_stderr,
                reason = "the reader of the result must know that nothing was tried"
            )]
            {
                eprintln!(
                    "SKIPPED: the system has no PostgreSQL with OpenSSL (Debian: apt install postgresql openssl)"
                );
            }
            return None;
        };
        let folder = process::new_folder(&std::env::temp_dir());
        let mut command = Command::new("sh");
        let made = as_server_user(command.args(["-c", CERTIFICATES]).current_dir(&folder)).output().unwrap();
        assert!(made.status.success(), "openssl: {}", String::from_utf8_lossy(&made.stderr));
        process::copy(&process::template(&programs, major), &folder.join("data"));
        let file = |name: &str| folder.join(name).display().to_string();
        let settings = vec![
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", file("server.crt")),
            format!("ssl_key_file={}", file("server.key")),
        ];
        let authority = folder.join("ca.crt");
        let server = Self { programs, folder, port: free_port(), settings, process: Mutex::new(None) };
        server.restart();
        Some((server, authority))
    }
}

/// Where Debian and its descendants keep them, the newest first.
fn systems_programs() -> Option<(PathBuf, u32)> {
    Command::new("openssl").arg("version").output().ok()?;
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let versions = versions.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let newest: u32 = versions.max()?;
    let programs = Path::new("/usr/lib/postgresql").join(format!("{newest}/bin"));
    programs.join("initdb").exists().then_some((programs, newest))
}
