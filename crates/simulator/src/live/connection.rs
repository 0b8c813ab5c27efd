//! One connection: handshake, setup, and then frames both ways until either end closes it.

mod handshake;
mod task;

use std::future::poll_fn;
use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use quarterdeck_websocket::{Class, CloseCode, Message, Opcode, SocketError, WebSocket};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout};

use self::task::TaskFuture;
use super::client_frame::ClientFrame;
use super::conversation::Conversation;
use super::scenario::{DisconnectAfter, FrameKind, Refusal};
use super::session::{Output, Session, TaskResult};
use super::setup::Setup;
use super::simulation::Simulation;

/// With more in the send queue, the client does not read.
const MAX_QUEUED_BYTES: usize = 16 << 20;
/// For the handshake, and again for the setup.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// How a connection has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionEnd {
    /// Counted from 1; 0 if the handshake failed.
    pub connection: usize,
    /// Which end ended it.
    pub by: EndedBy,
    /// In a few words.
    pub how: String,
    /// Frames received.
    pub received: usize,
    /// Frames sent.
    pub sent: usize,
}

/// Which end ended a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// It closed the connection, or is lost.
    Client,
    /// As the scenario says, or because of a fault of the client.
    Simulator,
}

pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send>(
    simulation: Arc<Simulation>,
    stream: S,
) -> ConnectionEnd {
    let mut end =
        ConnectionEnd { connection: 0, by: EndedBy::Client, how: String::new(), received: 0, sent: 0 };
    match timeout(HANDSHAKE_TIMEOUT, handshake::accept(&simulation, stream, &mut end)).await {
        Err(_) => end.how = "the handshake took too long".into(),
        Ok(Err(why)) => end.how = why,
        Ok(Ok(socket)) => {
            let _open = OpenConnection::new(simulation.clone());
            let frame_kind = simulation.scenario().map_or(FrameKind::Binary, |scenario| scenario.frame_kind);
            let disconnects = simulation
                .scenario()
                .map(|scenario| scenario.disconnects(end.connection))
                .unwrap_or_default();
            let mut connection = Connection { socket, frame_kind, disconnects, end };
            connection.serve(&simulation).await;
            return connection.end;
        }
    }
    end
}

/// Counts a connection for as long as it is served, even if serving is cancelled.
struct OpenConnection(Arc<Simulation>);

impl OpenConnection {
    fn new(simulation: Arc<Simulation>) -> Self {
        simulation.state().open_connections += 1;
        Self(simulation)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.state().open_connections -= 1;
    }
}

/// A connection after its handshake.
struct Connection<S> {
    socket: WebSocket<S>,
    frame_kind: FrameKind,
    disconnects: Vec<DisconnectAfter>,
    end: ConnectionEnd,
}

enum Event {
    Arrived(Result<(), SocketError>),
    Task(TaskResult),
    Timer,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    async fn serve(&mut self, simulation: &Arc<Simulation>) {
        if self.disconnects.contains(&DisconnectAfter::Sent(0)) {
            return self.disconnect().await;
        }
        let Some(mut session) = self.set_up(simulation).await else { return };
        let mut task_future: Option<TaskFuture> = None;
        loop {
            if self.receive(&mut session).await.is_break() {
                return;
            }
            session.advance(Instant::now());
            if let Some(task) = session.take_task() {
                task_future = Some(task::run(task, simulation));
            } else if !session.is_waiting_for_task() {
                task_future = None;
            }
            if self.send(&mut session).await.is_break() {
                return;
            }
            match self.wait(&session, &mut task_future).await {
                Event::Arrived(Ok(())) | Event::Timer => {}
                Event::Task(result) => {
                    task_future = None;
                    session.take_result(result, Instant::now());
                }
                Event::Arrived(Err(error)) => {
                    session.client_left();
                    self.record_end(EndedBy::Client, &error.to_string());
                    return;
                }
            }
        }
    }

    /// Reads the setup and starts a session, or refuses it.
    async fn set_up(&mut self, simulation: &Arc<Simulation>) -> Option<Session> {
        let number = self.end.connection;
        let Ok(first) = timeout(HANDSHAKE_TIMEOUT, self.first_frame()).await else {
            self.close(1008, "no setup came").await;
            return None;
        };
        let session = match first? {
            Ok(ClientFrame::Setup(setup)) => self.session(simulation, &setup),
            Ok(_) => Err("setup must be the first message".to_owned()),
            Err(fault) => Err(fault),
        };
        if self.disconnects.contains(&DisconnectAfter::Received(1)) {
            self.disconnect().await;
            return None;
        }
        let rules = || simulation.scenario().into_iter().flat_map(|scenario| scenario.rules(number));
        if let Some(Refusal::Close(code, reason)) = rules().find_map(|rule| rule.refusal.clone()) {
            self.close(code, &reason).await;
            return None;
        }
        match session {
            Ok(mut session) => {
                let delay = rules().map(|rule| rule.setup_delay).max().unwrap_or_default();
                session.complete_setup_at(Instant::now() + delay);
                Some(session)
            }
            Err(why) => {
                simulation.state().report.fault(number, &why);
                self.close(1007, &why).await;
                None
            }
        }
    }

    /// A session in the state of its handle, or at the beginning.
    fn session(&self, simulation: &Arc<Simulation>, setup: &serde_json::Value) -> Result<Session, String> {
        let number = self.end.connection;
        let setup = Setup::parse(setup)?;
        let handle = setup.resumption.as_ref().and_then(|resumption| resumption.handle.as_deref());
        let conversation = match handle {
            Some(handle) => {
                let mut state = simulation.state();
                let found = state
                    .find(handle, Instant::now())
                    .ok_or("the session handle is unknown or has expired")?;
                state.report.resumptions += 1;
                found
            }
            None => {
                let rules = simulation.scenario().into_iter().flat_map(|scenario| scenario.rules(number));
                Conversation::starting_at(rules.filter_map(|rule| rule.begins_at).next().unwrap_or(0))
            }
        };
        Ok(Session::new(simulation.clone(), number, setup, conversation))
    }

    async fn first_frame(&mut self) -> Option<Result<ClientFrame, String>> {
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
                    self.record_end(EndedBy::Client, "closed before the setup");
                    let _ = timeout(CLOSE_TIMEOUT, self.socket.flush()).await;
                    return None;
                }
                None => {
                    if let Err(error) = self.socket.fill().await {
                        self.record_end(EndedBy::Client, &error.to_string());
                        return None;
                    }
                }
            }
        }
    }

    /// Passes what has arrived to the session.
    async fn receive(&mut self, session: &mut Session) -> ControlFlow<()> {
        loop {
            let frame = match self.socket.next() {
                None => return Continue(()),
                Some(Ok(Message::Text(text))) => ClientFrame::parse(text.as_bytes()),
                Some(Ok(Message::Binary(bytes))) => ClientFrame::parse(bytes),
                Some(Ok(Message::Ping(_) | Message::Pong)) => continue,
                Some(Ok(Message::Close(code, _))) => {
                    let code = code.map_or("no code".to_owned(), |code| code.0.to_string());
                    session.client_left();
                    self.record_end(EndedBy::Client, &format!("closed with {code}"));
                    let _ = timeout(CLOSE_TIMEOUT, self.socket.flush()).await;
                    return Break(());
                }
                Some(Err(violation)) => {
                    session.take_frame(
                        Err(format!("the client broke the protocol: {violation}")),
                        Instant::now(),
                    );
                    self.record_end(EndedBy::Simulator, violation.what);
                    let _ = timeout(CLOSE_TIMEOUT, self.socket.flush()).await;
                    return Break(());
                }
            };
            self.end.received += 1;
            session.take_frame(frame, Instant::now());
            if self.disconnects.contains(&DisconnectAfter::Received(self.end.received)) {
                self.disconnect().await;
                return Break(());
            }
        }
    }

    /// Queues the session's outputs.
    async fn send(&mut self, session: &mut Session) -> ControlFlow<()> {
        while let Some(out) = session.take_output() {
            match out {
                Output::Frame(bytes) => {
                    let opcode = match self.frame_kind {
                        FrameKind::Binary => Opcode::Binary,
                        FrameKind::Text => Opcode::Text,
                    };
                    let write = |out: &mut Vec<u8>| out.extend_from_slice(&bytes);
                    self.socket.send(opcode, Class::Control, bytes.len(), write);
                    self.end.sent += 1;
                    if self.disconnects.contains(&DisconnectAfter::Sent(self.end.sent)) {
                        self.disconnect().await;
                        return Break(());
                    }
                }
                Output::Close(code, reason) => {
                    self.close(code, &reason).await;
                    return Break(());
                }
                Output::Abort => {
                    self.disconnect().await;
                    return Break(());
                }
            }
        }
        if self.socket.queued_bytes() > MAX_QUEUED_BYTES {
            self.record_end(EndedBy::Simulator, "the client does not read");
            return Break(());
        }
        Continue(())
    }

    /// Waits for the client, for the task, or for the time.
    async fn wait(&mut self, session: &Session, task_future: &mut Option<TaskFuture>) -> Event {
        let socket = &mut self.socket;
        let arrives = poll_fn(|context| {
            if socket.queued_bytes() > 0
                && let Poll::Ready(Err(error)) = socket.poll_flush(context)
            {
                return Poll::Ready(Err(error));
            }
            socket.poll_fill(context)
        });
        let result = poll_fn(|context| match task_future {
            Some(task_future) => task_future.as_mut().poll(context),
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
            result = result => Event::Task(result),
            () = time => Event::Timer,
        }
    }

    /// Sends what is queued, and no close frame.
    async fn disconnect(&mut self) {
        let _ = timeout(CLOSE_TIMEOUT, self.socket.flush()).await;
        self.record_end(EndedBy::Simulator, "cut");
    }

    async fn close(&mut self, code: u16, reason: &str) {
        let _ = timeout(CLOSE_TIMEOUT, self.socket.finish(CloseCode(code), reason)).await;
        self.record_end(EndedBy::Simulator, &format!("closed with {code}: {reason}"));
    }

    fn record_end(&mut self, by: EndedBy, how: &str) {
        self.end.by = by;
        how.clone_into(&mut self.end.how);
    }
}
