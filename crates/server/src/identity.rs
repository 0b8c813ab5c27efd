//! Identifies clients: a signed cookie or session token, the subject of a verified token, or an API key.
//!
//! Nothing in a body changes who the client is, and only what was signed or verified here is trusted.

use std::collections::BTreeMap;
use std::sync::Arc;

use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use quarterdeck_contracts::sha256;
use quarterdeck_runtime::gates::ClientFacts;
use quarterdeck_runtime::{Client, random_hex};
use ring::hmac;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::claims::{ClaimRules, has_critical_header};

pub(crate) const COOKIE: &str = "quarterdeck_client";

/// How the id of an API key's client begins. No cookie or token leads to such an id.
const KEY_PREFIX: &str = "key:";
/// How the id of a client begins that is known by its cookie or session token alone.
const ANONYMOUS_PREFIX: &str = "c_";
const ANONYMOUS_ID_BYTES: usize = 16;
const SIGNATURE_BYTES: usize = 32;

/// Verifies credentials and issues cookies.
pub struct Identity {
    key: hmac::Key,
    tokens: Option<TokenRules>,
    api_keys: Vec<ApiKey>,
}

/// How tokens of an external identity provider are verified.
pub struct TokenRules {
    key: DecodingKey,
    validation: Validation,
    claims: ClaimRules,
}

/// A verification key.
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

/// An API key and the name of its client.
pub struct ApiKey {
    name: String,
    digest: [u8; 32],
}

/// A token verification key is unusable.
#[derive(Debug, thiserror::Error)]
#[error("invalid token verification key: {0}")]
pub struct TokenError(String);

/// Why a bearer token identifies no client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BearerError {
    /// Neither token verification nor API keys are configured.
    NotConfigured,
    Invalid,
}

impl TokenRules {
    /// Tokens must expire, and name the issuer and the audience if given.
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

    fn verify_token(&self, token: &str) -> Option<Client> {
        if has_critical_header(token) {
            return None;
        }
        let claims =
            jsonwebtoken::decode::<Map<String, Value>>(token, &self.key, &self.validation).ok()?.claims;
        let id = client_id(self.claims.subject(&claims)?);
        let facts =
            ClientFacts { authenticated: true, claims: claims.into_iter().collect::<BTreeMap<_, _>>() };
        Some(Client::known(id, Arc::new(facts)))
    }
}

impl ApiKey {
    /// An API key whose client is known by `name`.
    pub fn new(name: impl Into<String>, key: &str) -> Self {
        Self { name: name.into(), digest: Sha256::digest(key.as_bytes()).into() }
    }
}

impl Identity {
    /// `cookie_secret` has at least 32 bytes.
    pub fn new(cookie_secret: &[u8], tokens: Option<TokenRules>, api_keys: Vec<ApiKey>) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, cookie_secret), tokens, api_keys }
    }

    /// Who issues the tokens that are accepted, where the operator names one.
    pub(crate) fn issuer(&self) -> Option<&str> {
        self.tokens.as_ref()?.claims.issuer.as_deref()
    }

    /// Whether tokens or API keys are configured.
    pub(crate) fn can_verify(&self) -> bool {
        self.tokens.is_some() || !self.api_keys.is_empty()
    }

    /// A new client and its cookie; `None` without random numbers.
    pub(crate) fn new_client(&self) -> Option<(Client, String)> {
        let id = format!("{ANONYMOUS_PREFIX}{}", random_hex(ANONYMOUS_ID_BYTES)?);
        let cookie = format!("{id}.{}", self.sign(&id));
        Some((Client { is_new: true, ..Client::anonymous(id) }, cookie))
    }

    pub(crate) fn by_cookie(&self, cookie: &str) -> Option<Client> {
        let (id, signature) = cookie.split_once('.')?;
        let signature = unhex(signature)?;
        // Constant time.
        hmac::verify(&self.key, id.as_bytes(), &signature).ok()?;
        Some(Client::anonymous(id))
    }

    pub(crate) fn by_bearer(&self, token: &str) -> Result<Client, BearerError> {
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        if let Some(key) = self.api_keys.iter().find(|key| key.digest.ct_eq(&digest).into()) {
            return Ok(Client::anonymous(format!("{KEY_PREFIX}{}", key.name)));
        }
        let Some(rules) = &self.tokens else {
            return Err(if self.can_verify() { BearerError::Invalid } else { BearerError::NotConfigured });
        };
        rules.verify_token(token).ok_or(BearerError::Invalid)
    }

    /// Whether it is an id that [`Identity::new_client`] makes.
    pub(crate) fn is_anonymous_id(id: &str) -> bool {
        let digits = id.strip_prefix(ANONYMOUS_PREFIX).unwrap_or_default();
        digits.len() == 2 * ANONYMOUS_ID_BYTES && digits.bytes().all(|letter| digit(letter).is_some())
    }

    /// The name of the API key that a client was identified by.
    pub(crate) fn key_name(client: &Client) -> Option<&str> {
        client.id.strip_prefix(KEY_PREFIX)
    }

    /// A program on this machine that sends a key where none is configured and keeps no cookie. The key verifies
    /// nothing, but it identifies the same program the next time.
    pub(crate) fn local_program(&self, key: &str) -> Client {
        let tag = self.sign(&format!("program {key}"));
        Client::anonymous(format!("p_{}", &tag[..32]))
    }

    /// Signs values for a purpose. The purpose and a line break come first: no header holds a line break, so a
    /// signature cannot be used as a cookie or for another purpose.
    pub(crate) fn sign_for(&self, purpose: &str, parts: &[&str]) -> String {
        self.sign(&format!("{purpose}\n{}", parts.join("\n")))
    }

    /// Verifies [`Identity::sign_for`] in constant time.
    pub(crate) fn is_signed_for(&self, purpose: &str, parts: &[&str], signature: &str) -> bool {
        let signed = format!("{purpose}\n{}", parts.join("\n"));
        unhex(signature).is_some_and(|tag| hmac::verify(&self.key, signed.as_bytes(), &tag).is_ok())
    }

    fn sign(&self, id: &str) -> String {
        hex(hmac::sign(&self.key, id.as_bytes()).as_ref())
    }
}

/// A signature as text.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

/// Maps a subject, which may be any text, to a client id. Two subjects never share one.
fn client_id(subject: &str) -> String {
    let is_plain = (1..=100).contains(&subject.len())
        && subject.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte));
    if is_plain {
        return format!("sub:{subject}");
    }
    format!("sub-hash:{}", sha256(subject.as_bytes()))
}

/// Parses exactly what [`hex`] writes of a signature, so that it has one form.
pub(crate) fn unhex(text: &str) -> Option<[u8; SIGNATURE_BYTES]> {
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
