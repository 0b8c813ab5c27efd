//! Whatever stands in `X-Quarterdeck-Session`: what is read of it has one spelling, and nothing that was not signed here for
//! that origin is accepted.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quarterdeck_server::{Identity, SessionToken, SessionTokenError};

const ORIGIN: &str = "https://shop.example";
const NOW_MS: u64 = 1_760_000_000_000;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let identity = Identity::new(b"thirty-two bytes for a test only", None, Vec::new());
    let refused = SessionToken::verify(&identity, ORIGIN, text, NOW_MS);
    assert_eq!(refused, Err(SessionTokenError::Invalid), "a signature was guessed");
    let Some((token, signature)) = SessionToken::parse(text) else { return };
    assert_eq!(format!("{token}~{signature}"), text);
    // What was read can be signed, and then holds for that origin alone.
    let signed = token.sign(&identity, ORIGIN);
    assert_eq!(SessionToken::verify(&identity, ORIGIN, &signed, token.issued_ms), Ok(token.clone()));
    let elsewhere = SessionToken::verify(&identity, "https://evil.example", &signed, token.issued_ms);
    assert_eq!(elsewhere, Err(SessionTokenError::Invalid));
});
