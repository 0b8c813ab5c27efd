//! Sends what is in the outbox.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::tz::TimeZone;
use lettre::Address;
use quarterdeck_contracts::{Commit, Row, Scan, Store, StoreError, Table};
use tokio::time::{Instant, sleep, timeout};

use crate::config::{MailServer, SmtpConfig, SmtpConfigError};
use crate::mailer::{DELIVERY_TIMEOUT, Delivery};
use crate::message;
use crate::notifier::MailNotifier;
use crate::outbox::OutboxRow;

/// How often the outbox is looked at when nothing was written.
const IDLE_INTERVAL: Duration = Duration::from_secs(30);
/// A row that was written is committed when its call ends, a moment later.
const COMMIT_INTERVAL: Duration = Duration::from_millis(250);
const COMMIT_WINDOW: Duration = Duration::from_secs(60);
const PAGE_ROWS: usize = 50;

/// Reads the time of day.
pub type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Takes invitations from the outbox and hands them to a mail server, again and again for a day while that cannot be
/// reached.
pub struct InvitationSender {
    store: Arc<dyn Store>,
    server: MailServer,
    zone: TimeZone,
    clock: WallClock,
    notifier: MailNotifier,
}

impl InvitationSender {
    pub fn new(
        config: &SmtpConfig,
        store: Arc<dyn Store>,
        clock: WallClock,
    ) -> Result<Self, SmtpConfigError> {
        let server = config.check()?;
        let zone = TimeZone::get(&config.time_zone)
            .map_err(|_| SmtpConfigError::TimeZone(config.time_zone.clone()))?;
        Ok(Self { store, server, zone, clock, notifier: MailNotifier::default() })
    }

    /// The notifier whose invitations this sends.
    pub fn notifier(&self) -> MailNotifier {
        self.notifier.clone()
    }

    /// Sends until it is dropped. A message in the middle of being sent then may be sent again at the next start.
    pub async fn run(self) {
        let mut expecting_until = Instant::now();
        loop {
            if let Err(error) = self.send_due().await {
                tracing::warn!(%error, "outbox cannot be read");
            }
            if Instant::now() < expecting_until {
                sleep(COMMIT_INTERVAL).await;
            } else if timeout(IDLE_INTERVAL, self.notifier.written.notified()).await.is_ok() {
                expecting_until = Instant::now() + COMMIT_WINDOW;
            }
        }
    }

    /// Makes one attempt for every message that is due.
    pub async fn send_due(&self) -> Result<(), StoreError> {
        let mut scan = Scan::prefix("", PAGE_ROWS);
        loop {
            let page = self.store.scan(Table::Outbox, scan.clone()).await?;
            let is_last = page.len() < PAGE_ROWS;
            scan.after = page.last().map(|(key, _)| key.clone());
            for (key, row) in page {
                self.send_row(&key, row).await?;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    async fn send_row(&self, key: &str, stored: Row) -> Result<(), StoreError> {
        let now_ms = self.now_ms();
        let Some(row) = OutboxRow::parse(&stored.value) else {
            tracing::error!("outbox holds a row that is not an invitation, dropping it");
            return self.replace(key, None).await;
        };
        if row.next_ms > now_ms {
            return Ok(());
        }
        let claimed = row.claimed(now_ms, DELIVERY_TIMEOUT * 2);
        let claim = Commit::default().check(Table::Outbox, key, Some(stored.version)).put(
            Table::Outbox,
            key,
            claimed.to_value(),
        );
        // Another process of the same store was faster.
        if self.store.commit(claim).await.is_err() {
            return Ok(());
        }
        let remaining = self.attempt(claimed).await;
        self.replace(key, remaining).await
    }

    /// Sends a message, and returns the row that is left of it.
    async fn attempt(&self, row: OutboxRow) -> Option<OutboxRow> {
        let to: Vec<Address> = row.to.iter().filter_map(|address| address.parse().ok()).collect();
        let message = message::build(&row, &self.server.from, &self.zone, (self.clock)());
        let Some(message) = message.filter(|_| to.len() == row.to.len()) else {
            tracing::error!("invitation cannot be written as a message, dropping it");
            return None;
        };
        let deliveries = match self.server.deliver(&to, &message.formatted()).await {
            Ok(deliveries) => deliveries,
            Err(error) => {
                tracing::warn!(
                    reason = error.message,
                    code = error.code,
                    attempt = row.attempts,
                    "invitation not sent"
                );
                vec![Delivery::Deferred; to.len()]
            }
        };
        let count = |wanted| deliveries.iter().filter(|delivery| **delivery == wanted).count();
        let (accepted, refused) = (count(Delivery::Accepted), count(Delivery::Refused));
        if accepted > 0 {
            tracing::info!(attendees = accepted, "invitation sent");
        }
        if refused > 0 {
            tracing::warn!(attendees = refused, "mail server refuses attendees of an invitation");
        }
        let outcomes = row.to.iter().zip(&deliveries);
        let deferred = outcomes.filter(|(_, delivery)| **delivery == Delivery::Deferred);
        let deferred: Vec<String> = deferred.map(|(address, _)| address.clone()).collect();
        if deferred.is_empty() {
            return None;
        }
        let (attendees, remaining) = (deferred.len(), row.remaining(deferred, self.now_ms()));
        if remaining.is_none() {
            tracing::error!(attendees, "invitation given up");
        }
        remaining
    }

    async fn replace(&self, key: &str, row: Option<OutboxRow>) -> Result<(), StoreError> {
        let commit = match row {
            Some(row) => Commit::default().put(Table::Outbox, key, row.to_value()),
            None => Commit::default().delete(Table::Outbox, key),
        };
        if self.store.commit(commit).await.is_err() {
            tracing::warn!("outbox cannot be written; an invitation may be sent again");
        }
        Ok(())
    }

    fn now_ms(&self) -> u64 {
        (self.clock)().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
    }
}
