//! The thread that reads what is in the file, while the writer waits for the disk.

use std::sync::mpsc::Receiver;

use quarterdeck_contracts::StoreError;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::rows::{StoredRow, Wanted};

/// Somebody wants rows.
pub(super) struct ReadRequest {
    pub(super) wanted: Wanted,
    pub(super) answer: oneshot::Sender<Result<Vec<StoredRow>, StoreError>>,
}

/// Works until nobody is left to ask, or somebody says that it is over.
pub(super) fn run(connection: &Connection, requests: &Receiver<Option<ReadRequest>>) {
    while let Ok(Some(request)) = requests.recv() {
        // Nobody waits for it any more, and it changes nothing.
        if request.answer.is_closed() {
            continue;
        }
        drop(request.answer.send(request.wanted.read(connection)));
    }
}
