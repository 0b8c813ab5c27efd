//! Tickets for calls, short enough for a URL.
//!
//! A browser cannot set a header on a WebSocket, so a client exchanges its bearer token for a ticket. It is signed,
//! names the client with its claims, and is valid for one call within a minute.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quarterdeck_runtime::gates::ClientFacts;
use quarterdeck_runtime::{Client, RequestedVersion, random_hex};
use serde::{Deserialize, Serialize};

use crate::identity::Identity;

pub(crate) const TICKET_TTL: Duration = Duration::from_secs(60);
const PURPOSE: &str = "voice-ticket";
/// Proxies refuse much longer URLs.
const MAX_TICKET_BYTES: usize = 8 << 10;
/// Used tickets that are remembered. With more than this in a minute, tickets are refused until the oldest expire: a
/// ticket must not be valid twice.
const MAX_USED_TICKETS: usize = 10_000;

/// Issues tickets and remembers the used ones.
#[derive(Debug, Default)]
pub(crate) struct Tickets {
    /// The expiry of each.
    used: Mutex<HashMap<String, u64>>,
}

#[derive(Debug, Clone)]
pub(crate) struct TicketHolder {
    pub(crate) client: Client,
    pub(crate) is_verified: bool,
}

#[derive(Serialize, Deserialize)]
struct Ticket {
    number: String,
    client: String,
    facts: ClientFacts,
    is_proved: bool,
    until_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    requested_version: Option<RequestedVersion>,
}

impl Tickets {
    /// `None` without random numbers, or if the claims do not fit.
    pub(crate) fn issue(&self, identity: &Identity, holder: &TicketHolder, now_ms: u64) -> Option<String> {
        let TicketHolder { client, is_verified } = holder;
        let ticket = Ticket {
            number: random_hex(16)?,
            client: client.id.clone(),
            facts: ClientFacts::clone(&client.facts),
            is_proved: *is_verified,
            until_ms: now_ms + TICKET_TTL.as_millis() as u64,
            requested_version: client.requested_version.clone(),
        };
        let payload = base64_simd::URL_SAFE_NO_PAD.encode_to_string(serde_json::to_vec(&ticket).ok()?);
        let ticket = format!("{payload}.{}", identity.sign_for(PURPOSE, &[&payload]));
        (ticket.len() <= MAX_TICKET_BYTES).then_some(ticket)
    }

    /// Accepts a valid ticket once.
    pub(crate) fn redeem(&self, identity: &Identity, ticket: &str, now_ms: u64) -> Option<TicketHolder> {
        let (payload, signature) = ticket.split_once('.').filter(|_| ticket.len() <= MAX_TICKET_BYTES)?;
        if !identity.is_signed_for(PURPOSE, &[payload], signature) {
            return None;
        }
        let payload = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(payload).ok()?;
        let ticket: Ticket = serde_json::from_slice(&payload).ok()?;
        // A later expiry than any new ticket's means that the clock was set back.
        let is_valid = now_ms < ticket.until_ms && ticket.until_ms <= now_ms + TICKET_TTL.as_millis() as u64;
        if !is_valid || !self.mark_used(ticket.number, ticket.until_ms, now_ms) {
            return None;
        }
        let facts = Arc::new(ticket.facts);
        let client = Client { id: ticket.client, facts, requested_version: ticket.requested_version };
        Some(TicketHolder { client, is_verified: ticket.is_proved })
    }

    fn mark_used(&self, number: String, until_ms: u64, now_ms: u64) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() >= MAX_USED_TICKETS {
            used.retain(|_, until| *until > now_ms);
        }
        used.len() < MAX_USED_TICKETS && used.insert(number, until_ms).is_none()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: u64 = 1_800_000_000_000;

    fn identity() -> Identity {
        Identity::new(b"thirty-two bytes for a test only", None, Vec::new())
    }

    fn ann() -> TicketHolder {
        let claims = [("sub".to_owned(), json!("ann")), ("roles".to_owned(), json!(["host"]))];
        let facts = ClientFacts { authenticated: true, claims: claims.into_iter().collect() };
        TicketHolder { client: Client::known("sub:ann", Arc::new(facts)), is_verified: true }
    }

    #[test]
    fn a_ticket_names_its_client_with_its_claims_once() {
        let (tickets, identity) = (Tickets::default(), identity());
        let ticket = tickets.issue(&identity, &ann(), NOW).unwrap();
        let TicketHolder { client, is_verified } = tickets.redeem(&identity, &ticket, NOW + 59_999).unwrap();
        assert_eq!((client.id, client.facts, is_verified), (ann().client.id, ann().client.facts, true));
        assert!(tickets.redeem(&identity, &ticket, NOW + 59_999).is_none(), "it was used");
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_extend_a_ticket() {
        let (tickets, identity) = (Tickets::default(), identity());
        let ticket = tickets.issue(&identity, &ann(), NOW).unwrap();
        for back in [1, 60_000, 3_600_000] {
            assert!(tickets.redeem(&identity, &ticket, NOW - back).is_none(), "{back}");
        }
        assert!(tickets.redeem(&identity, &ticket, NOW).is_some());
    }

    #[test]
    fn an_expired_or_forged_ticket_is_refused() {
        let (tickets, identity) = (Tickets::default(), identity());
        let ticket = tickets.issue(&identity, &ann(), NOW).unwrap();
        assert!(tickets.redeem(&identity, &ticket, NOW + 60_000).is_none(), "a minute is over");
        let elsewhere = Identity::new(b"another thirty-two bytes, as well", None, Vec::new());
        assert!(tickets.redeem(&elsewhere, &ticket, NOW).is_none());
        let (payload, signature) = ticket.split_once('.').unwrap();
        let unpacked = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(payload).unwrap();
        let forged = String::from_utf8(unpacked).unwrap().replace("sub:ann", "sub:bob");
        let forged = base64_simd::URL_SAFE_NO_PAD.encode_to_string(forged);
        let resume = identity.sign_for("voice-resume", &[payload]);
        for bad in [
            format!("{forged}.{signature}"),
            format!("{payload}.{}", "0".repeat(64)),
            format!("{payload}.{resume}"),
            format!("{payload}.é"),
            payload.to_owned(),
            ".".to_owned(),
            String::new(),
        ] {
            assert!(tickets.redeem(&identity, &bad, NOW).is_none(), "{bad}");
        }
        assert!(tickets.redeem(&identity, &ticket, NOW).is_some(), "refused attempts do not use it up");
    }

    #[test]
    fn used_tickets_are_remembered_until_they_expire_within_a_bound() {
        let (tickets, identity) = (Tickets::default(), identity());
        let late = tickets.issue(&identity, &ann(), NOW).unwrap();
        for number in 0..MAX_USED_TICKETS {
            assert!(tickets.mark_used(number.to_string(), NOW + 60_000, NOW));
        }
        assert!(tickets.redeem(&identity, &late, NOW).is_none(), "whether it was used is unknown");
        assert_eq!(tickets.used.lock().unwrap().len(), MAX_USED_TICKETS);
        let next = tickets.issue(&identity, &ann(), NOW + 60_000).unwrap();
        assert!(tickets.redeem(&identity, &next, NOW + 60_000).is_some());
        assert_eq!(tickets.used.lock().unwrap().len(), 1, "expired ones are forgotten");
    }

    #[test]
    fn a_client_with_too_many_claims_gets_no_ticket() {
        let claims = [("about".to_owned(), json!("x".repeat(MAX_TICKET_BYTES)))];
        let facts = ClientFacts { authenticated: true, claims: claims.into_iter().collect() };
        let client = Client::known("sub:ann", Arc::new(facts));
        let holder = TicketHolder { client, is_verified: true };
        assert!(Tickets::default().issue(&identity(), &holder, NOW).is_none());
    }
}
