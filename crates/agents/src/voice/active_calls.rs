//! The active calls: one for each client, and so many in all.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot};

use super::link::ClientLink;

pub(super) struct ActiveCalls {
    max: usize,
    by_client: Mutex<HashMap<String, Entry>>,
    last_number: AtomicU64,
}

struct Entry {
    number: u64,
    session: Option<Arc<str>>,
    /// Tells the call something. Dropping it ends the call.
    commands: mpsc::Sender<CallCommand>,
    is_connected: Arc<AtomicBool>,
}

/// What an active call is told from outside.
pub(super) enum CallCommand {
    /// Another link of its client takes over.
    Link(Box<dyn ClientLink>),
    /// Another node is about to continue it. Says when it may.
    HandOver(oneshot::Sender<()>),
}

/// A client's one active call. Dropping it makes room for another.
pub(super) struct ActiveCall {
    calls: Arc<ActiveCalls>,
    client: String,
    number: u64,
    is_connected: Arc<AtomicBool>,
    /// Told when another node may continue the call.
    pub(super) handing_over: Option<oneshot::Sender<()>>,
}

/// Whether a client can have a call.
pub(super) enum Reservation {
    /// It can, and the receiver gets what it is told.
    Granted(mpsc::Receiver<CallCommand>, ActiveCall),
    /// It is in a call already.
    InCall,
    AtCapacity,
}

impl ActiveCalls {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, by_client: Mutex::default(), last_number: AtomicU64::new(0) })
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether a client is connected to its call.
    pub(super) fn is_connected(&self, client: &str) -> bool {
        self.lock().get(client).is_some_and(Entry::is_connected)
    }

    /// Where the client's call is told something, if it is a call of this session.
    pub(super) fn commands_of(&self, client: &str, session: &str) -> Option<mpsc::Sender<CallCommand>> {
        let calls = self.lock();
        let call = calls.get(client).filter(|call| call.session.as_deref() == Some(session));
        call.map(|call| call.commands.clone())
    }

    /// The same for the call of a session, of any client.
    pub(super) fn commands_of_session(&self, session: &str) -> Option<mpsc::Sender<CallCommand>> {
        let calls = self.lock();
        let call = calls.values().find(|call| call.session.as_deref() == Some(session));
        call.map(|call| call.commands.clone())
    }

    /// Reserves a call. One whose client is away makes room for the client's next.
    pub(super) fn reserve(self: &Arc<Self>, client: &str) -> Reservation {
        let mut calls = self.lock();
        match calls.get(client) {
            Some(call) if call.is_connected() => return Reservation::InCall,
            None if calls.len() >= self.max => return Reservation::AtCapacity,
            _ => {}
        }
        let (commands, incoming) = mpsc::channel(1);
        let is_connected = Arc::new(AtomicBool::new(true));
        let number = self.last_number.fetch_add(1, Ordering::Relaxed);
        let entry = Entry { number, session: None, commands, is_connected: is_connected.clone() };
        calls.insert(client.to_owned(), entry);
        let call = ActiveCall {
            calls: self.clone(),
            client: client.to_owned(),
            number,
            is_connected,
            handing_over: None,
        };
        Reservation::Granted(incoming, call)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.by_client.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn is_connected(&self) -> bool {
        self.is_connected.load(Ordering::Acquire)
    }
}

impl ActiveCall {
    pub(super) fn set_connected(&self, is_connected: bool) {
        self.is_connected.store(is_connected, Ordering::Release);
    }

    pub(super) fn set_session(&self, session: &str) {
        let mut calls = self.calls.lock();
        if let Some(call) = calls.get_mut(&self.client).filter(|call| call.number == self.number) {
            call.session = Some(session.into());
        }
    }
}

impl Drop for ActiveCall {
    fn drop(&mut self) {
        let mut calls = self.calls.lock();
        // Another call of the same client may have begun since.
        if calls.get(&self.client).is_some_and(|call| call.number == self.number) {
            calls.remove(&self.client);
        }
    }
}
