//! The command line of `quarterdeck registry`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use quarterdeck_runtime::Percent;

use super::Format;
use super::operator::RunningServer;

#[derive(Debug, Subcommand)]
pub(crate) enum RegistryCommand {
    /// List the versions that a running server has, and what their sessions have come to
    #[command(
        after_help = "Example:\n  quarterdeck registry list\n  quarterdeck registry list --format json"
    )]
    List(RegistryListOptions),
    /// Load a version beside the others and give it to all new sessions
    #[command(
        after_help = "Sessions keep the version that they have. The digest is what `quarterdeck build` prints; the handlers \
                      travel with the artifact. A version that was activated before is stored: its digest alone brings it \
                      back, which is how to roll back. A locked server takes only the digests of `tools.allowed_digests`.\n\n\
                      Example:\n  quarterdeck registry activate 287d0f294a1adbde214ec2740252bbd0e398933917caffac21b1377724247a3a \
                      --artifact tools/tool_registry.json\n  \
                      quarterdeck registry activate 287d0f294a1adbde214ec2740252bbd0e398933917caffac21b1377724247a3a"
    )]
    Activate(RegistryActivateOptions),
    /// Give a version to no new session, and drop it when its last session ends
    #[command(after_help = "Example:\n  quarterdeck registry retire 1.0.287d0f29")]
    Retire(RegistryRetireOptions),
    /// Show or set which new sessions get which version
    #[command(
        after_help = "Rules are tried in this order, and the first that fits counts: the header X-Quarterdeck-Version of a \
                      trusted key, claims, organisations, percentages (by a stable hash of the client), the rest. What is given \
                      replaces all rules that were set before; without `--rest`, the rest stays. A version is written as in \
                      `quarterdeck registry list`.\n\n\
                      Example:\n  quarterdeck registry rollout\n  \
                      quarterdeck registry rollout --percent 30:1.0.287d0f29 --rest 1.0.3fa9c2e1\n  \
                      quarterdeck registry rollout --claim role=staff:1.0.287d0f29 --organisation acme:1.0.287d0f29 --header-from ci"
    )]
    Rollout(RegistryRolloutOptions),
}

#[derive(Debug, Args)]
pub(crate) struct RegistryListOptions {
    #[command(flatten)]
    pub(crate) server: RunningServer,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct RegistryActivateOptions {
    /// The digest that the artifact must have
    #[arg(value_name = "SHA256")]
    pub(crate) digest: String,
    /// The artifact; leave it out for a version that the server has stored
    #[arg(long, value_name = "FILE")]
    pub(crate) artifact: Option<PathBuf>,
    /// The folder with the handlers that the artifact was built from [default: the artifact's folder]
    #[arg(long, value_name = "DIR", requires = "artifact")]
    pub(crate) tools: Option<PathBuf>,
    /// Load it, and leave the rollout as it is
    #[arg(long)]
    pub(crate) only_load: bool,
    #[command(flatten)]
    pub(crate) server: RunningServer,
}

#[derive(Debug, Args)]
pub(crate) struct RegistryRetireOptions {
    /// The version, its digest, or at least the first eight digits of it
    pub(crate) version: String,
    #[command(flatten)]
    pub(crate) server: RunningServer,
}

#[derive(Debug, Args)]
pub(crate) struct RegistryRolloutOptions {
    /// An API key whose requests may name the version in the header X-Quarterdeck-Version
    #[arg(long, value_name = "KEY")]
    pub(crate) header_from: Vec<String>,
    /// A version for clients with a claim
    #[arg(long, value_name = "CLAIM:VERSION")]
    pub(crate) claim: Vec<Rule<String>>,
    /// A version for the clients of an organisation (`versions.organisation_claim`)
    #[arg(long, value_name = "NAME:VERSION")]
    pub(crate) organisation: Vec<Rule<String>>,
    /// A version for a part of all clients
    #[arg(long, value_name = "PERCENT:VERSION")]
    pub(crate) percent: Vec<Rule<Percent>>,
    /// The version for all others; `start` is the one that the server was started with
    #[arg(long, value_name = "VERSION")]
    pub(crate) rest: Option<String>,
    #[command(flatten)]
    pub(crate) server: RunningServer,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

impl RegistryRolloutOptions {
    /// Whether the rules are to be shown, not set.
    pub(crate) fn is_question(&self) -> bool {
        self.header_from.is_empty()
            && self.claim.is_empty()
            && self.organisation.is_empty()
            && self.percent.is_empty()
            && self.rest.is_none()
    }
}

/// `WHAT:VERSION`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rule<T> {
    pub(crate) of: T,
    pub(crate) version: String,
}

impl<T: FromStr<Err: std::fmt::Display>> FromStr for Rule<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A claim may hold a colon, and a version does not.
        let (of, version) = text.rsplit_once(':').ok_or("write it with a colon before the version")?;
        if of.trim().is_empty() || version.trim().is_empty() {
            return Err("something must stand before and after the colon".into());
        }
        let of = of.trim().parse().map_err(|error: T::Err| error.to_string())?;
        Ok(Self { of, version: version.trim().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_split_at_their_last_colon() {
        let claim: Rule<String> = "sub=urn:x:1.0.3fa9c2e1".parse().unwrap();
        assert_eq!((claim.of.as_str(), claim.version.as_str()), ("sub=urn:x", "1.0.3fa9c2e1"));
        let share: Rule<Percent> = "2.5:1.0.3fa9c2e1".parse().unwrap();
        assert_eq!(f64::from(share.of), 2.5);
        for wrong in ["", "30", ":1.0.3fa9c2e1", "30:", "a third:1.0.3fa9c2e1", "101:1.0.3fa9c2e1"] {
            assert!(wrong.parse::<Rule<Percent>>().is_err(), "{wrong}");
        }
    }
}
