//! The thread that reads what is in the file, while the writer waits for the disk.

use std::sync::mpsc::Receiver;

use quarterdeck_contracts::StoreError;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::health::Health;
use super::rows::{ReadQuery, StoredRow};

pub(super) struct ReadRequest {
    pub(super) query: ReadQuery,
    pub(super) answer: oneshot::Sender<Result<Vec<StoredRow>, StoreError>>,
}

/// Runs until the store is closed, which `None` says.
pub(super) fn run(connection: &Connection, health: &Health, requests: &Receiver<Option<ReadRequest>>) {
    while let Ok(Some(request)) = requests.recv() {
        // The caller has dropped its future.
        if request.answer.is_closed() {
            continue;
        }
        let rows = request.query.read(connection).map_err(|error| health.failed(error));
        drop(request.answer.send(rows));
    }
}
