//! Starts Radicale for one test, with a user and a calendar.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};

pub(crate) const USER: &str = "ann";
pub(crate) const PASSWORD: &str = "secret of the tests";

/// A server that ends with the test.
pub(crate) struct Radicale {
    process: Child,
    folder: PathBuf,
    port: u16,
}

impl Radicale {
    /// Nothing where it is not installed, which is said.
    pub(crate) async fn start() -> Option<Self> {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/radicale/bin/python");
        if !program.exists() {
            #[expect(clippy::disallowed_methods, reason = "a switch of the test scripts")]
            let required = std::env::var("QUARTERDECK_REQUIRE_CLIENTS").is_ok_and(|value| value == "1");
            assert!(!required, "Radicale is required here; `scripts/radicale` installs it");
            #[expect(
                clippy::print_stderr,
                reason = "the reader of the result must know that nothing was tried"
            )]
            {
                eprintln!("SKIPPED: Radicale is not installed; `scripts/radicale` installs it");
            }
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = std::env::temp_dir().join(format!("quarterdeck-radicale-{}-{port}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("users"), format!("{USER}:{PASSWORD}\n")).unwrap();
        fs::write(folder.join("config"), config(&folder, port)).unwrap();
        let process = Command::new(program)
            .args(["-m", "radicale", "--config"])
            .arg(folder.join("config"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { process, folder, port };
        server.wait().await;
        server.make_calendar("work", "Work").await;
        Some(server)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Until it answers. It is slow to start on a busy machine.
    async fn wait(&self) {
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(begin.elapsed() < Duration::from_secs(120), "Radicale does not start");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn make_calendar(&self, path: &str, name: &str) {
        let name = name.replace('&', "&amp;");
        let body = format!(
            r#"<?xml version="1.0"?><C:mkcalendar xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><D:set><D:prop><D:displayname>{name}</D:displayname></D:prop></D:set></C:mkcalendar>"#
        );
        let status = self.send("MKCALENDAR", &format!("/{USER}/{path}/"), body).await;
        assert_eq!(status, StatusCode::CREATED);
    }

    /// Puts an object into the calendar, as another program would.
    pub(crate) async fn put(&self, name: &str, events: &str) {
        let body =
            format!("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Another//EN\r\n{events}END:VCALENDAR\r\n");
        let status = self.send("PUT", &format!("/{USER}/work/{name}.ics"), body).await;
        assert!(status.is_success(), "{status}");
    }

    pub(crate) async fn delete(&self, name: &str) {
        let status = self.send("DELETE", &format!("/{USER}/work/{name}.ics"), String::new()).await;
        assert!(status.is_success(), "{status}");
    }

    /// As a server does after a while.
    pub(crate) fn forget_sync_tokens(&self) {
        let tokens =
            self.folder.join(format!("collections/collection-root/{USER}/work/.Radicale.cache/sync-token"));
        fs::remove_dir_all(tokens).unwrap();
    }

    /// Every object of the calendar, as the server has it.
    pub(crate) async fn objects(&self) -> String {
        let request = reqwest::Client::new().get(self.url(&format!("/{USER}/work/")));
        let answer = request.basic_auth(USER, Some(PASSWORD)).send().await.unwrap();
        answer.text().await.unwrap().replace("\r\n ", "")
    }

    async fn send(&self, method: &str, path: &str, body: String) -> StatusCode {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let request = reqwest::Client::new().request(method, self.url(path)).body(body);
        request.basic_auth(USER, Some(PASSWORD)).send().await.unwrap().status()
    }
}

impl Drop for Radicale {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn config(folder: &Path, port: u16) -> String {
    let folder = folder.display();
    format!(
        "[server]\nhosts = 127.0.0.1:{port}\n[auth]\ntype = htpasswd\nhtpasswd_filename = {folder}/users\n\
         htpasswd_encryption = plain\ndelay = 0\n[storage]\nfilesystem_folder = {folder}/collections\n\
         [web]\ntype = none\n[logging]\nlevel = error\n"
    )
}
