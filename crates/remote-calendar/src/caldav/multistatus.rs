//! `207 Multi-Status`: what a server says about several resources at once.

use super::xml::{Element, Namespace, XmlError, parse};

/// One resource.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Resource {
    pub(super) href: String,
    /// Set where the server has nothing but a status to say, as of a resource that is gone.
    pub(super) status: Option<u16>,
    pub(super) properties: Properties,
}

/// The properties that were asked for and found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Properties {
    pub(super) etag: Option<String>,
    pub(super) display_name: Option<String>,
    pub(super) calendar_data: Option<String>,
    pub(super) current_user_principal: Option<String>,
    pub(super) calendar_home_set: Option<String>,
    pub(super) sync_token: Option<String>,
    pub(super) is_calendar: bool,
    /// Whether `sync-collection` is among the reports that it answers.
    pub(super) can_sync: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MultiStatus {
    pub(super) resources: Vec<Resource>,
    pub(super) sync_token: Option<String>,
}

/// Reads a multi-status document.
pub(super) fn read(body: &[u8]) -> Result<MultiStatus, XmlError> {
    let root = parse(std::str::from_utf8(body).map_err(|_| XmlError)?)?;
    if !root.is(Namespace::Dav, "multistatus") {
        return Err(XmlError);
    }
    Ok(MultiStatus {
        resources: root.children(Namespace::Dav, "response").filter_map(resource).collect(),
        sync_token: root.text_of(Namespace::Dav, "sync-token").map(str::to_owned),
    })
}

/// Whether an error says that a sync token is not known any more.
pub(super) fn is_invalid_sync_token(body: &[u8]) -> bool {
    let root = std::str::from_utf8(body).ok().and_then(|text| parse(text).ok());
    root.is_some_and(|root| root.contains(Namespace::Dav, "valid-sync-token"))
}

fn resource(response: &Element) -> Option<Resource> {
    let href = response.text_of(Namespace::Dav, "href").filter(|href| !href.is_empty())?.to_owned();
    let status = response.text_of(Namespace::Dav, "status").and_then(status_code);
    let mut properties = Properties::default();
    for propstat in response.children(Namespace::Dav, "propstat") {
        let code = propstat.text_of(Namespace::Dav, "status").and_then(status_code);
        if let Some(prop) = propstat.child(Namespace::Dav, "prop").filter(|_| code == Some(200)) {
            properties.read(prop);
        }
    }
    Some(Resource { href, status, properties })
}

impl Properties {
    fn read(&mut self, prop: &Element) {
        let text = |namespace, name| prop.text_of(namespace, name).map(str::to_owned);
        let href = |namespace, name| {
            let href = prop.child(namespace, name)?.text_of(Namespace::Dav, "href")?;
            (!href.is_empty()).then(|| href.to_owned())
        };
        self.etag = text(Namespace::Dav, "getetag").or(self.etag.take());
        self.display_name = text(Namespace::Dav, "displayname").or(self.display_name.take());
        self.calendar_data = text(Namespace::CalDav, "calendar-data").or(self.calendar_data.take());
        self.sync_token = text(Namespace::Dav, "sync-token").or(self.sync_token.take());
        self.current_user_principal =
            href(Namespace::Dav, "current-user-principal").or(self.current_user_principal.take());
        self.calendar_home_set =
            href(Namespace::CalDav, "calendar-home-set").or(self.calendar_home_set.take());
        self.is_calendar |= prop
            .child(Namespace::Dav, "resourcetype")
            .is_some_and(|kind| kind.child(Namespace::CalDav, "calendar").is_some());
        self.can_sync |= prop
            .child(Namespace::Dav, "supported-report-set")
            .is_some_and(|reports| reports.contains(Namespace::Dav, "sync-collection"));
    }
}

/// `HTTP/1.1 200 OK`.
fn status_code(line: &str) -> Option<u16> {
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_that_were_not_found_are_absent() {
        let body = br#"<?xml version='1.0' encoding='utf-8'?>
            <multistatus xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav">
              <response><href>/ann/work/</href>
                <propstat><prop><resourcetype><C:calendar/><collection/></resourcetype><displayname>Work</displayname></prop>
                  <status>HTTP/1.1 200 OK</status></propstat>
                <propstat><prop><getetag>"no"</getetag></prop><status>HTTP/1.1 404 Not Found</status></propstat>
              </response>
              <response><href>/ann/work/gone.ics</href><status>HTTP/1.1 404 Not Found</status></response>
              <sync-token>http://example.com/1</sync-token>
            </multistatus>"#;
        let read = read(body).unwrap();
        assert_eq!(read.sync_token.as_deref(), Some("http://example.com/1"));
        let [work, gone] = &read.resources[..] else { panic!("{read:?}") };
        assert!(work.properties.is_calendar && !work.properties.can_sync);
        assert_eq!(work.properties.display_name.as_deref(), Some("Work"));
        assert_eq!(work.properties.etag, None);
        assert_eq!((gone.status, gone.href.as_str()), (Some(404), "/ann/work/gone.ics"));
    }

    #[test]
    fn what_is_no_multi_status_is_refused() {
        for body in [&b"<html/>"[..], b"", b"\xff", b"<multistatus/>"] {
            assert_eq!(read(body), Err(XmlError), "{body:?}");
        }
    }

    #[test]
    fn an_expired_sync_token_is_recognised() {
        let body = br#"<D:error xmlns:D="DAV:"><D:valid-sync-token/></D:error>"#;
        assert!(is_invalid_sync_token(body));
        assert!(!is_invalid_sync_token(b"<D:error xmlns:D='DAV:'/>"));
    }
}
