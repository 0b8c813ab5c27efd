//! A store in memory, and calendars in it.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use quarterdeck_calendar::{CalendarConfig, LocalCalendar, import};
use quarterdeck_contracts::handler::{BoxFuture, CapabilityClient, CapabilityScope};
use quarterdeck_contracts::{
    BookingOrigin, Calendar, CalendarViewer, Commit, CommitError, Event, EventQuery, Overlay, Row, Scan,
    Store, StoreError, Table,
};

type Rows = BTreeMap<(Table, String), Row>;

/// Rows, and the version of the last commit.
#[derive(Default)]
pub(crate) struct Memory(Mutex<(u64, Rows)>);

impl Store for Memory {
    fn get(&self, table: Table, key: &str) -> BoxFuture<Result<Option<Row>, StoreError>> {
        let row = self.0.lock().unwrap().1.get(&(table, key.to_owned())).cloned();
        Box::pin(async move { Ok(row) })
    }

    fn scan(&self, table: Table, scan: Scan) -> BoxFuture<Result<Vec<(String, Row)>, StoreError>> {
        let rows = &self.0.lock().unwrap().1;
        let fits = |key: &&(Table, String)| key.0 == table && key.1.starts_with(&scan.prefix);
        let found = rows.keys().filter(fits).take(scan.limit).map(|key| (key.1.clone(), rows[key].clone()));
        let found: Vec<_> = found.collect();
        Box::pin(async move { Ok(found) })
    }

    fn commit(&self, commit: Commit) -> BoxFuture<Result<u64, CommitError>> {
        let (version, rows) = &mut *self.0.lock().unwrap();
        let changed = commit.checks.into_iter().find(|check| {
            rows.get(&(check.table, check.key.clone())).map(|row| row.version) != check.version
        });
        if let Some(check) = changed {
            return Box::pin(
                async move { Err(CommitError::Conflict { table: check.table, key: check.key }) },
            );
        }
        *version += 1;
        for write in commit.writes {
            let key = (write.table, write.key);
            match write.value {
                Some(value) => drop(rows.insert(key, Row { value, version: *version })),
                None => drop(rows.remove(&key)),
            }
        }
        let version = *version;
        Box::pin(async move { Ok(version) })
    }

    fn queue(&self, _: Commit) -> Result<(), StoreError> {
        Err(StoreError::Closed)
    }

    fn flush(&self) -> BoxFuture<Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }

    fn sweep(&self, _: u64) -> BoxFuture<Result<u64, StoreError>> {
        Box::pin(async { Ok(0) })
    }
}

/// The result of what waits for nothing.
pub(crate) fn ready<T>(running: impl Future<Output = T>) -> T {
    match pin!(running).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("a store in memory has nothing to wait for"),
    }
}

pub(crate) fn calendar_in(time_zone: &str) -> LocalCalendar {
    let config = CalendarConfig { time_zone: time_zone.into(), ..CalendarConfig::default() };
    LocalCalendar::from_config(config).unwrap()
}

pub(crate) fn query(from: &str, to: &str) -> EventQuery {
    EventQuery { time_min: from.into(), time_max: to.into(), calendars: vec!["primary".into()] }
}

/// An overlay on a store that holds the events of a file's body.
pub(crate) fn holding(body: &str) -> Arc<Overlay> {
    let overlay = Arc::new(Overlay::new(Arc::new(Memory::default())));
    let file = format!("BEGIN:VCALENDAR\n{body}\nEND:VCALENDAR\n");
    let import = import(&file, "primary").unwrap();
    assert_eq!(import.skipped, Vec::<String>::new());
    ready(import.write_to(&overlay)).unwrap();
    overlay
}

/// What stands in a window, a line for each: start, end, title.
pub(crate) fn listing(body: &str, time_zone: &str, from: &str, to: &str) -> String {
    let events = ready(calendar_in(time_zone).events(query(from, to), holding(body))).unwrap();
    lines(&events)
}

pub(crate) fn lines(events: &[Event]) -> String {
    events.iter().map(|event| format!("{} {} {}\n", event.start, event.end, event.summary)).collect()
}

/// 13 January 2026, nine o'clock.
pub(crate) fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_768_294_800)
}

pub(crate) fn origin(client: &str) -> BookingOrigin {
    BookingOrigin { client_id: client.into(), call_key: "session/call".into(), now: now() }
}

pub(crate) fn viewer(client: &str) -> CalendarViewer {
    CalendarViewer {
        client_id: client.into(),
        sees_details: false,
        may_manage: false,
        may_use_personal: false,
    }
}

/// The call of a client that may write.
pub(crate) struct Scope {
    overlay: Arc<Overlay>,
    client: Arc<str>,
}

impl Scope {
    pub(crate) fn new(overlay: &Arc<Overlay>, client: &str) -> Self {
        Self { overlay: overlay.clone(), client: client.into() }
    }
}

impl CapabilityScope for Scope {
    fn client(&self) -> CapabilityClient {
        CapabilityClient { id: self.client.clone(), is_authenticated: false, claims: BTreeMap::new() }
    }

    fn session_id(&self) -> Arc<str> {
        "session".into()
    }

    fn tool_id(&self) -> Arc<str> {
        "tool".into()
    }

    fn call_key(&self) -> Arc<str> {
        "session/call".into()
    }

    fn now(&self) -> SystemTime {
        now()
    }

    fn overlay(&self) -> Arc<Overlay> {
        self.overlay.clone()
    }

    fn may_write(&self) -> bool {
        true
    }

    fn mark_outside_effect(&self) {}
}
