//! Finds the calendar: from its own address, or from the server's by way of the user's principal and home.

use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};
use url::Url;

use super::multistatus::{MultiStatus, Resource};
use super::server::Server;

const PROPERTIES: &str = r#"<?xml version="1.0" encoding="utf-8"?><D:propfind xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><D:prop><D:resourcetype/><D:displayname/><D:current-user-principal/><C:calendar-home-set/><D:supported-report-set/><D:sync-token/></D:prop></D:propfind>"#;
/// Where a server says that its calendars are (RFC 6764).
const WELL_KNOWN: &str = "/.well-known/caldav";
/// Calendars that an error names.
const MAX_NAMED: usize = 10;

/// A calendar collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Collection {
    /// Ends with a slash.
    pub(super) url: Url,
    pub(super) can_sync: bool,
}

/// Finds the collection at an address. `name` chooses among several by display name or last part of the path.
pub(super) async fn discover(
    server: &Server,
    address: &Url,
    name: Option<&str>,
) -> Result<Collection, CapabilityError> {
    let (address, here) = match server.propfind(address.clone(), "0", PROPERTIES).await {
        Err(error) if error.code == CapabilityErrorCode::NotFound => well_known(server, address).await?,
        found => found?,
    };
    let first = here.resources.first();
    if let Some(calendar) = first.filter(|resource| resource.properties.is_calendar && name.is_none()) {
        return Ok(Collection { url: with_slash(address), can_sync: calendar.properties.can_sync });
    }
    let home = match find_href(&here, |resource| resource.properties.calendar_home_set.as_deref()) {
        Some(home) => server.resolve(&address, home)?,
        None => home_of(server, &address, &here).await?,
    };
    choose(server, home, name).await
}

async fn well_known(server: &Server, address: &Url) -> Result<(Url, MultiStatus), CapabilityError> {
    let url = server.resolve(address, WELL_KNOWN)?;
    server.propfind(url, "0", PROPERTIES).await
}

/// The user's home, by way of their principal.
async fn home_of(server: &Server, address: &Url, here: &MultiStatus) -> Result<Url, CapabilityError> {
    let principal_of = |found: &MultiStatus| {
        find_href(found, |resource| resource.properties.current_user_principal.as_deref()).map(str::to_owned)
    };
    let (base, principal) = match principal_of(here) {
        Some(principal) => (address.clone(), Some(principal)),
        None => {
            let (base, found) = well_known(server, address).await?;
            (base, principal_of(&found))
        }
    };
    let principal = principal.ok_or_else(|| server.malformed("it does not say who the user is"))?;
    let principal = server.resolve(&base, &principal)?;
    let (principal, found) = server.propfind(principal, "0", PROPERTIES).await?;
    match find_href(&found, |resource| resource.properties.calendar_home_set.as_deref()) {
        Some(home) => server.resolve(&principal, home),
        None => Err(server.malformed("it does not say where the user's calendars are")),
    }
}

/// The calendar of a name in a home, or the only one.
async fn choose(server: &Server, home: Url, name: Option<&str>) -> Result<Collection, CapabilityError> {
    let (home, found) = server.propfind(with_slash(home), "1", PROPERTIES).await?;
    let calendars: Vec<_> =
        found.resources.iter().filter(|resource| resource.properties.is_calendar).collect();
    let fits = |calendar: &&&Resource| match name {
        Some(name) => {
            calendar.properties.display_name.as_deref() == Some(name) || last_part(&calendar.href) == name
        }
        None => calendars.len() == 1,
    };
    match calendars.iter().find(fits) {
        Some(calendar) => Ok(Collection {
            url: with_slash(server.resolve(&home, &calendar.href)?),
            can_sync: calendar.properties.can_sync,
        }),
        None => {
            let names: Vec<_> = calendars
                .iter()
                .take(MAX_NAMED)
                .map(|calendar| {
                    calendar.properties.display_name.as_deref().unwrap_or(last_part(&calendar.href))
                })
                .collect();
            let message = format!(
                "the server of the calendar {} has no calendar of the configured name; it has {names:?}",
                server.http.calendar()
            );
            Err(CapabilityError::new(CapabilityErrorCode::NotFound, message))
        }
    }
}

fn find_href<'a>(found: &'a MultiStatus, get: impl Fn(&'a Resource) -> Option<&'a str>) -> Option<&'a str> {
    found.resources.iter().find_map(get)
}

fn last_part(href: &str) -> &str {
    href.trim_end_matches('/').rsplit('/').next().unwrap_or(href)
}

/// What is in a collection is named relative to it.
fn with_slash(mut url: Url) -> Url {
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    url
}
