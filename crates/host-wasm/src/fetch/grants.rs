//! What an operator grants to one tool: its secrets, and the private hosts that it may reach.

use std::collections::BTreeMap;

use quarterdeck_outbound::{PrivateHost, SecretText};

/// What an operator grants to one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolGrants {
    /// The secrets that the tool's definition names. One that is missing here fails the requests that need it.
    pub secrets: BTreeMap<String, SecretText>,
    /// Hosts beyond the public internet that the tool may reach, if its definition names them under `network`.
    pub private_hosts: Vec<PrivateHost>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print_itself() {
        let grants = ToolGrants {
            secrets: [("API_KEY".to_owned(), SecretText::from("s3cret"))].into(),
            ..ToolGrants::default()
        };
        assert!(!format!("{grants:?}").contains("s3cret"));
    }
}
