//! What a token must say once its signature holds.
//!
//! The library that verifies signatures passes over claims that are missing or of another type. Here a claim that is
//! configured is required, and one that is there has the type that RFC 7519 gives it.

use serde_json::{Map, Value};

/// The longest subject. A longer one is no name of a client.
const MAX_SUBJECT_BYTES: usize = 1_024;

/// What the claims of a token are held to, beside its times.
#[derive(Debug, Default)]
pub(crate) struct ClaimRules {
    pub(crate) issuer: Option<String>,
    pub(crate) audience: Option<String>,
}

impl ClaimRules {
    /// The subject of a token whose claims hold.
    pub(crate) fn subject<'a>(&self, claims: &'a Map<String, Value>) -> Option<&'a str> {
        let is_issuer = |wanted: &String| claims.get("iss").and_then(Value::as_str) == Some(wanted);
        let is_audience = |wanted: &String| claims.get("aud").is_some_and(|aud| names(aud, wanted));
        let holds = self.issuer.as_ref().is_none_or(is_issuer)
            && self.audience.as_ref().is_none_or(is_audience)
            && is_number(claims.get("exp"))
            && claims.get("nbf").is_none_or(|nbf| is_number(Some(nbf)));
        let subject = claims.get("sub").and_then(Value::as_str).filter(|_| holds)?;
        // All tokens without a name would be one client.
        let is_name = subject.len() <= MAX_SUBJECT_BYTES && !subject.trim().is_empty();
        is_name.then_some(subject)
    }
}

/// Whether an audience is ours, or a list of texts with ours among them.
fn names(audience: &Value, wanted: &str) -> bool {
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

/// Whether the head of a token asks for something that must be understood. Nothing of the kind is understood here, and
/// RFC 7515 wants such a token refused.
pub(crate) fn is_critical(token: &str) -> bool {
    let head = token.split('.').next().unwrap_or_default();
    let head = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(head).ok();
    let head = head.and_then(|head| serde_json::from_slice::<Map<String, Value>>(&head).ok());
    head.is_some_and(|head| head.contains_key("crit"))
}
