//! A calendar on a server, and a client who uses it through the methods that handlers have.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use quarterdeck_calendar::{Calendars, CalendarsBuilder, Owner};
use quarterdeck_contracts::handler::{CapabilityClient, CapabilityError, CapabilityScope};
use quarterdeck_contracts::{CalendarViewer, Overlay, answer_calendar};
use quarterdeck_remote_calendar::{CalDavCalendar, CalDavConfig, Credential};
use quarterdeck_store::MemoryStore;
use serde_json::{Value, json};

use crate::radicale::{PASSWORD, USER};

pub(crate) fn config(url: String) -> CalDavConfig {
    CalDavConfig {
        name: "primary".into(),
        url,
        calendar: None,
        user: USER.into(),
        password: Some(Credential::new(PASSWORD)),
        time_zone: "Europe/Berlin".into(),
        // Generous: the machine may be busy, and no test waits for it.
        timeout: Duration::from_secs(60),
        mirror: true,
    }
}

pub(crate) fn calendars(config: CalDavConfig) -> Calendars {
    let backend = Arc::new(CalDavCalendar::new(config).unwrap());
    CalendarsBuilder::new(Owner::default()).calendar("primary", backend).build()
}

/// One call of a client.
pub(crate) struct Caller {
    calendars: Calendars,
    client: Arc<str>,
    key: Arc<str>,
    overlay: Arc<Overlay>,
    pub(crate) reached_outside: AtomicBool,
}

impl Caller {
    pub(crate) fn new(calendars: &Calendars, client: &str, key: &str) -> Self {
        Self {
            calendars: calendars.clone(),
            client: client.into(),
            key: key.into(),
            overlay: Arc::new(Overlay::new(Arc::new(MemoryStore::new()))),
            reached_outside: AtomicBool::new(false),
        }
    }

    pub(crate) async fn ask(&self, method: &str, argument: Value) -> Result<Value, CapabilityError> {
        let viewer = CalendarViewer {
            client_id: self.client.clone(),
            sees_details: false,
            may_manage: false,
            may_use_personal: false,
        };
        answer_calendar(&self.calendars, &viewer, self, method, &[argument]).await
    }

    pub(crate) async fn events(&self, from: &str, to: &str) -> Result<Vec<Value>, CapabilityError> {
        let events = self.ask("getEvents", json!({ "timeMin": from, "timeMax": to })).await?;
        Ok(events.as_array().unwrap().clone())
    }

    /// Half an hour at a full hour of 13 January 2026.
    pub(crate) async fn book(&self, hour: u32) -> Result<Value, CapabilityError> {
        let event = json!({
            "summary": "Review", "start": format!("2026-01-13T{hour}:00:00Z"), "end": format!("2026-01-13T{hour}:30:00Z"),
            "attendees": ["ada@example.com"], "description": "Agenda, and more", "onlyIfFree": true,
        });
        self.ask("createEvent", event).await
    }
}

/// When the events of a list begin.
pub(crate) fn starts(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["start"].as_str().unwrap()).collect()
}

impl CapabilityScope for Caller {
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
        self.key.clone()
    }

    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_768_294_800)
    }

    fn overlay(&self) -> Arc<Overlay> {
        self.overlay.clone()
    }

    fn may_write(&self) -> bool {
        true
    }

    fn mark_outside_effect(&self) {
        self.reached_outside.store(true, Ordering::Relaxed);
    }
}
