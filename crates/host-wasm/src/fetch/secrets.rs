//! Adds a tool's secrets to requests, each to the one host that the definition names for it.

use std::collections::BTreeMap;

use ::url::Url;
use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};
use quarterdeck_contracts::{Metadata, SecretPlace, can_carry_secret};
use quarterdeck_outbound::SecretText;
use reqwest::header::{ACCEPT_ENCODING, HeaderMap, HeaderName, HeaderValue, RANGE};

use super::failure::FetchFailure;
use super::redaction::Redactor;
use super::redirect::Hop;
use super::{host_of, invalid};

/// The secrets of one tool.
pub(crate) struct ToolSecrets {
    tool: String,
    secrets: Vec<BoundSecret>,
    /// Hides them in what comes back.
    pub(crate) redactor: Option<Redactor>,
}

/// One secret and where it goes.
struct BoundSecret {
    name: String,
    host: String,
    place: Place,
    /// The value as it is sent; `None` when it is not configured.
    value: Option<SecretText>,
}

enum Place {
    Header(HeaderName),
    Query(String),
}

impl ToolSecrets {
    pub(crate) fn new(metadata: &Metadata, given: &BTreeMap<String, SecretText>) -> Result<Self, String> {
        let mut secrets = Vec::new();
        for (name, entry) in &metadata.secrets {
            let broken = || format!("the secret {name} of its definition has no place that can carry it");
            let place = match entry.place().ok_or_else(broken)? {
                SecretPlace::Header(header) if can_carry_secret(header) => {
                    Place::Header(HeaderName::from_bytes(header.as_bytes()).map_err(|_| broken())?)
                }
                SecretPlace::Header(_) => return Err(broken()),
                SecretPlace::Query(query) => Place::Query(query.to_owned()),
            };
            let value = given.get(name).map(|secret| entry.value_with(secret.expose()));
            if let (Place::Header(_), Some(value)) = (&place, &value)
                && HeaderValue::from_str(value).is_err()
            {
                return Err(format!("its secret {name} has characters that a header cannot carry"));
            }
            secrets.push(BoundSecret {
                name: name.clone(),
                host: entry.host.to_ascii_lowercase(),
                place,
                value: value.as_deref().map(SecretText::from),
            });
        }
        let used = given.iter().filter(|(name, _)| metadata.secrets.contains_key(*name));
        let redactor = Redactor::new(used.map(|(_, secret)| secret.expose()))?;
        Ok(Self { tool: metadata.tool_id.to_string(), secrets, redactor })
    }

    fn for_host(&self, host: &str) -> impl Iterator<Item = &BoundSecret> {
        self.secrets.iter().filter(move |secret| secret.host == host)
    }

    /// Whether a handler's own request leaves the places free that secrets take.
    pub(crate) fn check_places(&self, hop: &Hop) -> Result<(), CapabilityError> {
        for BoundSecret { name, place, .. } in self.for_host(&host_of(&hop.url)) {
            let taken = match place {
                Place::Header(header) if hop.headers.contains_key(header) => format!("header {header}"),
                Place::Query(query) if hop.url.query_pairs().any(|(key, _)| key == **query) => {
                    format!("query parameter {query}")
                }
                _ => continue,
            };
            return Err(invalid(format!(
                "the {taken} is added by the host, with the secret {name}; leave it out"
            )));
        }
        Ok(())
    }

    /// Whether every secret that a request needs is configured and may travel: encrypted, or to a private host that an
    /// operator has opened.
    pub(crate) fn check_configured(&self, url: &Url, is_opened: bool) -> Result<(), FetchFailure> {
        let host = host_of(url);
        let tool = &self.tool;
        for BoundSecret { name, value, .. } in self.for_host(&host) {
            if value.is_none() {
                let message = format!(
                    "the secret {name} is not configured for this tool; an operator sets it under [tools.{tool}.secrets]"
                );
                let log_line = format!(
                    "fetch refused: the secret {name} is not configured; set {name} under [tools.{tool}.secrets] to \
                     {{ env = \"VARIABLE\" }} or {{ file = \"PATH\" }}"
                );
                return Err(FetchFailure::new(
                    CapabilityError::new(CapabilityErrorCode::AuthError, message),
                    log_line,
                ));
            }
            if url.scheme() != "https" && !is_opened {
                return Err(invalid(format!(
                    "the secret {name} is sent to {host} over https only, or to a private host that `private_hosts` names"
                ))
                .into());
            }
        }
        Ok(())
    }

    /// The URL and headers of a request with its secrets, and whether there are any.
    pub(crate) fn add_to(&self, hop: &Hop, is_opened: bool) -> (Url, HeaderMap, bool) {
        let (mut url, mut headers) = (hop.url.clone(), hop.headers.clone());
        let mut has_secret = false;
        if hop.has_left_its_origin || (url.scheme() != "https" && !is_opened) {
            return (url, headers, false);
        }
        for BoundSecret { place, value, .. } in self.for_host(&host_of(&hop.url)) {
            let Some(value) = value.as_ref().map(SecretText::expose) else { continue };
            match place {
                Place::Header(name) => {
                    let Ok(mut value) = HeaderValue::from_str(value) else { continue };
                    value.set_sensitive(true);
                    headers.insert(name.clone(), value);
                }
                Place::Query(name) => set_query(&mut url, name, value),
            }
            has_secret = true;
        }
        if has_secret {
            // An echo that is compressed or comes in pieces could not be recognised.
            headers.remove(ACCEPT_ENCODING);
            headers.remove(RANGE);
        }
        (url, headers, has_secret)
    }
}

/// Sets a parameter, in place of what a redirect may have put there.
fn set_query(url: &mut Url, name: &str, value: &str) {
    if url.query_pairs().any(|(key, _)| key == name) {
        let others: Vec<(String, String)> =
            url.query_pairs().into_owned().filter(|(key, _)| key != name).collect();
        url.query_pairs_mut().clear().extend_pairs(others);
    }
    url.query_pairs_mut().append_pair(name, value);
}
