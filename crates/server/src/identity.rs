//! Who asks: a signed cookie, the subject of a verified token, or a key for programs.
//!
//! Nothing in a body can make somebody another client, and nothing here trusts what it has not signed or verified.

use std::collections::BTreeMap;
use std::sync::Arc;

use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use quarterdeck_contracts::sha256;
use quarterdeck_runtime::gates::ClientFacts;
use quarterdeck_runtime::{Client, random_hex};
use ring::hmac;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::claims::{ClaimRules, is_critical};

/// The cookie's name.
pub(crate) const COOKIE: &str = "quarterdeck_client";

/// The length of a signature.
const SIGNATURE_BYTES: usize = 32;

/// Knows who asks.
pub struct Identity {
    key: hmac::Key,
    tokens: Option<TokenRules>,
    api_keys: Vec<ApiKey>,
}

/// How tokens of people who have signed in elsewhere are verified.
pub struct TokenRules {
    key: DecodingKey,
    validation: Validation,
    claims: ClaimRules,
}

/// The key that tokens are verified with.
#[derive(Clone, Copy)]
pub enum TokenKey<'a> {
    /// HS256, a shared secret.
    Secret(&'a [u8]),
    /// RS256, a public key in PEM.
    Rsa(&'a [u8]),
    /// ES256, a public key in PEM.
    Ec(&'a [u8]),
    /// EdDSA, a public key in PEM.
    Ed(&'a [u8]),
}

/// A key that a program shows, and what it is known by.
pub struct ApiKey {
    name: String,
    digest: [u8; 32],
}

/// Why a key cannot verify tokens.
#[derive(Debug, thiserror::Error)]
#[error("the key that tokens are verified with cannot be used: {0}")]
pub struct TokenError(String);

/// What a bearer header did not prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotProved {
    /// Nobody has configured how to verify it.
    Unconfigured,
    /// It is not valid, or not any more.
    Invalid,
}

impl TokenRules {
    /// Tokens signed with this key, which must name this issuer and this audience when they are given. They must expire.
    pub fn new(key: TokenKey<'_>, issuer: Option<&str>, audience: Option<&str>) -> Result<Self, TokenError> {
        let failed = |error: jsonwebtoken::errors::Error| TokenError(error.to_string());
        let (key, algorithm) = match key {
            TokenKey::Secret(secret) => (DecodingKey::from_secret(secret), Algorithm::HS256),
            TokenKey::Rsa(pem) => (DecodingKey::from_rsa_pem(pem).map_err(failed)?, Algorithm::RS256),
            TokenKey::Ec(pem) => (DecodingKey::from_ec_pem(pem).map_err(failed)?, Algorithm::ES256),
            TokenKey::Ed(pem) => (DecodingKey::from_ed_pem(pem).map_err(failed)?, Algorithm::EdDSA),
        };
        let mut validation = Validation::new(algorithm);
        validation.validate_nbf = true;
        validation.set_required_spec_claims(&["exp", "sub"]);
        validation.validate_aud = audience.is_some();
        if let Some(audience) = audience {
            validation.set_audience(&[audience]);
            validation.required_spec_claims.insert("aud".to_owned());
        }
        if let Some(issuer) = issuer {
            validation.set_issuer(&[issuer]);
            validation.required_spec_claims.insert("iss".to_owned());
        }
        let claims = ClaimRules { issuer: issuer.map(str::to_owned), audience: audience.map(str::to_owned) };
        Ok(Self { key, validation, claims })
    }

    /// The client that a token names, with its claims.
    fn client_of(&self, token: &str) -> Option<Client> {
        if is_critical(token) {
            return None;
        }
        let claims =
            jsonwebtoken::decode::<Map<String, Value>>(token, &self.key, &self.validation).ok()?.claims;
        let id = client_id(self.claims.subject(&claims)?);
        let facts =
            ClientFacts { authenticated: true, claims: claims.into_iter().collect::<BTreeMap<_, _>>() };
        Some(Client { id, facts: Arc::new(facts) })
    }
}

impl ApiKey {
    /// A program's key under a name.
    pub fn new(name: impl Into<String>, key: &str) -> Self {
        Self { name: name.into(), digest: Sha256::digest(key.as_bytes()).into() }
    }
}

impl Identity {
    /// Cookies signed with a secret of at least 32 bytes, and what else is believed.
    pub fn new(cookie_secret: &[u8], tokens: Option<TokenRules>, api_keys: Vec<ApiKey>) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, cookie_secret), tokens, api_keys }
    }

    /// Whether a bearer token can prove anything here.
    pub(crate) fn can_verify(&self) -> bool {
        self.tokens.is_some() || !self.api_keys.is_empty()
    }

    /// Somebody new, and the cookie that they are known by from now on.
    pub(crate) fn newcomer(&self) -> Option<(Client, String)> {
        let id = format!("c_{}", random_hex(16)?);
        let cookie = format!("{id}.{}", self.sign(&id));
        Some((Client::anonymous(id), cookie))
    }

    /// Whoever has a cookie of ours.
    pub(crate) fn by_cookie(&self, cookie: &str) -> Option<Client> {
        let (id, signature) = cookie.split_once('.')?;
        let signature = unhex(signature)?;
        // Compared in constant time.
        hmac::verify(&self.key, id.as_bytes(), &signature).ok()?;
        Some(Client::anonymous(id))
    }

    /// Whoever shows a bearer token.
    pub(crate) fn by_bearer(&self, token: &str) -> Result<Client, NotProved> {
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        // Digests of the keys are compared, so that time tells nothing about a key itself.
        if let Some(key) = self.api_keys.iter().find(|key| key.digest == digest) {
            return Ok(Client::anonymous(format!("key:{}", key.name)));
        }
        let Some(rules) = &self.tokens else {
            return Err(if self.can_verify() { NotProved::Invalid } else { NotProved::Unconfigured });
        };
        rules.client_of(token).ok_or(NotProved::Invalid)
    }

    /// A program on this machine that shows a key where none is needed, and keeps no cookie. It proves nothing, but it
    /// is the same program the next time.
    pub(crate) fn program(&self, key: &str) -> Client {
        let mark = self.sign(&format!("program {key}"));
        Client::anonymous(format!("p_{}", &mark[..32]))
    }

    /// What proves later that this server has said something to somebody. A purpose and a line break come first: no
    /// header holds one, so that nothing that is sealed can be shown as a cookie, nor one purpose's for another's.
    pub(crate) fn seal(&self, purpose: &str, parts: &[&str]) -> String {
        self.sign(&format!("{purpose}\n{}", parts.join("\n")))
    }

    /// Whether that is so.
    pub(crate) fn is_sealed(&self, purpose: &str, parts: &[&str], seal: &str) -> bool {
        let said = format!("{purpose}\n{}", parts.join("\n"));
        // Compared in constant time.
        unhex(seal).is_some_and(|seal| hmac::verify(&self.key, said.as_bytes(), &seal).is_ok())
    }

    fn sign(&self, id: &str) -> String {
        let tag = hmac::sign(&self.key, id.as_bytes());
        tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A subject may be any text; an id of ours has few letters. Two subjects never become one client.
fn client_id(subject: &str) -> String {
    let is_plain = (1..=100).contains(&subject.len())
        && subject.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte));
    if is_plain {
        return format!("sub:{subject}");
    }
    format!("sub-hash:{}", sha256(subject.as_bytes()))
}

/// Reads what [`Identity::sign`] writes, and nothing else: a signature has one spelling, so that nothing that remembers
/// or compares what was signed sees two of the same.
fn unhex(text: &str) -> Option<[u8; SIGNATURE_BYTES]> {
    let digits: &[u8; 2 * SIGNATURE_BYTES] = text.as_bytes().try_into().ok()?;
    let mut bytes = [0; SIGNATURE_BYTES];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn digit(letter: u8) -> Option<u8> {
    match letter {
        b'0'..=b'9' => Some(letter - b'0'),
        b'a'..=b'f' => Some(letter - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
