//! What a collection holds, kept up to date by its sync token: a question costs one request while nothing changes.
//!
//! A server that cannot do that is asked for the objects of each window instead.

use std::collections::BTreeMap;

use jiff::Timestamp;
use quarterdeck_calendar::{EventRow, read_rows};
use quarterdeck_contracts::handler::CapabilityError;
use url::Url;

use super::discovery::Collection;
use super::multistatus::{MultiStatus, Resource};
use super::server::{Server, escape};

const MAX_OBJECTS: usize = 20_000;
const MAX_BYTES: usize = 32 << 20;
/// Objects that are fetched with one request.
const OBJECTS_PER_REQUEST: usize = 100;
/// How often a server may say that there is more.
const MAX_PAGES: usize = 200;

/// An object of the collection, read.
#[derive(Debug, Clone)]
pub(super) struct KnownObject {
    pub(super) etag: String,
    pub(super) rows: Vec<EventRow>,
    bytes: usize,
}

/// The objects by their path on the server.
#[derive(Default)]
pub(super) struct Mirror {
    token: String,
    objects: BTreeMap<String, KnownObject>,
    bytes: usize,
}

impl Mirror {
    pub(super) fn objects(&self) -> impl Iterator<Item = (&String, &KnownObject)> {
        self.objects.iter()
    }

    /// Brings it up to date.
    pub(super) async fn refresh(
        &mut self,
        server: &Server,
        collection: &Collection,
        calendar: &str,
    ) -> Result<(), CapabilityError> {
        for _ in 0..MAX_PAGES {
            let Some(changes) = server.sync(&collection.url, &self.token).await? else {
                // The token is too old: everything is fetched again.
                *self = Self::default();
                continue;
            };
            let is_partial = changes.resources.iter().any(|resource| resource.status == Some(507));
            let token = changes.sync_token.clone();
            self.apply(server, collection, calendar, changes).await?;
            self.token = token.ok_or_else(|| server.malformed("it sent no sync token"))?;
            if !is_partial {
                return Ok(());
            }
        }
        Err(server.malformed("its changes never end"))
    }

    async fn apply(
        &mut self,
        server: &Server,
        collection: &Collection,
        calendar: &str,
        changes: MultiStatus,
    ) -> Result<(), CapabilityError> {
        let mut wanted = Vec::new();
        for resource in changes.resources {
            let path = path_of(server, &collection.url, &resource.href)?;
            if path == collection.url.path() {
                continue;
            }
            let known = self.objects.get(&path).map(|object| object.etag.as_str());
            match resource {
                Resource { status: Some(404 | 410), .. } => self.remove(&path),
                Resource { properties, .. }
                    if properties.etag.is_some() && properties.etag.as_deref() == known => {}
                _ => wanted.push(path),
            }
        }
        for paths in wanted.chunks(OBJECTS_PER_REQUEST) {
            let found = server.report(&collection.url, "1", &multiget(paths)).await?;
            for path in paths {
                self.remove(path);
            }
            for (path, object) in read_objects(server, collection, calendar, found)? {
                self.bytes += object.bytes;
                self.objects.insert(path, object);
            }
            if self.objects.len() > MAX_OBJECTS || self.bytes > MAX_BYTES {
                return Err(server.malformed(
                    "the calendar holds too much for a copy in memory; switch `mirror` off for it",
                ));
            }
        }
        Ok(())
    }

    fn remove(&mut self, path: &str) {
        if let Some(object) = self.objects.remove(path) {
            self.bytes -= object.bytes;
        }
    }
}

/// The objects that touch a window, from a server that keeps no sync tokens.
pub(super) async fn objects_within(
    server: &Server,
    collection: &Collection,
    calendar: &str,
    (start, end): (Timestamp, Timestamp),
) -> Result<Vec<(String, KnownObject)>, CapabilityError> {
    let filter = format!(
        r#"<C:time-range start="{}" end="{}"/>"#,
        start.strftime("%Y%m%dT%H%M%SZ"),
        end.strftime("%Y%m%dT%H%M%SZ")
    );
    query(server, collection, calendar, &filter).await
}

/// The object of a uid, likewise.
pub(super) async fn objects_of_uid(
    server: &Server,
    collection: &Collection,
    calendar: &str,
    uid: &str,
) -> Result<Vec<(String, KnownObject)>, CapabilityError> {
    let filter = format!(
        r#"<C:prop-filter name="UID"><C:text-match collation="i;octet">{}</C:text-match></C:prop-filter>"#,
        escape(uid)
    );
    query(server, collection, calendar, &filter).await
}

async fn query(
    server: &Server,
    collection: &Collection,
    calendar: &str,
    filter: &str,
) -> Result<Vec<(String, KnownObject)>, CapabilityError> {
    let body = format!(
        r#"<?xml version="1.0" encoding="utf-8"?><C:calendar-query xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><D:prop><D:getetag/><C:calendar-data/></D:prop><C:filter><C:comp-filter name="VCALENDAR"><C:comp-filter name="VEVENT">{filter}</C:comp-filter></C:comp-filter></C:filter></C:calendar-query>"#
    );
    let found = server.report(&collection.url, "1", &body).await?;
    read_objects(server, collection, calendar, found)
}

fn multiget(paths: &[String]) -> String {
    let hrefs: String = paths.iter().map(|path| format!("<D:href>{}</D:href>", escape(path))).collect();
    format!(
        r#"<?xml version="1.0" encoding="utf-8"?><C:calendar-multiget xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><D:prop><D:getetag/><C:calendar-data/></D:prop>{hrefs}</C:calendar-multiget>"#
    )
}

fn read_objects(
    server: &Server,
    collection: &Collection,
    calendar: &str,
    found: MultiStatus,
) -> Result<Vec<(String, KnownObject)>, CapabilityError> {
    let mut objects = Vec::new();
    for resource in found.resources {
        let path = path_of(server, &collection.url, &resource.href)?;
        if let Some(text) = resource.properties.calendar_data {
            let etag = resource.properties.etag.unwrap_or_default();
            let rows = rows_of(&text, calendar);
            objects.push((path, KnownObject { etag, rows, bytes: text.len() }));
        }
    }
    Ok(objects)
}

/// The events of an object. What cannot be read is left out, and the log says so.
pub(super) fn rows_of(text: &str, calendar: &str) -> Vec<EventRow> {
    match read_rows(text, calendar) {
        Ok((rows, skipped)) => {
            if !skipped.is_empty() {
                tracing::warn!(
                    calendar,
                    events = skipped.len(),
                    "events of a calendar server were not understood"
                );
            }
            rows
        }
        Err(error) => {
            tracing::warn!(calendar, error = %error, "object of a calendar server is not iCalendar");
            Vec::new()
        }
    }
}

fn path_of(server: &Server, base: &Url, href: &str) -> Result<String, CapabilityError> {
    Ok(server.resolve(base, href)?.path().to_owned())
}
