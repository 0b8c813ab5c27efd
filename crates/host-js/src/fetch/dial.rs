//! Looks up names for the HTTP client, and lets it see only addresses that may be dialled.
//!
//! The client connects to the very addresses that were checked here. Looking a name up twice, once to check it and
//! once to dial it, would leave room for a second answer.

use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::AddressRule;

pub(crate) struct CheckedNames(pub(crate) Arc<AddressRule>);

impl Resolve for CheckedNames {
    fn resolve(&self, name: Name) -> Resolving {
        let rule = self.0.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // One private address among public ones is a name that cannot be trusted at all.
            for address in &found {
                rule.check(address.ip())?;
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
