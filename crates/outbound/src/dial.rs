//! Looks up names for the HTTP client, and lets it see only addresses that may be dialled.
//!
//! The client connects to the very addresses that were checked here. Looking a name up twice, once to check it and
//! once to dial it, would leave room for a second answer.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::address::{AddressRule, Refusal, is_private_use};
use crate::private_host::{PrivateHost, PrivateName};

/// The addresses that a client may dial: by the rule for all handlers, or because an operator has opened them.
pub struct CheckedNames {
    /// The rule for all.
    pub rule: Arc<AddressRule>,
    /// What is opened beyond it.
    pub opened: Arc<OpenedHosts>,
}

impl Resolve for CheckedNames {
    fn resolve(&self, name: Name) -> Resolving {
        let (rule, opened) = (self.rule.clone(), self.opened.clone());
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let dialled = opened.addresses_to_dial(name.as_str(), found, &rule)?;
            Ok(Box::new(dialled.into_iter()) as Addrs)
        })
    }
}

/// What an operator has opened to a tool on one port.
#[derive(Debug, Default)]
pub struct OpenedHosts {
    names: Vec<String>,
    addresses: Vec<IpAddr>,
}

impl OpenedHosts {
    /// Those of a list that are on a port.
    pub fn on_port(port: u16, hosts: &[PrivateHost]) -> Self {
        let mut opened = Self::default();
        for host in hosts.iter().filter(|host| host.port == port) {
            match &host.host {
                PrivateName::Name(name) => opened.names.push(name.clone()),
                PrivateName::Address(address) => opened.addresses.push(*address),
            }
        }
        opened
    }

    /// Whether a name is opened.
    pub fn has_name(&self, name: &str) -> bool {
        let name = name.trim_end_matches('.');
        self.names.iter().any(|opened| opened.eq_ignore_ascii_case(name))
    }

    /// Whether an address is opened, by whatever name.
    pub fn has_address(&self, address: IpAddr) -> bool {
        self.addresses.contains(&address.to_canonical())
    }

    fn opens(&self, name: &str, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.has_address(address)
            || self.has_name(name)
                && match is_local_name(name) {
                    true => address.is_loopback(),
                    false => is_private_use(address),
                }
    }

    /// Which of the addresses that a name has right now may be dialled.
    fn addresses_to_dial(
        &self,
        name: &str,
        found: Vec<SocketAddr>,
        rule: &AddressRule,
    ) -> Result<Vec<SocketAddr>, Refusal> {
        let opened: Vec<_> = found.iter().copied().filter(|address| self.opens(name, address.ip())).collect();
        match found.first() {
            _ if !opened.is_empty() => return Ok(opened),
            // Something else now stands where the operator saw a private host.
            Some(address) if self.has_name(name) => return Err(Refusal::NotOpened(address.ip())),
            _ => {}
        }
        // One private address among public ones is a name that cannot be trusted at all.
        for address in &found {
            rule.check(address.ip())?;
        }
        Ok(found)
    }
}

/// Names that stand for this machine by definition (RFC 6761).
fn is_local_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Addresses;

    fn dialled(opened: &[&str], name: &str, found: &[&str]) -> Result<Vec<String>, String> {
        let opened: Vec<PrivateHost> = opened.iter().map(|text| text.parse().unwrap()).collect();
        let found = found.iter().map(|ip| SocketAddr::new(ip.parse().unwrap(), 0)).collect();
        let dialled = OpenedHosts::on_port(80, &opened).addresses_to_dial(
            name,
            found,
            &AddressRule::new(Addresses::Public),
        );
        dialled
            .map(|addresses| addresses.iter().map(|address| address.ip().to_string()).collect())
            .map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn an_opened_name_is_dialled_at_private_addresses_alone() {
        let opened = ["vault.internal:80"];
        for private in ["10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd00::5", "::ffff:10.1.2.3"] {
            assert_eq!(
                dialled(&opened, "Vault.internal", &[private]),
                Ok(vec![private.to_owned()]),
                "{private}"
            );
        }
        // The name is bound anew to this machine, to the cloud's metadata, or to the outside.
        for rebound in
            ["127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254", "fe80::1", "0.0.0.0", "1.1.1.1"]
        {
            let refusal = dialled(&opened, "vault.internal", &[rebound]).unwrap_err();
            assert!(refusal.contains("`private_hosts` does not open"), "{rebound}: {refusal}");
        }
        assert_eq!(
            dialled(&opened, "vault.internal", &["127.0.0.1", "10.0.0.1"]),
            Ok(vec!["10.0.0.1".into()])
        );
        assert!(dialled(&opened, "other.internal", &["10.1.2.3"]).unwrap_err().contains("public internet"));
        assert!(dialled(&["vault.internal:81"], "vault.internal", &["10.1.2.3"]).is_err(), "another port");
    }

    #[test]
    fn localhost_is_this_machine_and_nothing_else() {
        for loopback in ["127.0.0.1", "::1"] {
            assert_eq!(dialled(&["localhost:80"], "localhost", &[loopback]), Ok(vec![loopback.to_owned()]));
        }
        assert!(dialled(&["localhost:80"], "localhost", &["10.0.0.1"]).is_err());
    }

    #[test]
    fn an_opened_address_is_dialled_whatever_name_leads_to_it() {
        let opened = ["127.0.0.1:80", "169.254.169.254:80"];
        assert_eq!(dialled(&opened, "localhost", &["::1", "127.0.0.1"]), Ok(vec!["127.0.0.1".into()]));
        assert_eq!(dialled(&opened, "meta", &["169.254.169.254"]), Ok(vec!["169.254.169.254".into()]));
        assert!(dialled(&opened, "localhost", &["127.0.0.2"]).is_err());
        assert_eq!(dialled(&opened, "public", &["1.1.1.1"]), Ok(vec!["1.1.1.1".into()]));
    }
}
