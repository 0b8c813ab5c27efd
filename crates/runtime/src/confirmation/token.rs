//! Tokens: unguessable, used once, and stored only as a hash.

use quarterdeck_contracts::{ConfirmationToken, sha256};

/// 192 bits from the operating system's generator.
const BYTES: usize = 24;

/// A new token, or nothing when the operating system has no randomness to give.
pub(crate) fn new_token() -> Result<ConfirmationToken, getrandom::Error> {
    let mut bytes = [0_u8; BYTES];
    getrandom::fill(&mut bytes)?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(ConfirmationToken::new(format!("qdc_{hex}")))
}

/// What is stored of a token, and what it is looked up by: comparing hashes reveals nothing about the token.
pub(crate) fn hash(token: &str) -> String {
    sha256(token.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn tokens_differ_and_do_not_show_themselves() {
        let tokens: Vec<_> = (0..1_000).map(|_| new_token().unwrap()).collect();
        let distinct: BTreeSet<_> = tokens.iter().map(|token| token.expose()).collect();
        assert_eq!(distinct.len(), tokens.len());
        assert!(tokens.iter().all(|token| token.expose().len() == 4 + BYTES * 2));
        assert!(!format!("{:?}", tokens[0]).contains(tokens[0].expose()));
    }
}
