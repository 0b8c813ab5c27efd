//! One connection: handshake, setup, and then frames both ways until somebody has had enough.

mod errand;
mod handshake;

use std::future::poll_fn;
use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use quarterdeck_websocket::{Class, CloseCode, Message, Opcode, SocketError, WebSocket};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout};

use self::errand::Running;
use super::client_frame::ClientFrame;
use super::conversation::Conversation;
use super::desk::Desk;
use super::scenario::{DisconnectAfter, Form, Refusal};
use super::session::{Done, Out, Session};
use super::setup::Setup;

/// How much may wait for a client that does not read.
const MOST_WAITING: usize = 16 << 20;
/// How long the handshake may take, and then the setup.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(2);

/// How a connection has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionEnd {
    /// Which one it was, counted from 1; 0 if it did not get through the handshake.
    pub connection: usize,
    /// By whom it was ended.
    pub by: EndedBy,
    /// How, in a few words.
    pub how: String,
    /// Frames that came.
    pub received: usize,
    /// Frames that were sent.
    pub sent: usize,
}

/// By whom a connection was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// It said goodbye, or is lost.
    Client,
    /// The scenario says so, or the client had done something that it must not do.
    Simulator,
}

/// Serves a connection to its end.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send>(
    desk: Arc<Desk>,
    stream: S,
) -> ConnectionEnd {
    let mut end =
        ConnectionEnd { connection: 0, by: EndedBy::Client, how: String::new(), received: 0, sent: 0 };
    match timeout(PATIENCE, handshake::welcome(&desk, stream, &mut end)).await {
        Err(_) => end.how = "the handshake took too long".into(),
        Ok(Err(why)) => end.how = why,
        Ok(Ok(socket)) => {
            let _open = Open::new(desk.clone());
            let form = desk.scenario().map_or(Form::Binary, |scenario| scenario.form);
            let cuts = desk.scenario().map(|scenario| scenario.cuts(end.connection)).unwrap_or_default();
            let mut line = Line { socket, form, cuts, end };
            line.serve(&desk).await;
            return line.end;
        }
    }
    end
}

/// Counts a connection for as long as it is served, even if it is given up in the middle.
struct Open(Arc<Desk>);

impl Open {
    fn new(desk: Arc<Desk>) -> Self {
        desk.books().open += 1;
        Self(desk)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.books().open -= 1;
    }
}

/// A connection after its handshake.
struct Line<S> {
    socket: WebSocket<S>,
    form: Form,
    cuts: Vec<DisconnectAfter>,
    end: ConnectionEnd,
}

/// What happened while a connection waited.
enum Event {
    Arrived(Result<(), SocketError>),
    Done(Done),
    Time,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Line<S> {
    async fn serve(&mut self, desk: &Arc<Desk>) {
        if self.cuts.contains(&DisconnectAfter::Sent(0)) {
            return self.cut().await;
        }
        let Some(mut session) = self.set_up(desk).await else { return };
        let mut running: Option<Running> = None;
        loop {
            if self.hear(&mut session).await.is_break() {
                return;
            }
            session.advance(Instant::now());
            if let Some(new) = session.take_errand() {
                running = Some(errand::run(new, desk));
            } else if !session.waits_for_errand() {
                running = None;
            }
            if self.send(&mut session).await.is_break() {
                return;
            }
            match self.wait(&session, &mut running).await {
                Event::Arrived(Ok(())) | Event::Time => {}
                Event::Done(done) => {
                    running = None;
                    session.done(done, Instant::now());
                }
                Event::Arrived(Err(broken)) => {
                    session.was_left();
                    self.ended(EndedBy::Client, &broken.to_string());
                    return;
                }
            }
        }
    }

    /// Waits for the first frame and makes a session of it, or refuses.
    async fn set_up(&mut self, desk: &Arc<Desk>) -> Option<Session> {
        let number = self.end.connection;
        let Ok(first) = timeout(PATIENCE, self.first()).await else {
            self.close(1008, "no setup came").await;
            return None;
        };
        let made = match first? {
            Ok(ClientFrame::Setup(setup)) => self.session(desk, &setup),
            Ok(_) => Err("setup must be the first message".to_owned()),
            Err(fault) => Err(fault),
        };
        if self.cuts.contains(&DisconnectAfter::Received(1)) {
            self.cut().await;
            return None;
        }
        let rules = || desk.scenario().into_iter().flat_map(|scenario| scenario.rules(number));
        if let Some(Refusal::Close(code, reason)) = rules().find_map(|rule| rule.refusal.clone()) {
            self.close(code, &reason).await;
            return None;
        }
        match made {
            Ok(mut session) => {
                let delay = rules().map(|rule| rule.setup_delay).max().unwrap_or_default();
                session.open_at(Instant::now() + delay);
                Some(session)
            }
            Err(why) => {
                desk.books().report.fault(number, &why);
                self.close(1007, &why).await;
                None
            }
        }
    }

    /// A session in the state that its handle stands for, or at the beginning.
    fn session(&self, desk: &Arc<Desk>, setup: &serde_json::Value) -> Result<Session, String> {
        let number = self.end.connection;
        let setup = Setup::parse(setup)?;
        let handle = setup.resumption.as_ref().and_then(|resumption| resumption.handle.as_deref());
        let conversation = match handle {
            Some(handle) => {
                let mut books = desk.books();
                let found = books
                    .find(handle, Instant::now())
                    .ok_or("the session handle is unknown or has expired")?;
                books.report.resumptions += 1;
                found
            }
            None => {
                let rules = desk.scenario().into_iter().flat_map(|scenario| scenario.rules(number));
                Conversation::begun_at(rules.filter_map(|rule| rule.begins_at).next().unwrap_or(0))
            }
        };
        Ok(Session::new(desk.clone(), number, setup, conversation))
    }

    /// The first frame; nothing if there is none.
    async fn first(&mut self) -> Option<Result<ClientFrame, String>> {
        loop {
            match self.socket.next() {
                Some(Ok(Message::Text(text))) => {
                    self.end.received += 1;
                    return Some(ClientFrame::parse(text.as_bytes()));
                }
                Some(Ok(Message::Binary(bytes))) => {
                    self.end.received += 1;
                    return Some(ClientFrame::parse(bytes));
                }
                Some(Ok(Message::Ping(_) | Message::Pong)) => {}
                Some(Ok(Message::Close(..)) | Err(_)) => {
                    self.ended(EndedBy::Client, "closed before the setup");
                    let _ = timeout(GOODBYE, self.socket.flush()).await;
                    return None;
                }
                None => {
                    if let Err(broken) = self.socket.fill().await {
                        self.ended(EndedBy::Client, &broken.to_string());
                        return None;
                    }
                }
            }
        }
    }

    /// Hands on what has arrived.
    async fn hear(&mut self, session: &mut Session) -> ControlFlow<()> {
        loop {
            let frame = match self.socket.next() {
                None => return Continue(()),
                Some(Ok(Message::Text(text))) => ClientFrame::parse(text.as_bytes()),
                Some(Ok(Message::Binary(bytes))) => ClientFrame::parse(bytes),
                Some(Ok(Message::Ping(_) | Message::Pong)) => continue,
                Some(Ok(Message::Close(code, _))) => {
                    let code = code.map_or("no code".to_owned(), |code| code.0.to_string());
                    session.was_left();
                    self.ended(EndedBy::Client, &format!("closed with {code}"));
                    let _ = timeout(GOODBYE, self.socket.flush()).await;
                    return Break(());
                }
                Some(Err(violation)) => {
                    session.hear(Err(format!("the client broke the protocol: {violation}")), Instant::now());
                    self.ended(EndedBy::Simulator, violation.what);
                    let _ = timeout(GOODBYE, self.socket.flush()).await;
                    return Break(());
                }
            };
            self.end.received += 1;
            session.hear(frame, Instant::now());
            if self.cuts.contains(&DisconnectAfter::Received(self.end.received)) {
                self.cut().await;
                return Break(());
            }
        }
    }

    /// Puts in line what the session has put out.
    async fn send(&mut self, session: &mut Session) -> ControlFlow<()> {
        while let Some(out) = session.take_out() {
            match out {
                Out::Frame(bytes) => {
                    let opcode = match self.form {
                        Form::Binary => Opcode::Binary,
                        Form::Text => Opcode::Text,
                    };
                    let write = |out: &mut Vec<u8>| out.extend_from_slice(&bytes);
                    self.socket.send(opcode, Class::Control, bytes.len(), write);
                    self.end.sent += 1;
                    if self.cuts.contains(&DisconnectAfter::Sent(self.end.sent)) {
                        self.cut().await;
                        return Break(());
                    }
                }
                Out::Close(code, reason) => {
                    self.close(code, &reason).await;
                    return Break(());
                }
                Out::Abort => {
                    self.cut().await;
                    return Break(());
                }
            }
        }
        if self.socket.queued_bytes() > MOST_WAITING {
            self.ended(EndedBy::Simulator, "the client does not read");
            return Break(());
        }
        Continue(())
    }

    /// Waits for the client, for somebody who does something for us, or for the time.
    async fn wait(&mut self, session: &Session, running: &mut Option<Running>) -> Event {
        let socket = &mut self.socket;
        let arrives = poll_fn(|context| {
            if socket.queued_bytes() > 0
                && let Poll::Ready(Err(broken)) = socket.poll_flush(context)
            {
                return Poll::Ready(Err(broken));
            }
            socket.poll_fill(context)
        });
        let done = poll_fn(|context| match running {
            Some(running) => running.as_mut().poll(context),
            None => Poll::Pending,
        });
        let time = async {
            match session.wake_at() {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            arrived = arrives => Event::Arrived(arrived),
            done = done => Event::Done(done),
            () = time => Event::Time,
        }
    }

    /// Sends what waits, and then nothing, not even a goodbye.
    async fn cut(&mut self) {
        let _ = timeout(GOODBYE, self.socket.flush()).await;
        self.ended(EndedBy::Simulator, "cut");
    }

    async fn close(&mut self, code: u16, reason: &str) {
        let _ = timeout(GOODBYE, self.socket.finish(CloseCode(code), reason)).await;
        self.ended(EndedBy::Simulator, &format!("closed with {code}: {reason}"));
    }

    fn ended(&mut self, by: EndedBy, how: &str) {
        self.end.by = by;
        how.clone_into(&mut self.end.how);
    }
}
