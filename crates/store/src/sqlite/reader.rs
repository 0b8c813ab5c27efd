//! The thread that reads what is in the file, while the writer waits for the disk.

use std::sync::mpsc::Receiver;

use quarterdeck_contracts::StoreError;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::health::Health;
use super::rows::{StoredRow, Wanted};

/// Somebody wants rows.
pub(super) struct ReadRequest {
    pub(super) wanted: Wanted,
    pub(super) answer: oneshot::Sender<Result<Vec<StoredRow>, StoreError>>,
}

/// Works until nobody is left to ask, or somebody says that it is over.
pub(super) fn run(connection: &Connection, health: &Health, requests: &Receiver<Option<ReadRequest>>) {
    while let Ok(Some(request)) = requests.recv() {
        // Nobody waits for it any more, and it changes nothing.
        if request.answer.is_closed() {
            continue;
        }
        let rows = request.wanted.read(connection).map_err(|error| health.failed(error));
        drop(request.answer.send(rows));
    }
}
