//! Which version a new session gets. A pure rule over plain facts, so that any choice can be repeated.
//!
//! The kinds of rules are tried in a fixed order, the most specific first: a header from a trusted key, claims,
//! organisations, percentages, and the rest. Within a kind the first rule that fits counts.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::claim::RequiredClaim;

/// How many rules of one kind there may be.
const MAX_RULES: usize = 100;
const MAX_NAME_BYTES: usize = 200;
/// The clients are spread over this many buckets: hundredths of a percent.
const BUCKETS: u64 = 10_000;

/// The rules by which new sessions get their versions, as operators set them. Versions are named by their digests.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Rollout {
    /// The API keys whose requests may name the version in a header.
    pub header_from: Vec<String>,
    pub claims: Vec<ClaimRule>,
    pub organisations: Vec<OrganisationRule>,
    pub shares: Vec<Share>,
    /// What all others get; absent for the artifact that the server was started with.
    pub rest: Option<String>,
}

/// A version for clients with a claim: `staff`, or `role=staff`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimRule {
    pub claim: String,
    pub version: String,
}

/// A version for the clients of an organisation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrganisationRule {
    pub organisation: String,
    pub version: String,
}

/// A version for a part of all clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    pub percent: Percent,
    pub version: String,
}

/// A part of all clients, in steps of a hundredth of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Percent(u16);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a percentage is a number from 0.01 to 100 with at most two decimal places, such as 30 or 2.5")]
pub struct NotAPercentage;

impl TryFrom<f64> for Percent {
    type Error = NotAPercentage;

    fn try_from(percent: f64) -> Result<Self, NotAPercentage> {
        let hundredths = (percent * 100.0).round();
        let is_exact = (percent * 100.0 - hundredths).abs() < 1e-6;
        if !is_exact || !(1.0..=BUCKETS as f64).contains(&hundredths) {
            return Err(NotAPercentage);
        }
        Ok(Self(hundredths as u16))
    }
}

impl From<Percent> for f64 {
    fn from(percent: Percent) -> Self {
        Self::from(percent.0) / 100.0
    }
}

impl FromStr for Percent {
    type Err = NotAPercentage;

    fn from_str(text: &str) -> Result<Self, NotAPercentage> {
        let number = text.trim().trim_end_matches('%').trim_end();
        number.parse::<f64>().map_err(|_| NotAPercentage)?.try_into()
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", f64::from(*self))
    }
}

/// Why rules cannot be used as they are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RolloutError {
    #[error("the percentages add up to {total} %; let them be 100 % at the most, what is left gets `rest`")]
    OverAHundred { total: String },
    #[error("`{claim}` is no claim; write its name, or name=value")]
    Claim { claim: String },
    #[error("a rule names an empty or overlong key or organisation; use 1 to {MAX_NAME_BYTES} bytes")]
    Name,
    #[error("there are more than {MAX_RULES} rules of one kind; remove some")]
    TooMany,
}

/// The client of a new session, as far as rules look at it.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The client's id, which its place among the percentages follows from.
    pub client: &'a str,
    /// The claims of a verified token.
    pub claims: &'a BTreeMap<String, Value>,
    /// The client's organisation, from a verified token.
    pub organisation: Option<&'a str>,
    /// The version that a header names, with the verified key of the request.
    pub requested: Option<&'a RequestedVersion>,
}

/// A version that a request names in a header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedVersion {
    /// The name of the API key that the request was verified by.
    pub key: String,
    /// As the header has it: a digest, the beginning of one, or a version.
    pub version: String,
}

/// What the rules say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice<'a> {
    /// What a header names, if there is such a version.
    Requested(&'a str),
    Version(&'a str, PinReason),
    /// The rest.
    Rest,
}

/// The kind of rule that a session got its version by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PinReason {
    Header,
    Claim,
    Organisation,
    Percentage,
    Rest,
}

impl PinReason {
    /// As audit lines have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Claim => "claim",
            Self::Organisation => "organisation",
            Self::Percentage => "percentage",
            Self::Rest => "rest",
        }
    }
}

impl Rollout {
    /// Everything for one version; `None` for the artifact that the server was started with.
    pub fn all(version: Option<String>) -> Self {
        Self { rest: version, ..Self::default() }
    }

    /// What a new session gets. Rules for versions that take no new sessions are passed over.
    pub(super) fn choose<'a>(
        &'a self,
        candidate: &Candidate<'a>,
        takes_sessions: impl Fn(&str) -> bool,
    ) -> Choice<'a> {
        let trusted = candidate.requested.filter(|requested| self.header_from.contains(&requested.key));
        if let Some(requested) = trusted {
            return Choice::Requested(&requested.version);
        }
        let has_claim = |rule: &&ClaimRule| {
            let required = rule.claim.parse::<RequiredClaim>();
            required.is_ok_and(|required| required.is_met_by_claims(candidate.claims))
                && takes_sessions(&rule.version)
        };
        if let Some(rule) = self.claims.iter().find(has_claim) {
            return Choice::Version(&rule.version, PinReason::Claim);
        }
        let is_member = |rule: &&OrganisationRule| {
            candidate.organisation == Some(rule.organisation.as_str()) && takes_sessions(&rule.version)
        };
        if let Some(rule) = self.organisations.iter().find(is_member) {
            return Choice::Version(&rule.version, PinReason::Organisation);
        }
        match self.share(candidate.client).filter(|share| takes_sessions(&share.version)) {
            Some(share) => Choice::Version(&share.version, PinReason::Percentage),
            None => Choice::Rest,
        }
    }

    /// The share that a client falls into. Each begins where the one before it ends, so that a share that is made
    /// larger keeps the clients that it has, as long as those before it stay the same.
    fn share(&self, client: &str) -> Option<&Share> {
        let bucket = bucket(client);
        let mut end = 0;
        self.shares.iter().find(|share| {
            end += u64::from(share.percent.0);
            bucket < end
        })
    }

    /// Whether a rule names the version.
    pub(crate) fn names(&self, digest: &str) -> bool {
        self.versions().any(|version| version == digest)
    }

    /// Every version that is named, more than once where several rules do.
    pub fn versions(&self) -> impl Iterator<Item = &str> {
        let claims = self.claims.iter().map(|rule| rule.version.as_str());
        let organisations = self.organisations.iter().map(|rule| rule.version.as_str());
        let shares = self.shares.iter().map(|share| share.version.as_str());
        claims.chain(organisations).chain(shares).chain(self.rest.as_deref())
    }

    /// Replaces every version by what it stands for, so that an operator may write a short form.
    pub(super) fn resolve<E>(mut self, mut digest: impl FnMut(&str) -> Result<String, E>) -> Result<Self, E> {
        let claims = self.claims.iter_mut().map(|rule| &mut rule.version);
        let organisations = self.organisations.iter_mut().map(|rule| &mut rule.version);
        let shares = self.shares.iter_mut().map(|share| &mut share.version);
        for version in claims.chain(organisations).chain(shares).chain(self.rest.as_mut()) {
            *version = digest(version)?;
        }
        Ok(self)
    }

    /// Checks everything but the versions.
    pub fn check(&self) -> Result<(), RolloutError> {
        let lengths =
            [self.header_from.len(), self.claims.len(), self.organisations.len(), self.shares.len()];
        if lengths.iter().any(|length| *length > MAX_RULES) {
            return Err(RolloutError::TooMany);
        }
        let organisations = self.organisations.iter().map(|rule| &rule.organisation);
        let claims = self.claims.iter().map(|rule| &rule.claim);
        if self.header_from.iter().chain(organisations).chain(claims.clone()).any(|name| is_bad_name(name)) {
            return Err(RolloutError::Name);
        }
        for claim in claims {
            claim.parse::<RequiredClaim>().map_err(|_| RolloutError::Claim { claim: claim.clone() })?;
        }
        let total: u64 = self.shares.iter().map(|share| u64::from(share.percent.0)).sum();
        if total > BUCKETS {
            return Err(RolloutError::OverAHundred { total: (total as f64 / 100.0).to_string() });
        }
        Ok(())
    }
}

fn is_bad_name(name: &str) -> bool {
    name.trim().is_empty() || name.len() > MAX_NAME_BYTES
}

/// The place of a client among all, the same on every machine and after every restart.
fn bucket(client: &str) -> u64 {
    // The prefix keeps the places independent of other hashes of ids.
    let hash = Sha256::new().chain_update(b"quarterdeck rollout\n").chain_update(client).finalize();
    let (first, _) = hash.split_first_chunk::<8>().expect("a SHA-256 has 32 bytes");
    u64::from_be_bytes(*first) % BUCKETS
}

#[cfg(test)]
mod tests;
