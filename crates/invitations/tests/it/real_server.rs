//! Invitations through aiosmtpd, a mail server that is not ours. `scripts/mail-server` installs it.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use quarterdeck_contracts::{NoticeKind, Scan, Store, Table};
use quarterdeck_invitations::{Credentials, Encryption, InvitationSender, SmtpConfig};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::mail::{commit, event, notice, only_event};
use crate::world::{clock, store};

struct RealServer {
    /// Ends the server when it is dropped.
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    port: u16,
    ca: String,
}

impl RealServer {
    /// `None` where it is not installed, which is said.
    async fn start(mode: &str) -> Option<Self> {
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let python = here.join("../../target/mail-server/bin/python");
        if !python.exists() {
            #[expect(clippy::disallowed_methods, reason = "a switch of the test scripts")]
            let required = std::env::var_os("QUARTERDECK_REQUIRE_CLIENTS").is_some_and(|value| value == "1");
            assert!(!required, "run scripts/mail-server: aiosmtpd is required here");
            #[expect(clippy::print_stderr, reason = "a test that does not run must say so")]
            {
                eprintln!("skipped: aiosmtpd is not installed; scripts/mail-server does that");
            }
            return None;
        }
        let mut child = Command::new(python)
            .arg(here.join("tests/mail_server.py"))
            .arg(mode)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut server = Self { _child: child, lines, port: 0, ca: String::new() };
        let started = server.next().await;
        server.port = started["port"].as_u64().unwrap() as u16;
        server.ca = started["ca"].as_str().unwrap().to_owned();
        Some(server)
    }

    async fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.next_line().await.unwrap().unwrap()).unwrap()
    }

    fn config(&self, encryption: Encryption) -> SmtpConfig {
        let is_plain = encryption == Encryption::None;
        SmtpConfig {
            host: "localhost".into(),
            port: Some(self.port),
            encryption,
            credentials: (!is_plain).then(|| Credentials::new("deck".into(), "right".into())),
            from: "Calendar <calendar@example.com>".into(),
            ca_pem: Some(self.ca.clone()),
            time_zone: "Europe/Berlin".into(),
        }
    }
}

/// Sends one invitation, and returns how many are still in the outbox.
async fn send(config: &SmtpConfig) -> usize {
    let store: Arc<dyn Store> = store();
    let sender = InvitationSender::new(config, store.clone(), clock()).unwrap();
    commit(&store, &sender.notifier(), notice(NoticeKind::Invitation, event(), "call-1")).await;
    sender.send_due().await.unwrap();
    store.scan(Table::Outbox, Scan::prefix("", 10)).await.unwrap().len()
}

#[tokio::test]
async fn a_real_server_takes_an_invitation_by_every_way() {
    for (mode, encryption) in
        [("plain", Encryption::None), ("starttls", Encryption::StartTls), ("tls", Encryption::Tls)]
    {
        let Some(mut server) = RealServer::start(mode).await else { return };
        assert_eq!(send(&server.config(encryption)).await, 0, "{mode}");
        let message = server.next().await;
        assert_eq!(message["from"], "calendar@example.com");
        assert_eq!(message["to"], serde_json::json!(["ada@example.com", "bob@example.org"]));
        assert_eq!(message["subject"], "Invitation: Überblick, 2nd round");
        assert_eq!(message["defects"], serde_json::json!([]), "{mode}");
        assert_eq!(message["user"].as_str(), (mode != "plain").then_some("deck"));
        let parts = message["parts"].as_array().unwrap();
        let kinds: Vec<_> = parts.iter().map(|part| part["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["text/plain", "text/calendar", "application/ics"]);
        assert_eq!(parts[1]["parameters"]["method"], "REQUEST");
        let (_, read) = only_event(parts[1]["text"].as_str().unwrap());
        assert_eq!(icalendar::Component::get_uid(&read), Some("4f2a@quarterdeck"));
    }
}

#[tokio::test]
async fn a_wrong_password_or_an_unknown_certificate_sends_nothing_and_keeps_the_invitation() {
    for (mode, encryption) in [("starttls", Encryption::StartTls), ("tls", Encryption::Tls)] {
        let Some(server) = RealServer::start(mode).await else { return };
        let wrong = Credentials::new("deck".into(), "wrong".into());
        let refused = SmtpConfig { credentials: Some(wrong), ..server.config(encryption) };
        assert_eq!(send(&refused).await, 1, "{mode}");
        let distrusted = SmtpConfig { ca_pem: None, ..server.config(encryption) };
        assert_eq!(send(&distrusted).await, 1, "{mode}");
        let misnamed = SmtpConfig { host: "127.0.0.1".into(), ..server.config(encryption) };
        assert_eq!(send(&misnamed).await, 1, "the certificate is for another name: {mode}");
    }
}
