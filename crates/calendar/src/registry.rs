//! The calendars of a site by name, each kept by the backend that the configuration has chosen for it.

use std::sync::Arc;

use futures_util::future::join_all;
use quarterdeck_contracts::handler::{BoxFuture, CapabilityError, CapabilityErrorCode};
use quarterdeck_contracts::{
    BookingOrigin, Calendar, CalendarInfo, Cancellation, ChangedEvent, ConferenceProvider, ConferenceRequest,
    Event, EventQuery, EventRef, Invitations, NewEvent, Notice, NoticeKind, Notifier, Overlay, Reschedule,
    sha256,
};

use crate::config::{CalendarConfig, ConfigError, Owner};
use crate::ics::invitation;
use crate::local::LocalCalendar;
use crate::template::ConferenceTemplate;

/// Every configured calendar. It passes requests on by name, makes links to video calls, and tells attendees.
#[derive(Clone)]
pub struct Calendars(Arc<Registry>);

struct Registry {
    owner: Owner,
    calendars: Vec<(String, Arc<dyn Calendar>)>,
    notifier: Option<Arc<dyn Notifier>>,
    conferences: Option<Arc<dyn ConferenceProvider>>,
}

/// Puts [`Calendars`] together.
pub struct CalendarsBuilder(Registry);

impl CalendarsBuilder {
    pub fn new(owner: Owner) -> Self {
        Self(Registry { owner, calendars: Vec::new(), notifier: None, conferences: None })
    }

    /// Adds a calendar, in the place of one of the same name. The backend is asked about it by this very name.
    pub fn calendar(mut self, name: &str, backend: Arc<dyn Calendar>) -> Self {
        match self.0.calendars.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = backend,
            None => self.0.calendars.push((name.to_owned(), backend)),
        }
        self
    }

    pub fn notifier(mut self, notifier: Arc<dyn Notifier>) -> Self {
        self.0.notifier = Some(notifier);
        self
    }

    pub fn conferences(mut self, conferences: Arc<dyn ConferenceProvider>) -> Self {
        self.0.conferences = Some(conferences);
        self
    }

    pub fn build(self) -> Calendars {
        Calendars(Arc::new(self.0))
    }
}

impl Calendars {
    /// All of them in our own store, with links from the template if there is one.
    pub fn local(config: CalendarConfig) -> Result<Self, ConfigError> {
        Ok(Self::builder(config)?.build())
    }

    /// The same, open for other backends.
    pub fn builder(config: CalendarConfig) -> Result<CalendarsBuilder, ConfigError> {
        let names = config.calendars.clone();
        let mut builder = CalendarsBuilder::new(config.owner.clone());
        if let Some(url) = &config.conference_url {
            builder = builder.conferences(Arc::new(ConferenceTemplate::new(url)));
        }
        let local: Arc<dyn Calendar> = Arc::new(LocalCalendar::from_config(config)?);
        Ok(names.iter().fold(builder, |builder, name| builder.calendar(name, local.clone())))
    }
}

impl Calendar for Calendars {
    fn is_in_store(&self, calendar: &str) -> bool {
        self.0.backend(calendar).is_ok_and(|backend| backend.is_in_store(calendar))
            && !self.0.conferences.as_ref().is_some_and(|conferences| conferences.is_outside())
    }

    fn list(&self) -> Vec<CalendarInfo> {
        self.0.list()
    }

    fn events(
        &self,
        query: EventQuery,
        overlay: Arc<Overlay>,
    ) -> BoxFuture<Result<Vec<Event>, CapabilityError>> {
        let registry = self.0.clone();
        Box::pin(async move { registry.events(query, overlay).await })
    }

    fn find(&self, event: EventRef, overlay: Arc<Overlay>) -> BoxFuture<Result<Event, CapabilityError>> {
        let registry = self.0.clone();
        Box::pin(async move { registry.find(event, overlay).await })
    }

    fn create(
        &self,
        event: NewEvent,
        origin: BookingOrigin,
        overlay: Arc<Overlay>,
    ) -> BoxFuture<Result<ChangedEvent, CapabilityError>> {
        let registry = self.0.clone();
        Box::pin(async move { registry.create(event, origin, overlay).await })
    }

    fn reschedule(
        &self,
        change: Reschedule,
        origin: BookingOrigin,
        overlay: Arc<Overlay>,
    ) -> BoxFuture<Result<ChangedEvent, CapabilityError>> {
        let registry = self.0.clone();
        Box::pin(async move { registry.reschedule(change, origin, overlay).await })
    }

    fn cancel(
        &self,
        cancellation: Cancellation,
        origin: BookingOrigin,
        overlay: Arc<Overlay>,
    ) -> BoxFuture<Result<ChangedEvent, CapabilityError>> {
        let registry = self.0.clone();
        Box::pin(async move { registry.cancel(cancellation, origin, overlay).await })
    }
}

impl Registry {
    fn list(&self) -> Vec<CalendarInfo> {
        let own = |(name, backend): &(String, Arc<dyn Calendar>)| {
            backend.list().into_iter().find(|info| info.name == *name).map(|info| CalendarInfo {
                has_conferences: info.has_conferences || self.conferences.is_some(),
                notifies_by: info.notifies_by.or_else(|| Some(self.notifier.as_ref()?.how().to_owned())),
                ..info
            })
        };
        self.calendars.iter().filter_map(own).collect()
    }

    fn backend(&self, name: &str) -> Result<&Arc<dyn Calendar>, CapabilityError> {
        let found = self.calendars.iter().find(|(known, _)| known == name);
        found.map(|(_, backend)| backend).ok_or_else(|| {
            let known: Vec<_> = self.calendars.iter().map(|(name, _)| name.as_str()).collect();
            let message = format!("there is no calendar {name:?}; there are {}", known.join(", "));
            CapabilityError::new(CapabilityErrorCode::NotFound, message)
        })
    }

    /// A calendar that cannot be read fails the whole query: time that is not known must not look free.
    async fn events(&self, query: EventQuery, overlay: Arc<Overlay>) -> Result<Vec<Event>, CapabilityError> {
        let mut names = query.calendars.clone();
        if names.is_empty() {
            names = self.calendars.iter().map(|(name, _)| name.clone()).collect();
        }
        // Calendars of one backend are asked for together, so that a shared one reads its rows once.
        let mut groups: Vec<(&Arc<dyn Calendar>, Vec<String>)> = Vec::new();
        for name in names {
            let backend = self.backend(&name)?;
            match groups.iter_mut().find(|(known, _)| Arc::ptr_eq(known, backend)) {
                Some((_, of_backend)) => of_backend.push(name),
                None => groups.push((backend, vec![name])),
            }
        }
        let asked = groups.into_iter().map(|(backend, calendars)| {
            backend.events(EventQuery { calendars, ..query.clone() }, overlay.clone())
        });
        let mut events = Vec::new();
        for answer in join_all(asked).await {
            events.extend(answer?);
        }
        let order = |event: &Event| (event.start.parse::<jiff::Timestamp>().ok(), event.end.clone());
        events.sort_by_cached_key(order);
        Ok(events)
    }

    /// Calendars are asked one after another; one that fails matters only if no other has the event.
    async fn find(&self, event: EventRef, overlay: Arc<Overlay>) -> Result<Event, CapabilityError> {
        if let Some(calendar) = &event.calendar {
            let backend = self.backend(calendar)?;
            return backend.find(event, overlay).await;
        }
        let mut failure = CapabilityError::new(CapabilityErrorCode::NotFound, "there is no such event");
        for (name, backend) in &self.calendars {
            let here = EventRef { id: event.id.clone(), calendar: Some(name.clone()) };
            match backend.find(here, overlay.clone()).await {
                Ok(found) => return Ok(found),
                Err(error) if error.code == CapabilityErrorCode::NotFound => {}
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    async fn create(
        &self,
        mut event: NewEvent,
        origin: BookingOrigin,
        overlay: Arc<Overlay>,
    ) -> Result<ChangedEvent, CapabilityError> {
        let backend = self.backend(&event.calendar)?;
        let makes_its_own =
            backend.list().iter().any(|info| info.name == event.calendar && info.has_conferences);
        let provider = self.conferences.as_ref().filter(|_| event.conference && !makes_its_own);
        if let Some(provider) = provider {
            let request = conference_request(&origin, &event.summary, &event.start, &event.end);
            event.conference_url = Some(provider.create(request).await?);
        }
        let url = event.conference_url.clone();
        match backend.create(event, origin.clone(), overlay.clone()).await {
            Ok(changed) => Ok(self.tell(NoticeKind::Invitation, changed, &origin, overlay).await),
            Err(error) => {
                // Where the outcome is unknown the appointment may exist, and its link must work.
                if let (Some(provider), Some(url)) = (provider, url)
                    && error.code != CapabilityErrorCode::OutcomeUnknown
                {
                    let _ = provider.cancel(url).await;
                }
                Err(error)
            }
        }
    }

    async fn reschedule(
        &self,
        change: Reschedule,
        origin: BookingOrigin,
        overlay: Arc<Overlay>,
    ) -> Result<ChangedEvent, CapabilityError> {
        let backend = self.backend(change.calendar.as_deref().unwrap_or_default())?;
        let changed = backend.reschedule(change, origin.clone(), overlay.clone()).await?;
        let event = &changed.event;
        if let (Some(provider), Some(url)) = (&self.conferences, &event.conference) {
            let request = conference_request(&origin, &event.summary, &event.start, &event.end);
            // The link keeps working at another time, so this is no reason to fail.
            let _ = provider.reschedule(url.clone(), request).await;
        }
        Ok(self.tell(NoticeKind::Update, changed, &origin, overlay).await)
    }

    async fn cancel(
        &self,
        cancellation: Cancellation,
        origin: BookingOrigin,
        overlay: Arc<Overlay>,
    ) -> Result<ChangedEvent, CapabilityError> {
        let backend = self.backend(cancellation.calendar.as_deref().unwrap_or_default())?;
        let notify = cancellation.notify;
        let changed = backend.cancel(cancellation, origin.clone(), overlay.clone()).await?;
        if let (Some(provider), Some(url)) = (&self.conferences, &changed.event.conference) {
            let _ = provider.cancel(url.clone()).await;
        }
        if !notify {
            return Ok(changed);
        }
        Ok(self.tell(NoticeKind::Cancellation, changed, &origin, overlay).await)
    }

    /// Tells the attendees, unless the backend has. Where there is no way, the answer offers the file.
    async fn tell(
        &self,
        kind: NoticeKind,
        changed: ChangedEvent,
        origin: &BookingOrigin,
        overlay: Arc<Overlay>,
    ) -> ChangedEvent {
        let ChangedEvent { event, invitations } = changed;
        if !invitations.notified.is_empty() || event.attendees.is_empty() {
            return ChangedEvent { event, invitations };
        }
        let ics = invitation(&event, kind, &self.owner, origin.now);
        let Some(notifier) = &self.notifier else {
            return ChangedEvent { event, invitations: Invitations { ics: Some(ics), ..invitations } };
        };
        let notice = Notice { kind, event: event.clone(), ics, call_key: origin.call_key.clone() };
        let notified = notifier.notify(notice, overlay).await;
        ChangedEvent { event, invitations: Invitations { notified, ics: None } }
    }
}

fn conference_request(origin: &BookingOrigin, title: &str, start: &str, end: &str) -> ConferenceRequest {
    let key = sha256(format!("{}\n{start}\n{title}", origin.call_key).as_bytes())[..32].into();
    ConferenceRequest { key, title: title.to_owned(), start: start.to_owned(), end: end.to_owned() }
}
