//! Checks the claims of a token whose signature is valid.
//!
//! The signature library ignores claims that are missing or of another type. Here a configured claim is required, and a
//! present claim has the type of RFC 7519.

use serde_json::{Map, Value};

const MAX_SUBJECT_BYTES: usize = 1_024;

/// Required claims, besides the times.
#[derive(Debug, Default)]
pub(crate) struct ClaimRules {
    pub(crate) issuer: Option<String>,
    pub(crate) audience: Option<String>,
}

impl ClaimRules {
    /// The subject, if all claims are valid.
    pub(crate) fn subject<'a>(&self, claims: &'a Map<String, Value>) -> Option<&'a str> {
        let is_issuer = |wanted: &String| claims.get("iss").and_then(Value::as_str) == Some(wanted);
        let is_audience =
            |wanted: &String| claims.get("aud").is_some_and(|aud| includes_audience(aud, wanted));
        let is_valid = self.issuer.as_ref().is_none_or(is_issuer)
            && self.audience.as_ref().is_none_or(is_audience)
            && is_number(claims.get("exp"))
            && claims.get("nbf").is_none_or(|nbf| is_number(Some(nbf)));
        let subject = claims.get("sub").and_then(Value::as_str).filter(|_| is_valid)?;
        // All tokens without a subject would be one client.
        let is_usable = subject.len() <= MAX_SUBJECT_BYTES && !subject.trim().is_empty();
        is_usable.then_some(subject)
    }
}

/// An audience is a string, or a list of strings that includes it.
fn includes_audience(audience: &Value, wanted: &str) -> bool {
    match audience {
        Value::String(one) => one == wanted,
        Value::Array(several) => {
            several.iter().all(Value::is_string) && several.iter().any(|one| one == wanted)
        }
        _ => false,
    }
}

fn is_number(claim: Option<&Value>) -> bool {
    claim.is_some_and(Value::is_number)
}

/// Whether the header has `crit`. No critical extension is supported, so RFC 7515 requires such a token to be refused.
pub(crate) fn has_critical_header(token: &str) -> bool {
    let header = token.split('.').next().unwrap_or_default();
    let header = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(header).ok();
    let header = header.and_then(|header| serde_json::from_slice::<Map<String, Value>>(&header).ok());
    header.is_some_and(|header| header.contains_key("crit"))
}
