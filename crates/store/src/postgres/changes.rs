//! News between nodes. A notification is a hint, sent in a transaction of its own: inside a commit it would make all commits
//! of the server wait for each other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quarterdeck_contracts::{Change, ChangeEvent, Changes};
use quarterdeck_postgres::{Database, DatabaseError, Dedicated};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::types::Type;

use super::retry::repeat;
use crate::changes::LocalChanges;

const CHANNEL: &str = "qd_changes";
/// What waits to be sent; beyond it, others are told to read everything again.
const MAX_WAITING: usize = 1_024;
const MAX_BATCH: usize = 64;
/// The server's limit is 7,999.
const MAX_PAYLOAD_BYTES: usize = 7_900;
/// A silent line is asked whether it is still there.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(5);
const MIN_RECONNECT_DELAY: Duration = Duration::from_millis(100);
const MAX_RECONNECT_DELAY: Duration = Duration::from_secs(2);
/// What still waits to be sent when the store is closed gets so long.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) struct SharedChanges {
    local: LocalChanges,
    /// Tells our own notifications from those of others.
    node: String,
    /// `None` once the store is closed.
    outgoing: Mutex<Option<Sender<Change>>>,
    /// Some could not be sent.
    has_dropped: AtomicBool,
    tasks: Mutex<Tasks>,
}

#[derive(Default)]
struct Tasks {
    sending: Option<JoinHandle<()>>,
    listening: Option<JoinHandle<()>>,
}

impl SharedChanges {
    pub(super) fn start(runtime: &Handle, database: &Database) -> Arc<Self> {
        let (outgoing, waiting) = channel(MAX_WAITING);
        let mut random = [0; 8];
        // Without randomness a node hears its own notifications twice.
        let _ = getrandom::fill(&mut random);
        let changes = Arc::new(Self {
            local: LocalChanges::default(),
            node: format!("{:016x}", u64::from_ne_bytes(random)),
            outgoing: Mutex::new(Some(outgoing)),
            has_dropped: AtomicBool::new(false),
            tasks: Mutex::default(),
        });
        let sending = runtime.spawn(Arc::clone(&changes).send_all(database.clone(), waiting));
        lock(&changes.tasks).sending = Some(sending);
        changes
    }

    /// Never waits.
    pub(super) fn notify(&self, change: Change) {
        self.local.notify(change.clone());
        self.send_later(change);
    }

    fn send_later(&self, change: Change) {
        let sent = lock(&self.outgoing).as_ref().map(|outgoing| outgoing.try_send(change));
        if matches!(sent, Some(Err(_))) {
            self.has_dropped.store(true, Ordering::Release);
        }
    }

    /// The first watcher makes this node listen.
    pub(super) fn watch(self: &Arc<Self>, runtime: &Handle, database: &Database) -> Changes {
        let changes = self.local.watch();
        let mut tasks = lock(&self.tasks);
        // Without the other task the store is closed.
        if tasks.listening.is_none() && tasks.sending.is_some() {
            tasks.listening = Some(runtime.spawn(Arc::clone(self).listen(database.clone())));
        }
        changes
    }

    /// Sends what waits, if the database is there, and ends every watcher's stream.
    pub(super) async fn close(&self) {
        lock(&self.outgoing).take();
        let Tasks { sending, listening } = std::mem::take(&mut *lock(&self.tasks));
        if let Some(mut sending) = sending
            && timeout(CLOSE_TIMEOUT, &mut sending).await.is_err()
        {
            sending.abort();
        }
        if let Some(listening) = listening {
            listening.abort();
        }
        self.local.close();
    }

    /// Sends what [`SharedChanges::notify`] was given, several at a time.
    pub(super) async fn send_all(self: Arc<Self>, database: Database, mut waiting: Receiver<Change>) {
        while let Some(first) = waiting.recv().await {
            let mut payloads = vec![self.payload(&first)];
            while payloads.len() < MAX_BATCH
                && let Ok(change) = waiting.try_recv()
            {
                payloads.push(self.payload(&change));
            }
            if self.has_dropped.swap(false, Ordering::AcqRel) {
                payloads.push(String::new());
            }
            if let Err(error) = send(&database, payloads).await {
                self.has_dropped.store(true, Ordering::Release);
                tracing::warn!(%error, "other nodes could not be notified; they find out when they look");
            }
        }
    }

    /// An empty one tells others to read everything again.
    fn payload(&self, change: &Change) -> String {
        let payload = serde_json::json!([self.node, change.topic, change.key]).to_string();
        if payload.len() > MAX_PAYLOAD_BYTES { String::new() } else { payload }
    }

    async fn listen(self: Arc<Self>, database: Database) {
        let mut delay = MIN_RECONNECT_DELAY;
        loop {
            match self.listen_once(&database, &mut delay).await {
                Ok(()) => tracing::warn!("the connection that listens for changes ended"),
                Err(error) => tracing::warn!(%error, "changes of other nodes cannot be heard"),
            }
            sleep(delay).await;
            delay = (delay * 2).min(MAX_RECONNECT_DELAY);
        }
    }

    /// Until the connection ends.
    async fn listen_once(&self, database: &Database, delay: &mut Duration) -> Result<(), DatabaseError> {
        let mut connection = database.dedicated().await?;
        let listening = connection.client.batch_execute("LISTEN qd_changes");
        match timeout(PING_TIMEOUT, listening).await {
            Ok(listening) => listening.map_err(|error| database.error_of(&error))?,
            Err(_) => return Ok(()),
        }
        *delay = MIN_RECONNECT_DELAY;
        // What was told before this moment was missed.
        self.local.send(ChangeEvent::Resync);
        let mut has_heard = false;
        let own = Change { topic: String::new(), key: String::new() };
        self.send_later(own);
        loop {
            match timeout(PING_INTERVAL, connection.notifications.recv()).await {
                Ok(Some(notification)) => {
                    has_heard = true;
                    self.receive(notification.payload());
                }
                Ok(None) => return Ok(()),
                Err(_) if !answers(&connection).await => return Ok(()),
                Err(_) if has_heard => {}
                Err(_) => {
                    tracing::warn!(
                        "no notification arrives, not even our own; is there a pooler in transaction mode? \
                         Changes are looked for every 10 s instead"
                    );
                    self.local.send(ChangeEvent::Resync);
                }
            }
        }
    }

    fn receive(&self, payload: &str) {
        match serde_json::from_str::<(String, String, String)>(payload) {
            Ok((node, _, _)) if node == self.node => {}
            Ok((_, topic, _)) if topic.is_empty() => {}
            Ok((_, topic, key)) => self.local.notify(Change { topic, key }),
            Err(_) => self.local.send(ChangeEvent::Resync),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn answers(connection: &Dedicated) -> bool {
    timeout(PING_TIMEOUT, connection.client.check_connection()).await.is_ok_and(|answer| answer.is_ok())
}

async fn send(database: &Database, payloads: Vec<String>) -> Result<(), quarterdeck_contracts::StoreError> {
    let sql = "SELECT pg_notify($1, payload) FROM unnest($2) AS payload";
    repeat(database, move |client| {
        let payloads = payloads.clone();
        Box::pin(async move {
            client.query_typed(sql, &[(&CHANNEL, Type::TEXT), (&payloads, Type::TEXT_ARRAY)]).await.map(drop)
        })
    })
    .await
}
