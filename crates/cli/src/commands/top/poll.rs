//! Asks the server again and again, in a thread of its own.

use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use super::reading::Reading;
use crate::admin_client::AdminClient;

const INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct Poller {
    readings: Receiver<anyhow::Result<Reading>>,
}

impl Poller {
    /// Asks until the poller is dropped.
    pub(super) fn start(client: AdminClient) -> Self {
        let (sender, readings) = sync_channel(1);
        std::thread::spawn(move || {
            loop {
                let began = Instant::now();
                if sender.send(Reading::take(&client)).is_err() {
                    return;
                }
                std::thread::sleep(INTERVAL.saturating_sub(began.elapsed()));
            }
        });
        Self { readings }
    }

    /// A reading that has come since the last time.
    pub(super) fn next(&self) -> Option<anyhow::Result<Reading>> {
        self.readings.try_recv().ok()
    }
}
