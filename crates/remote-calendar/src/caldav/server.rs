//! The requests that a CalDAV server is sent (RFC 4918, RFC 4791, RFC 6578).

use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};
use reqwest::header::{CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH, LOCATION};
use reqwest::{Method, StatusCode};
use url::Url;

use super::multistatus::{self, MultiStatus};
use crate::credential::Credential;
use crate::http::{Effect, HttpAnswer, HttpClient};

const MAX_REDIRECTS: usize = 3;

/// A server, and who we are to it.
pub(super) struct Server {
    pub(super) http: HttpClient,
    pub(super) user: String,
    pub(super) password: Option<Credential>,
}

/// An iCalendar object as it is on the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) etag: String,
    pub(super) text: String,
}

/// What a conditional change came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Written {
    /// Done; with the new entity tag, if the server says it.
    Done(Option<String>),
    /// The object is not as the condition has it.
    Changed,
}

/// Which object a change expects to find.
#[derive(Debug, Clone, Copy)]
pub(super) enum Expects<'a> {
    Nothing,
    Etag(&'a str),
}

impl Server {
    /// Properties of a resource and, with depth 1, of what is in it. A redirect is followed on the same server.
    pub(super) async fn propfind(
        &self,
        mut url: Url,
        depth: &str,
        body: &str,
    ) -> Result<(Url, MultiStatus), CapabilityError> {
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.ask("PROPFIND", &url, depth, body).await?;
            if !answer.status.is_redirection() {
                return Ok((url.clone(), self.multi_status(&answer)?));
            }
            url = self.resolve(&url, answer.header(LOCATION.as_str()).unwrap_or_default())?;
        }
        Err(self.malformed("it redirects in a circle"))
    }

    pub(super) async fn report(
        &self,
        url: &Url,
        depth: &str,
        body: &str,
    ) -> Result<MultiStatus, CapabilityError> {
        let answer = self.ask("REPORT", url, depth, body).await?;
        self.multi_status(&answer)
    }

    /// The same, where an unknown sync token is `None`.
    pub(super) async fn sync(&self, url: &Url, token: &str) -> Result<Option<MultiStatus>, CapabilityError> {
        let body = format!(
            r#"<?xml version="1.0" encoding="utf-8"?><D:sync-collection xmlns:D="DAV:"><D:sync-token>{}</D:sync-token><D:sync-level>1</D:sync-level><D:prop><D:getetag/></D:prop></D:sync-collection>"#,
            escape(token)
        );
        let answer = self.ask("REPORT", url, "0", &body).await?;
        let may_be_token = matches!(answer.status.as_u16(), 400 | 403 | 409 | 410 | 412);
        if may_be_token && !token.is_empty() && multistatus::is_invalid_sync_token(&answer.body) {
            return Ok(None);
        }
        self.multi_status(&answer).map(Some)
    }

    pub(super) async fn get(&self, url: &Url) -> Result<Option<Object>, CapabilityError> {
        let request = self.authorised(Method::GET, url)?;
        let answer = self.http.send(self.built(request)?, Effect::Reads).await?;
        match answer.status {
            StatusCode::OK => {
                let etag = answer.header("etag").unwrap_or_default().to_owned();
                let text =
                    String::from_utf8(answer.body).map_err(|_| self.malformed("it sent no UTF-8 text"))?;
                Ok(Some(Object { etag, text }))
            }
            StatusCode::NOT_FOUND | StatusCode::GONE => Ok(None),
            _ => Err(self.http.refused(&answer, Effect::Reads)),
        }
    }

    /// Writes an object, if the server still has what is expected.
    pub(super) async fn put(
        &self,
        url: &Url,
        text: String,
        expects: Expects<'_>,
    ) -> Result<Written, CapabilityError> {
        let request = self
            .authorised(Method::PUT, url)?
            .header(CONTENT_TYPE, "text/calendar; charset=utf-8")
            .body(text);
        self.change(request, expects).await
    }

    pub(super) async fn delete(&self, url: &Url, etag: &str) -> Result<Written, CapabilityError> {
        self.change(self.authorised(Method::DELETE, url)?, Expects::Etag(etag)).await
    }

    async fn change(
        &self,
        request: reqwest::RequestBuilder,
        expects: Expects<'_>,
    ) -> Result<Written, CapabilityError> {
        let request = match expects {
            Expects::Nothing => request.header(IF_NONE_MATCH, "*"),
            Expects::Etag(etag) => request.header(IF_MATCH, etag),
        };
        let answer = self.http.send(self.built(request)?, Effect::Writes).await?;
        match answer.status {
            status if status.is_success() => Ok(Written::Done(answer.header("etag").map(str::to_owned))),
            StatusCode::PRECONDITION_FAILED => Ok(Written::Changed),
            _ => Err(self.http.refused(&answer, Effect::Writes)),
        }
    }

    async fn ask(
        &self,
        method: &str,
        url: &Url,
        depth: &str,
        body: &str,
    ) -> Result<HttpAnswer, CapabilityError> {
        let method =
            Method::from_bytes(method.as_bytes()).map_err(|_| self.malformed("the method is not allowed"))?;
        let request = self
            .authorised(method, url)?
            .header("Depth", depth)
            .header(CONTENT_TYPE, "application/xml; charset=utf-8")
            .body(body.to_owned());
        self.http.send(self.built(request)?, Effect::Reads).await
    }

    fn authorised(&self, method: Method, url: &Url) -> Result<reqwest::RequestBuilder, CapabilityError> {
        let request = self.http.request(method, url.clone());
        Ok(match (&self.password, self.user.is_empty()) {
            (None, true) => request,
            (password, _) => request.basic_auth(&self.user, password.as_ref().map(Credential::expose)),
        })
    }

    fn built(&self, request: reqwest::RequestBuilder) -> Result<reqwest::Request, CapabilityError> {
        request.build().map_err(|_| self.malformed("a request to it cannot be written"))
    }

    fn multi_status(&self, answer: &HttpAnswer) -> Result<MultiStatus, CapabilityError> {
        if answer.status != StatusCode::MULTI_STATUS {
            return Err(self.http.refused(answer, Effect::Reads));
        }
        multistatus::read(&answer.body).map_err(|error| self.malformed(&error.to_string()))
    }

    /// An address that the server names. Credentials go to no other server than the configured one.
    pub(super) fn resolve(&self, base: &Url, href: &str) -> Result<Url, CapabilityError> {
        let url = base.join(href).map_err(|_| self.malformed("it names an address that is none"))?;
        if url.origin() != base.origin() {
            return Err(
                self.malformed("it names an address on another server; configure that server instead")
            );
        }
        Ok(url)
    }

    pub(super) fn malformed(&self, what: &str) -> CapabilityError {
        let message =
            format!("the server of the calendar {} cannot be understood: {what}", self.http.calendar());
        CapabilityError::new(CapabilityErrorCode::NotAvailable, message)
    }
}

/// Text as XML has it.
pub(super) fn escape(text: &str) -> String {
    quick_xml::escape::escape(text).into_owned()
}
