//! Tokens: unguessable, used once, and stored only as a hash.

use quarterdeck_contracts::{ConfirmationCode, ConfirmationToken, sha256};

/// 192 bits from the operating system's generator.
const BYTES: usize = 24;

/// A new token, or nothing when the operating system has no randomness to give.
pub(crate) fn new_token() -> Result<ConfirmationToken, getrandom::Error> {
    let mut bytes = [0_u8; BYTES];
    getrandom::fill(&mut bytes)?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(ConfirmationToken::new(format!("qdc_{hex}")))
}

/// A new code to be said. It is no secret by itself: it counts only with the token, and a few times.
pub(crate) fn new_code() -> Result<ConfirmationCode, getrandom::Error> {
    // The last numbers of the range would make some codes likelier than others.
    const EVEN: u32 = u32::MAX - u32::MAX % 10_000;
    loop {
        let number = getrandom::u32()?;
        if number < EVEN {
            return Ok(ConfirmationCode::new((number % 10_000) as u16));
        }
    }
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

    #[test]
    fn codes_have_four_digits_and_differ() {
        let codes: Vec<_> = (0..1_000).map(|_| new_code().unwrap()).collect();
        let is_code = |code: &str| code.len() == 4 && code.bytes().all(|byte| byte.is_ascii_digit());
        assert!(codes.iter().all(|code| is_code(code.expose())));
        let distinct: BTreeSet<_> = codes.iter().map(|code| code.expose()).collect();
        // A thousand out of ten thousand: some twice, most once.
        assert!(distinct.len() > 800, "{}", distinct.len());
        assert!(!format!("{:?}", codes[0]).contains(codes[0].expose()));
    }
}
