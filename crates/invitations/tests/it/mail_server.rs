//! A mail server that takes messages, and refuses or hangs up where it is told to. The real one is in `tests/clients`.

use std::sync::{Arc, Mutex, MutexGuard};

use quarterdeck_invitations::{Credentials, Encryption, SmtpConfig};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

#[derive(Default)]
pub(crate) struct State {
    /// Recipients and text of every message that was taken.
    pub(crate) messages: Vec<(Vec<String>, String)>,
    pub(crate) commands: Vec<String>,
    /// Answers to commands that begin like this, once each.
    failures: Vec<(&'static str, &'static str)>,
    /// The connection is cut after the next message has been taken.
    pub(crate) cut_after_message: bool,
}

#[derive(Clone)]
pub(crate) struct MailServer {
    pub(crate) port: u16,
    state: Arc<Mutex<State>>,
}

impl MailServer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self { port: listener.local_addr().unwrap().port(), state: Arc::default() };
        let running = server.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let server = running.clone();
                tokio::spawn(async move { server.converse(socket).await });
            }
        });
        server
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Lets the next command that begins like this fail with an answer.
    pub(crate) fn fail(&self, command: &'static str, answer: &'static str) {
        self.state().failures.push((command, answer));
    }

    pub(crate) fn config(&self) -> SmtpConfig {
        SmtpConfig {
            host: "127.0.0.1".into(),
            port: Some(self.port),
            encryption: Encryption::None,
            credentials: Some(Credentials::new("deck".into(), "planted-mail-password".into())),
            from: "Calendar <calendar@example.com>".into(),
            ca_pem: None,
            time_zone: "Europe/Berlin".into(),
        }
    }

    async fn converse(&self, socket: TcpStream) -> Option<()> {
        let mut socket = BufReader::new(socket);
        say(&mut socket, "220 mail ready").await?;
        let mut to = Vec::new();
        loop {
            let command = line(&mut socket).await?;
            let failure = {
                let mut state = self.state();
                state.commands.push(command.clone());
                let at = state.failures.iter().position(|(of, _)| command.starts_with(of));
                at.map(|at| state.failures.remove(at).1)
            };
            if let Some(answer) = failure {
                say(&mut socket, answer).await?;
                continue;
            }
            match command.split([' ', ':']).next()? {
                "EHLO" => say(&mut socket, "250-mail\r\n250 AUTH PLAIN LOGIN").await?,
                "AUTH" => say(&mut socket, "235 fine").await?,
                "RCPT" => {
                    to.push(command.split(['<', '>']).nth(1)?.to_owned());
                    say(&mut socket, "250 fine").await?;
                }
                "DATA" => {
                    say(&mut socket, "354 go on").await?;
                    let mut text = String::new();
                    loop {
                        let line = line(&mut socket).await?;
                        if line == "." {
                            break;
                        }
                        text.push_str(line.strip_prefix('.').unwrap_or(&line));
                        text.push_str("\r\n");
                    }
                    self.state().messages.push((std::mem::take(&mut to), text));
                    if std::mem::take(&mut self.state().cut_after_message) {
                        return None;
                    }
                    say(&mut socket, "250 taken").await?;
                }
                "QUIT" => {
                    say(&mut socket, "221 bye").await?;
                    return Some(());
                }
                _ => say(&mut socket, "250 fine").await?,
            }
        }
    }
}

async fn say(socket: &mut BufReader<TcpStream>, text: &str) -> Option<()> {
    socket.write_all(format!("{text}\r\n").as_bytes()).await.ok()
}

async fn line(socket: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    match socket.read_line(&mut line).await {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line.trim_end_matches(['\r', '\n']).to_owned()),
    }
}
