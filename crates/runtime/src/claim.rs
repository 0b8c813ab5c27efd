//! A claim that a client's verified token must carry.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::gates::ClientFacts;

/// A claim that a site requires of a client: `staff` (a claim that is true) or `role=staff` (one that is this text, or
/// lists it).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredClaim {
    name: String,
    value: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a claim is written as its name, or as name=value")]
pub struct NotAClaim;

impl RequiredClaim {
    /// Whether the client has it. Claims come from verified tokens only.
    pub fn is_met_by(&self, client: &ClientFacts) -> bool {
        self.is_met_by_claims(&client.claims)
    }

    pub(crate) fn is_met_by_claims(&self, claims: &BTreeMap<String, Value>) -> bool {
        match (claims.get(&self.name), &self.value) {
            (Some(Value::Bool(claim)), None) => *claim,
            (Some(Value::String(claim)), Some(value)) => claim == value,
            (Some(Value::Array(claims)), Some(value)) => claims.iter().any(|claim| claim == value),
            _ => false,
        }
    }
}

impl FromStr for RequiredClaim {
    type Err = NotAClaim;

    fn from_str(text: &str) -> Result<Self, NotAClaim> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (text.trim(), None),
        };
        if name.is_empty() || value.is_some_and(str::is_empty) {
            return Err(NotAClaim);
        }
        Ok(Self { name: name.to_owned(), value: value.map(str::to_owned) })
    }
}

impl fmt::Display for RequiredClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}={value}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn claim_is_met_by_what_it_says_and_by_nothing_that_looks_like_it() {
        for (required, claim, expected) in [
            ("staff", json!(true), true),
            ("staff", json!(false), false),
            ("staff", json!("true"), false),
            ("staff", json!(1), false),
            ("role=staff", json!("staff"), true),
            ("role=staff", json!(["guest", "staff"]), true),
            ("role=staff", json!("staff2"), false),
            ("role=staff", json!(true), false),
            ("role=staff", json!({ "staff": true }), false),
        ] {
            let required: RequiredClaim = required.parse().unwrap();
            let claims = BTreeMap::from([(required.name.clone(), claim.clone())]);
            let client = ClientFacts { authenticated: true, claims };
            assert_eq!(required.is_met_by(&client), expected, "{required}: {claim}");
            assert!(!required.is_met_by(&ClientFacts::default()));
        }
        for wrong in ["", " ", "=staff", "role=", "="] {
            assert_eq!(wrong.parse::<RequiredClaim>(), Err(NotAClaim), "{wrong:?}");
        }
    }
}
