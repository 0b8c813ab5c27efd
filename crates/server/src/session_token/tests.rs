use proptest::prelude::*;

use super::*;

const NOW_MS: u64 = 1_760_000_000_000;
const DAY_MS: u64 = 24 * 3_600_000;
const SHOP: &str = "https://shop.example";

fn identity(secret: u8) -> Identity {
    Identity::new(&[secret; 32], None, Vec::new())
}

fn check(origin: &str, token: &str, now_ms: u64) -> Result<SessionToken, SessionTokenError> {
    SessionToken::verify(&identity(1), origin, token, now_ms)
}

fn any_token() -> impl Strategy<Value = SessionToken> {
    ("c_[0-9a-f]{32}", proptest::option::of("[A-Za-z0-9._:@-]{1,128}"), 0..NOW_MS * 2)
        .prop_map(|(client, session, issued_ms)| SessionToken { client, session, issued_ms })
}

proptest! {
    #[test]
    fn a_session_token_is_valid_for_its_origin_and_a_day_and_for_nothing_else(
        token in any_token(),
        (other, odd) in (any_token(), any::<String>()),
        (within, after) in (0..DAY_MS, 0..DAY_MS),
        (place, bit) in (any::<prop::sample::Index>(), 0_u32..8),
    ) {
        let invalid = Err(SessionTokenError::Invalid);
        let issued = token.issued_ms;
        let signed = token.sign(&identity(1), SHOP);
        prop_assert!(signed.len() <= MAX_SESSION_TOKEN_BYTES);
        prop_assert_eq!(check(SHOP, &signed, issued + within), Ok(token.clone()));
        prop_assert_eq!(check(SHOP, &signed, issued + DAY_MS + after), Err(SessionTokenError::Expired));
        // Another origin, another key, another purpose.
        for origin in ["https://evil.example", "https://shop.example:8443", "http://shop.example", "self", "", &odd] {
            prop_assert_eq!(check(origin, &signed, issued), invalid.clone());
        }
        prop_assert_eq!(check(SHOP, &token.sign(&identity(2), SHOP), issued), invalid.clone());
        let ticket = identity(1).sign_for("voice-ticket", &[SHOP, &token.to_string()]);
        prop_assert_eq!(check(SHOP, &format!("{token}~{ticket}"), issued), invalid.clone());
        // The signature of one token under the words of another.
        let signature = signed.rsplit_once('~').unwrap().1;
        let moved = format!("{other}~{signature}");
        prop_assert!(other == token || check(SHOP, &moved, other.issued_ms) == invalid);
        // Any bit flipped, any end cut off, anything added.
        let mut bytes = signed.clone().into_bytes();
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << bit;
        if let Ok(changed) = String::from_utf8(bytes) {
            prop_assert_eq!(check(SHOP, &changed, issued), invalid.clone());
        }
        prop_assert_eq!(check(SHOP, &signed[..place], issued), invalid.clone());
        for added in [format!("{signed}~"), format!(" {signed}"), format!("{signed} "), signed.to_uppercase(), odd] {
            prop_assert_eq!(check(SHOP, &added, issued), invalid.clone());
        }
    }

    #[test]
    fn what_is_read_of_a_session_token_has_one_spelling(text in "qds1~c_[0-9a-f]{30,33}~[a-z0-9~ ]{0,6}~[+0-9]{0,21}~[0-9a-f~]{0,66}") {
        if let Some((token, signature)) = SessionToken::parse(&text) {
            prop_assert_eq!(format!("{token}~{signature}"), text);
        }
    }
}

#[test]
fn a_session_token_from_the_future_is_refused() {
    let client = format!("c_{}", "0".repeat(32));
    let token = |issued_ms| SessionToken { client: client.clone(), session: None, issued_ms };
    let signed = |issued_ms| token(issued_ms).sign(&identity(1), SHOP);
    assert!(check(SHOP, &signed(NOW_MS + 60_000), NOW_MS).is_ok(), "another node's clock");
    assert_eq!(check(SHOP, &signed(NOW_MS + 600_000), NOW_MS), Err(SessionTokenError::Expired));
    assert_eq!(check(SHOP, &signed(u64::MAX), NOW_MS), Err(SessionTokenError::Expired));
}

#[test]
fn a_session_token_names_an_anonymous_client_alone() {
    for client in ["key:ann", "sub:ann", "p_0123456789abcdef0123456789abcdef", "c_1", "", "c_\n"] {
        let token = SessionToken { client: client.into(), session: None, issued_ms: NOW_MS };
        assert_eq!(
            check(SHOP, &token.sign(&identity(1), SHOP), NOW_MS),
            Err(SessionTokenError::Invalid),
            "{client}"
        );
    }
}
