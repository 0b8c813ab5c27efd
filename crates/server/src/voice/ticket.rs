//! Tickets for calls, short enough for a URL.
//!
//! A browser cannot set a header on a WebSocket, so a client exchanges its bearer token or session token for a ticket. It
//! is signed, names the client with its claims, and is valid for one call within a minute, from the page that it was issued
//! to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quarterdeck_contracts::{Commit, CommitError, Store, StoreError, Table};
use quarterdeck_runtime::gates::ClientFacts;
use quarterdeck_runtime::{Client, RequestedVersion, random_hex};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::identity::Identity;

pub(crate) const TICKET_TTL: Duration = Duration::from_secs(60);
const PURPOSE: &str = "voice-ticket";
/// Proxies refuse much longer URLs.
const MAX_TICKET_BYTES: usize = 8 << 10;
/// Used tickets that are remembered. With more than this in a minute, tickets are refused until the oldest expire: a
/// ticket must not be valid twice.
const MAX_USED_TICKETS: usize = 10_000;
/// How far the clocks of two nodes may differ.
const MAX_CLOCK_SKEW_MS: u64 = 300_000;

/// Issues tickets and remembers the used ones: here, or in the store where several nodes share one.
#[derive(Default)]
pub(crate) struct Tickets {
    /// The expiry of each.
    used: Mutex<HashMap<String, u64>>,
    shared: Option<Arc<dyn Store>>,
}

#[derive(Debug, Clone)]
pub(crate) struct TicketHolder {
    pub(crate) client: Client,
    pub(crate) is_verified: bool,
    /// The origin whose page alone may use it; `None` for one that was issued to our own page or to a program, which may
    /// hand it on.
    pub(crate) origin: Option<String>,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
}

impl Tickets {
    /// Tickets of all nodes that share a store.
    pub(crate) fn shared(store: Arc<dyn Store>) -> Self {
        Self { shared: Some(store), ..Self::default() }
    }

    /// `None` without random numbers, or if the claims do not fit.
    pub(crate) fn issue(&self, identity: &Identity, holder: &TicketHolder, now_ms: u64) -> Option<String> {
        let TicketHolder { client, is_verified, origin } = holder;
        let ticket = Ticket {
            number: random_hex(16)?,
            client: client.id.clone(),
            facts: ClientFacts::clone(&client.facts),
            is_proved: *is_verified,
            until_ms: now_ms + TICKET_TTL.as_millis() as u64,
            requested_version: client.requested_version.clone(),
            origin: origin.clone(),
        };
        let payload = base64_simd::URL_SAFE_NO_PAD.encode_to_string(serde_json::to_vec(&ticket).ok()?);
        let ticket = format!("{payload}.{}", identity.sign_for(PURPOSE, &[&payload]));
        (ticket.len() <= MAX_TICKET_BYTES).then_some(ticket)
    }

    /// Accepts a valid ticket once, from the origin that it was issued to.
    pub(crate) async fn redeem(
        &self,
        identity: &Identity,
        ticket: &str,
        origin: Option<&str>,
        now_ms: u64,
    ) -> Result<Option<TicketHolder>, StoreError> {
        let Some(ticket) = self.verify(identity, ticket, origin, now_ms) else { return Ok(None) };
        let is_first = match &self.shared {
            Some(store) => mark_used_for_all(&**store, &ticket).await?,
            None => self.mark_used(ticket.number, ticket.until_ms, now_ms),
        };
        if !is_first {
            return Ok(None);
        }
        let facts = Arc::new(ticket.facts);
        let requested_version = ticket.requested_version;
        let client = Client { requested_version, ..Client::known(ticket.client, facts) };
        Ok(Some(TicketHolder { client, is_verified: ticket.is_proved, origin: ticket.origin }))
    }

    /// A ticket that may be used, if it was not.
    fn verify(&self, identity: &Identity, ticket: &str, origin: Option<&str>, now_ms: u64) -> Option<Ticket> {
        let (payload, signature) = ticket.split_once('.').filter(|_| ticket.len() <= MAX_TICKET_BYTES)?;
        if !identity.is_signed_for(PURPOSE, &[payload], signature) {
            return None;
        }
        let payload = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(payload).ok()?;
        let ticket: Ticket = serde_json::from_slice(&payload).ok()?;
        // It may be another node's, whose clock is not ours.
        let skew_ms = self.shared.as_ref().map_or(0, |_| MAX_CLOCK_SKEW_MS);
        // A later expiry than any new ticket's means that the clock was set back.
        let is_valid = now_ms < ticket.until_ms + skew_ms
            && ticket.until_ms <= now_ms + TICKET_TTL.as_millis() as u64 + skew_ms;
        let is_origin = ticket.origin.as_deref().is_none_or(|bound| origin == Some(bound));
        (is_valid && is_origin).then_some(ticket)
    }

    fn mark_used(&self, number: String, until_ms: u64, now_ms: u64) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() >= MAX_USED_TICKETS {
            used.retain(|_, until| *until > now_ms);
        }
        used.len() < MAX_USED_TICKETS && used.insert(number, until_ms).is_none()
    }
}

/// Whether no node has seen it before. Its row stays for as long as the slowest clock takes it to be valid, by the clock of
/// the fastest.
async fn mark_used_for_all(store: &dyn Store, ticket: &Ticket) -> Result<bool, StoreError> {
    let expires_ms = Some(ticket.until_ms + 3 * MAX_CLOCK_SKEW_MS);
    let used = Commit::default().check(Table::Tickets, ticket.number.clone(), None).put_until(
        Table::Tickets,
        ticket.number.clone(),
        json!({}),
        expires_ms,
    );
    match store.commit(used).await {
        Ok(_) => Ok(true),
        // One whose outcome is not known may be used, and must not be valid twice.
        Err(CommitError::Conflict { .. } | CommitError::Unknown(_)) => Ok(false),
        Err(error) => Err(error.into_store_error()),
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    const NOW: u64 = 1_800_000_000_000;

    fn identity() -> Identity {
        Identity::new(b"thirty-two bytes for a test only", None, Vec::new())
    }

    fn ann() -> TicketHolder {
        let claims = [("sub".to_owned(), json!("ann")), ("roles".to_owned(), json!(["host"]))];
        let facts = ClientFacts { authenticated: true, claims: claims.into_iter().collect() };
        TicketHolder { client: Client::known("sub:ann", Arc::new(facts)), is_verified: true, origin: None }
    }

    async fn redeem(
        tickets: &Tickets,
        identity: &Identity,
        ticket: &str,
        now_ms: u64,
    ) -> Option<TicketHolder> {
        tickets.redeem(identity, ticket, None, now_ms).await.unwrap()
    }

    #[tokio::test]
    async fn a_ticket_names_its_client_with_its_claims_once() {
        let (tickets, identity) = (Tickets::default(), identity());
        let ticket = tickets.issue(&identity, &ann(), NOW).unwrap();
        let TicketHolder { client, is_verified, .. } =
            redeem(&tickets, &identity, &ticket, NOW + 59_999).await.unwrap();
        assert_eq!((client.id, client.facts, is_verified), (ann().client.id, ann().client.facts, true));
        assert!(redeem(&tickets, &identity, &ticket, NOW + 59_999).await.is_none(), "it was used");
    }

    #[tokio::test]
    async fn a_clock_that_was_set_back_does_not_extend_a_ticket() {
        let (tickets, identity) = (Tickets::default(), identity());
        let ticket = tickets.issue(&identity, &ann(), NOW).unwrap();
        for back in [1, 60_000, 3_600_000] {
            assert!(redeem(&tickets, &identity, &ticket, NOW - back).await.is_none(), "{back}");
        }
        assert!(redeem(&tickets, &identity, &ticket, NOW).await.is_some());
    }

    #[tokio::test]
    async fn an_expired_or_forged_ticket_is_refused() {
        let (tickets, identity) = (Tickets::default(), identity());
        let ticket = tickets.issue(&identity, &ann(), NOW).unwrap();
        assert!(redeem(&tickets, &identity, &ticket, NOW + 60_000).await.is_none(), "a minute is over");
        let elsewhere = Identity::new(b"another thirty-two bytes, as well", None, Vec::new());
        assert!(redeem(&tickets, &elsewhere, &ticket, NOW).await.is_none());
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
            assert!(redeem(&tickets, &identity, &bad, NOW).await.is_none(), "{bad}");
        }
        assert!(
            redeem(&tickets, &identity, &ticket, NOW).await.is_some(),
            "refused attempts do not use it up"
        );
    }

    #[tokio::test]
    async fn used_tickets_are_remembered_until_they_expire_within_a_bound() {
        let (tickets, identity) = (Tickets::default(), identity());
        let late = tickets.issue(&identity, &ann(), NOW).unwrap();
        for number in 0..MAX_USED_TICKETS {
            assert!(tickets.mark_used(number.to_string(), NOW + 60_000, NOW));
        }
        assert!(redeem(&tickets, &identity, &late, NOW).await.is_none(), "whether it was used is unknown");
        assert_eq!(tickets.used.lock().unwrap().len(), MAX_USED_TICKETS);
        let next = tickets.issue(&identity, &ann(), NOW + 60_000).unwrap();
        assert!(redeem(&tickets, &identity, &next, NOW + 60_000).await.is_some());
        assert_eq!(tickets.used.lock().unwrap().len(), 1, "expired ones are forgotten");
    }

    #[tokio::test]
    async fn a_ticket_is_used_once_over_all_nodes_whose_clocks_differ() {
        let store: Arc<dyn Store> = Arc::new(quarterdeck_store::MemoryStore::default());
        let (one, other) = (Tickets::shared(store.clone()), Tickets::shared(store.clone()));
        let identity = identity();
        let ticket = one.issue(&identity, &ann(), NOW).unwrap();
        assert!(
            redeem(&other, &identity, &ticket, NOW + 360_000).await.is_none(),
            "it is too old everywhere"
        );
        assert!(redeem(&other, &identity, &ticket, NOW + 300_000).await.is_some(), "five minutes ahead");
        let ahead = one.issue(&identity, &ann(), NOW + 300_000).unwrap();
        assert!(redeem(&other, &identity, &ahead, NOW).await.is_some(), "five minutes behind");
        store.sweep(NOW + 359_999 + 300_000).await.unwrap();
        for tickets in [&one, &other] {
            assert!(redeem(tickets, &identity, &ticket, NOW).await.is_none(), "it was used");
        }
    }

    #[test]
    fn a_client_with_too_many_claims_gets_no_ticket() {
        let claims = [("about".to_owned(), json!("x".repeat(MAX_TICKET_BYTES)))];
        let facts = ClientFacts { authenticated: true, claims: claims.into_iter().collect() };
        let client = Client::known("sub:ann", Arc::new(facts));
        let holder = TicketHolder { client, is_verified: true, origin: None };
        assert!(Tickets::default().issue(&identity(), &holder, NOW).is_none());
    }
}
