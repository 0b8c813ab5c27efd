//! Tickets: who may call, in a form that fits into an address.
//!
//! A browser cannot set a header on a WebSocket, so whoever shows a bearer token trades it for a ticket. It is signed,
//! names the client with everything that is known of them, and is good for one call within a minute.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quarterdeck_runtime::gates::ClientFacts;
use quarterdeck_runtime::{Client, random_hex};
use serde::{Deserialize, Serialize};

use crate::identity::Identity;

/// How long a ticket is good.
pub(crate) const LIFE: Duration = Duration::from_secs(60);
/// What tickets are signed for.
const PURPOSE: &str = "voice-ticket";
/// The longest ticket. Proxies do not take much longer addresses.
const LONGEST: usize = 8 << 10;
/// How many that were used are remembered. It takes ten thousand calls in a minute to have more, and then nobody is let
/// in by a ticket until the oldest have expired: a ticket must not be good twice.
const MOST_USED: usize = 10_000;

/// Remembers which tickets were used.
#[derive(Debug, Default)]
pub(crate) struct Tickets {
    /// Until when each would have been good.
    used: Mutex<HashMap<String, u64>>,
}

/// Whom a ticket names.
#[derive(Debug, Clone)]
pub(crate) struct TicketHolder {
    pub(crate) client: Client,
    /// Whether they had proved who they are when they got it.
    pub(crate) is_proved: bool,
}

#[derive(Serialize, Deserialize)]
struct Ticket {
    number: String,
    client: String,
    facts: ClientFacts,
    is_proved: bool,
    until_ms: u64,
}

impl Tickets {
    /// A ticket for a client; `None` if there are no random numbers, or too much is known of them to fit.
    pub(crate) fn issue(&self, identity: &Identity, holder: &TicketHolder, now_ms: u64) -> Option<String> {
        let TicketHolder { client, is_proved } = holder;
        let ticket = Ticket {
            number: random_hex(16)?,
            client: client.id.clone(),
            facts: ClientFacts::clone(&client.facts),
            is_proved: *is_proved,
            until_ms: now_ms + LIFE.as_millis() as u64,
        };
        let said = base64_simd::URL_SAFE_NO_PAD.encode_to_string(serde_json::to_vec(&ticket).ok()?);
        let ticket = format!("{said}.{}", identity.seal(PURPOSE, &[&said]));
        (ticket.len() <= LONGEST).then_some(ticket)
    }

    /// Whose ticket it is, once.
    pub(crate) fn redeem(&self, identity: &Identity, ticket: &str, now_ms: u64) -> Option<TicketHolder> {
        let (said, seal) = ticket.split_once('.').filter(|_| ticket.len() <= LONGEST)?;
        if !identity.is_sealed(PURPOSE, &[said], seal) {
            return None;
        }
        let said = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(said).ok()?;
        let ticket: Ticket = serde_json::from_slice(&said).ok()?;
        // A ticket that is good for longer than any is was issued by a clock that has been set back since.
        let is_good = now_ms < ticket.until_ms && ticket.until_ms <= now_ms + LIFE.as_millis() as u64;
        if !is_good || !self.is_first(ticket.number, ticket.until_ms, now_ms) {
            return None;
        }
        let client = Client { id: ticket.client, facts: Arc::new(ticket.facts) };
        Some(TicketHolder { client, is_proved: ticket.is_proved })
    }

    fn is_first(&self, number: String, until_ms: u64, now_ms: u64) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() >= MOST_USED {
            used.retain(|_, until| *until > now_ms);
        }
        used.len() < MOST_USED && used.insert(number, until_ms).is_none()
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
        TicketHolder { client: Client { id: "sub:ann".into(), facts: Arc::new(facts) }, is_proved: true }
    }

    #[test]
    fn a_ticket_names_its_client_with_everything_known_and_once() {
        let (tickets, identity) = (Tickets::default(), identity());
        let ticket = tickets.issue(&identity, &ann(), NOW).unwrap();
        let TicketHolder { client, is_proved } = tickets.redeem(&identity, &ticket, NOW + 59_999).unwrap();
        assert_eq!((client.id, client.facts, is_proved), (ann().client.id, ann().client.facts, true));
        assert!(tickets.redeem(&identity, &ticket, NOW + 59_999).is_none(), "it was used");
    }

    #[test]
    fn a_clock_that_was_set_back_makes_no_ticket_good_for_longer() {
        let (tickets, identity) = (Tickets::default(), identity());
        let ticket = tickets.issue(&identity, &ann(), NOW).unwrap();
        for back in [1, 60_000, 3_600_000] {
            assert!(tickets.redeem(&identity, &ticket, NOW - back).is_none(), "{back}");
        }
        assert!(tickets.redeem(&identity, &ticket, NOW).is_some());
    }

    #[test]
    fn a_ticket_that_is_old_forged_or_anothers_is_none() {
        let (tickets, identity) = (Tickets::default(), identity());
        let ticket = tickets.issue(&identity, &ann(), NOW).unwrap();
        assert!(tickets.redeem(&identity, &ticket, NOW + 60_000).is_none(), "a minute is over");
        let elsewhere = Identity::new(b"another thirty-two bytes, as well", None, Vec::new());
        assert!(tickets.redeem(&elsewhere, &ticket, NOW).is_none());
        let (said, seal) = ticket.split_once('.').unwrap();
        let unpacked = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(said).unwrap();
        let forged = String::from_utf8(unpacked).unwrap().replace("sub:ann", "sub:bob");
        let forged = base64_simd::URL_SAFE_NO_PAD.encode_to_string(forged);
        let resume = identity.seal("voice-resume", &[said]);
        for bad in [
            format!("{forged}.{seal}"),
            format!("{said}.{}", "0".repeat(64)),
            format!("{said}.{resume}"),
            format!("{said}.é"),
            said.to_owned(),
            ".".to_owned(),
            String::new(),
        ] {
            assert!(tickets.redeem(&identity, &bad, NOW).is_none(), "{bad}");
        }
        assert!(tickets.redeem(&identity, &ticket, NOW).is_some(), "none of that has used it up");
    }

    #[test]
    fn those_that_were_used_are_remembered_until_they_expire_and_never_too_many() {
        let (tickets, identity) = (Tickets::default(), identity());
        let late = tickets.issue(&identity, &ann(), NOW).unwrap();
        for number in 0..MOST_USED {
            assert!(tickets.is_first(number.to_string(), NOW + 60_000, NOW));
        }
        assert!(tickets.redeem(&identity, &late, NOW).is_none(), "nobody can say whether it was used");
        assert_eq!(tickets.used.lock().unwrap().len(), MOST_USED);
        let next = tickets.issue(&identity, &ann(), NOW + 60_000).unwrap();
        assert!(tickets.redeem(&identity, &next, NOW + 60_000).is_some());
        assert_eq!(tickets.used.lock().unwrap().len(), 1, "those that have expired are forgotten");
    }

    #[test]
    fn a_client_of_whom_too_much_is_known_gets_no_ticket() {
        let claims = [("about".to_owned(), json!("x".repeat(LONGEST)))];
        let facts = ClientFacts { authenticated: true, claims: claims.into_iter().collect() };
        let client = Client { id: "sub:ann".into(), facts: Arc::new(facts) };
        let holder = TicketHolder { client, is_proved: true };
        assert!(Tickets::default().issue(&identity(), &holder, NOW).is_none());
    }
}
