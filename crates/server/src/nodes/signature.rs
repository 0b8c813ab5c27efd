//! Signs the requests of one node to another, and verifies them.
//!
//! All nodes have one secret. A signature is good for one request to one process: it covers the method, the target, the
//! body, the process that it is for, and the client on whose behalf it is sent. Each is accepted once.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderName, HeaderValue, Method, Uri};
use quarterdeck_contracts::sha256;
use quarterdeck_runtime::is_valid_id;
use ring::hmac;

use super::replay::ReplayGuard;
use crate::identity::{hex, unhex};

pub(crate) const NODE_HEADER: HeaderName = HeaderName::from_static("x-quarterdeck-node");

/// The first line of what is signed, and the form of the header.
const FORM: &str = "qdn1";
/// How far the clocks of two nodes may differ. Requests are told apart by their numbers; the time only limits for how long
/// the numbers of a process that has gone are remembered.
const MAX_CLOCK_SKEW_MS: u64 = 10 * 60 * 1_000;
/// Stands for no client.
const NO_CLIENT: &str = "-";

/// Signs and verifies with the nodes' shared secret.
pub(super) struct NodeKey {
    key: hmac::Key,
    node: String,
    /// Names this process.
    boot: String,
    last_number: AtomicU64,
    replays: ReplayGuard,
}

/// What a signature covers besides its header.
pub(super) struct SignedParts<'a> {
    pub(super) method: &'a Method,
    pub(super) uri: &'a Uri,
    pub(super) body: &'a [u8],
}

/// A request that another node has signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeRequest {
    /// The name of the node.
    pub(crate) node: String,
    /// Whose request it passes on; `None` for one of its own.
    pub(crate) client: Option<SocketAddr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum SignatureError {
    /// Not signed with our secret for this request and this process. Which part is wrong is not told.
    #[error("This path is for other nodes of the cluster, which sign their requests with the shared secret.")]
    Invalid,
    /// For another process, which was at this address before.
    #[error("The process that this request is for is not at this address.")]
    Misdirected,
    #[error(
        "The clocks of the two nodes differ by more than ten minutes. Set them, and keep them set with NTP."
    )]
    Clock,
    #[error("This request was received before.")]
    Replayed,
}

impl NodeKey {
    pub(super) fn new(secret: &[u8], node: String, boot: String) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, secret),
            node,
            boot,
            last_number: AtomicU64::new(0),
            replays: ReplayGuard::new(2 * MAX_CLOCK_SKEW_MS),
        }
    }

    pub(super) fn node(&self) -> &str {
        &self.node
    }

    pub(super) fn boot(&self) -> &str {
        &self.boot
    }

    /// The header of a request to the process `boot`; `None` if its name cannot stand in a header.
    pub(super) fn sign(
        &self,
        parts: &SignedParts<'_>,
        boot: &str,
        client: Option<SocketAddr>,
        now_ms: u64,
    ) -> Option<HeaderValue> {
        let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        let client = client.map_or_else(|| NO_CLIENT.to_owned(), |client| client.to_string());
        let claims = format!("{FORM} {} {} {boot} {number} {now_ms} {client}", self.node, self.boot);
        let tag = hmac::sign(&self.key, parts.signed_text(&claims).as_bytes());
        HeaderValue::from_str(&format!("{claims} {}", hex(tag.as_ref()))).ok()
    }

    /// Refuses a header that does not even claim to be for this process. One that does has proved nothing yet.
    pub(super) fn check_addressee(&self, header: &HeaderValue) -> Result<(), SignatureError> {
        let claims = header.to_str().ok().and_then(|header| header.rsplit_once(' '));
        match claims.and_then(|(claims, _)| Claims::parse(claims)) {
            Some(claims) if claims.to == self.boot => Ok(()),
            Some(_) => Err(SignatureError::Misdirected),
            None => Err(SignatureError::Invalid),
        }
    }

    /// Accepts a header that was signed for this request and this process, once.
    pub(super) fn verify(
        &self,
        header: &HeaderValue,
        parts: &SignedParts<'_>,
        now_ms: u64,
    ) -> Result<NodeRequest, SignatureError> {
        let header = header.to_str().map_err(|_| SignatureError::Invalid)?;
        let (claims, signature) = header.rsplit_once(' ').ok_or(SignatureError::Invalid)?;
        let tag = unhex(signature).ok_or(SignatureError::Invalid)?;
        // Constant time, and before anything of it is believed.
        hmac::verify(&self.key, parts.signed_text(claims).as_bytes(), &tag)
            .map_err(|_| SignatureError::Invalid)?;
        let claims = Claims::parse(claims).filter(|claims| claims.to == self.boot);
        let Claims { node, boot, number, time_ms, client, .. } = claims.ok_or(SignatureError::Invalid)?;
        if now_ms.abs_diff(time_ms) >= MAX_CLOCK_SKEW_MS {
            return Err(SignatureError::Clock);
        }
        if !self.replays.accept(boot, number, now_ms) {
            return Err(SignatureError::Replayed);
        }
        Ok(NodeRequest { node: node.to_owned(), client })
    }
}

impl SignedParts<'_> {
    /// No part holds a line break, so there is one way to read it.
    fn signed_text(&self, claims: &str) -> String {
        let target = self.uri.path_and_query().map_or("", |target| target.as_str());
        format!("{claims}\n{}\n{target}\n{}", self.method, sha256(self.body))
    }
}

struct Claims<'a> {
    node: &'a str,
    boot: &'a str,
    to: &'a str,
    number: u64,
    time_ms: u64,
    client: Option<SocketAddr>,
}

impl<'a> Claims<'a> {
    fn parse(claims: &'a str) -> Option<Self> {
        let mut parts = claims.split(' ');
        let [form, node, boot, to, number, time_ms, client] = std::array::from_fn(|_| parts.next());
        if parts.next().is_some() || form? != FORM || !is_valid_id(node?) {
            return None;
        }
        let client = match client? {
            NO_CLIENT => None,
            client => Some(client.parse().ok()?),
        };
        let (number, time_ms) = (number?.parse().ok()?, time_ms?.parse().ok()?);
        Some(Self { node: node?, boot: boot?, to: to?, number, time_ms, client })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW_MS: u64 = 1_800_000_000_000;
    const SECRET: &[u8] = b"thirty-two bytes for a test only";

    fn key(node: &str, boot: &str) -> NodeKey {
        NodeKey::new(SECRET, node.to_owned(), boot.to_owned())
    }

    fn parts<'a>(method: &'a Method, uri: &'a Uri, body: &'a [u8]) -> SignedParts<'a> {
        SignedParts { method, uri, body }
    }

    #[test]
    fn a_signature_is_accepted_once_by_the_process_that_it_is_for() {
        let (a, b) = (key("a", "boot-a"), key("b", "boot-b"));
        let uri = Uri::from_static("/api/chat?x=1");
        let request = parts(&Method::POST, &uri, b"{}");
        let client: SocketAddr = "203.0.113.7:4711".parse().unwrap();
        let header = a.sign(&request, "boot-b", Some(client), NOW_MS).unwrap();
        assert_eq!(
            b.verify(&header, &request, NOW_MS + 300_000),
            Ok(NodeRequest { node: "a".into(), client: Some(client) }),
            "five minutes of difference do no harm"
        );
        assert_eq!(b.verify(&header, &request, NOW_MS), Err(SignatureError::Replayed));
        assert_eq!(b.check_addressee(&header), Ok(()));
        assert_eq!(key("c", "boot-c").check_addressee(&header), Err(SignatureError::Misdirected));
        assert_eq!(b.check_addressee(&HeaderValue::from_static("qdn1")), Err(SignatureError::Invalid));
        assert_eq!(key("b", "later").verify(&header, &request, NOW_MS), Err(SignatureError::Invalid));
        assert_eq!(key("c", "boot-c").verify(&header, &request, NOW_MS), Err(SignatureError::Invalid));
        for now_ms in [NOW_MS + MAX_CLOCK_SKEW_MS, NOW_MS - MAX_CLOCK_SKEW_MS] {
            let fresh = key("b", "boot-b");
            assert_eq!(fresh.verify(&header, &request, now_ms), Err(SignatureError::Clock));
        }
    }

    #[test]
    fn a_signature_is_for_one_method_target_and_body() {
        let (a, b) = (key("a", "boot-a"), key("b", "boot-b"));
        let (uri, other) = (Uri::from_static("/api/chat"), Uri::from_static("/api/chat?y"));
        let request = parts(&Method::POST, &uri, b"{}");
        let header = a.sign(&request, "boot-b", None, NOW_MS).unwrap();
        for wrong in [
            parts(&Method::DELETE, &uri, b"{}"),
            parts(&Method::POST, &other, b"{}"),
            parts(&Method::POST, &uri, b"{ }"),
        ] {
            assert_eq!(b.verify(&header, &wrong, NOW_MS), Err(SignatureError::Invalid));
        }
        assert!(b.verify(&header, &request, NOW_MS).is_ok(), "refused attempts do not use it up");
        let stranger = NodeKey::new(b"another secret of thirty-two bytes", "a".into(), "boot-a".into());
        let header = stranger.sign(&request, "boot-b", None, NOW_MS).unwrap();
        assert_eq!(b.verify(&header, &request, NOW_MS), Err(SignatureError::Invalid));
    }

    proptest! {
        #[test]
        fn a_changed_header_is_refused(place in any::<prop::sample::Index>(), by in 1_u8..=94, noise in "[ -~]{0,80}") {
            let (a, b) = (key("a", "boot-a"), key("b", "boot-b"));
            let uri = Uri::from_static("/api/nodes/alive");
            let request = parts(&Method::GET, &uri, b"");
            let mut header = a.sign(&request, "boot-b", None, NOW_MS).unwrap().as_bytes().to_vec();
            let at = place.index(header.len());
            header[at] = b' ' + (header[at] - b' ' + by) % 95;
            for wrong in [header, noise.into_bytes()] {
                let wrong = HeaderValue::from_bytes(&wrong).unwrap();
                prop_assert_eq!(b.verify(&wrong, &request, NOW_MS), Err(SignatureError::Invalid));
            }
        }
    }
}
