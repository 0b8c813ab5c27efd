use proptest::prelude::*;

use super::*;

fn identity() -> Identity {
    Identity::new(b"thirty-two bytes for a test only", None, Vec::new())
}

/// One character replaced, inserted or removed.
fn any_change() -> impl Strategy<Value = (prop::sample::Index, Change)> {
    let letter = prop_oneof![any::<char>(), proptest::char::range(' ', '~')];
    let change = prop_oneof![
        letter.clone().prop_map(Change::Replace),
        letter.prop_map(Change::Insert),
        Just(Change::Remove),
        Just(Change::OtherCase),
    ];
    (any::<prop::sample::Index>(), change)
}

#[derive(Debug, Clone)]
enum Change {
    Replace(char),
    Insert(char),
    Remove,
    OtherCase,
}

impl Change {
    fn apply(&self, text: &str, place: prop::sample::Index) -> String {
        let mut letters: Vec<char> = text.chars().collect();
        let place = place.index(letters.len());
        match self {
            Self::Replace(letter) => letters[place] = *letter,
            Self::Insert(letter) => letters.insert(place, *letter),
            Self::Remove => drop(letters.remove(place)),
            Self::OtherCase if letters[place].is_lowercase() => letters[place].make_ascii_uppercase(),
            Self::OtherCase => letters[place].make_ascii_lowercase(),
        }
        letters.into_iter().collect()
    }
}

proptest! {
    #[test]
    fn a_cookie_with_one_change_is_invalid((place, change) in any_change()) {
        let (client, cookie) = identity().new_client().unwrap();
        prop_assert_eq!(identity().by_cookie(&cookie).map(|known| known.id), Some(client.id));
        let forged = change.apply(&cookie, place);
        prop_assume!(forged != cookie);
        prop_assert!(identity().by_cookie(&forged).is_none(), "{} for {}", forged, cookie);
    }

    #[test]
    fn a_signature_with_one_change_is_invalid((place, change) in any_change(), session in "[a-z0-9_]{1,20}") {
        let signature = identity().sign_for("voice-resume", &["c_1", &session]);
        prop_assert!(identity().is_signed_for("voice-resume", &["c_1", &session], &signature));
        let forged = change.apply(&signature, place);
        prop_assume!(forged != signature);
        prop_assert!(!identity().is_signed_for("voice-resume", &["c_1", &session], &forged), "{}", forged);
    }

    #[test]
    fn a_signed_token_with_one_change_is_invalid((place, change) in any_change()) {
        let rules = TokenRules::new(TokenKey::Secret(b"shared"), None, None).unwrap();
        let identity = Identity::new(b"thirty-two bytes for a test only", Some(rules), Vec::new());
        let claims = serde_json::json!({ "sub": "ann", "exp": 4_000_000_000_u64 });
        let key = jsonwebtoken::EncodingKey::from_secret(b"shared");
        let token = jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).unwrap();
        prop_assert!(identity.by_bearer(&token).is_ok());
        let forged = change.apply(&token, place);
        prop_assume!(forged != token);
        prop_assert_eq!(identity.by_bearer(&forged).err(), Some(BearerError::Invalid), "{}", forged);
    }

    #[test]
    fn an_api_key_with_one_change_is_invalid((place, change) in any_change()) {
        let key = "0123456789abcdef0123456789abcdef";
        let identity = Identity::new(b"thirty-two bytes for a test only", None, vec![ApiKey::new("ci", key)]);
        prop_assert!(identity.by_bearer(key).is_ok());
        let forged = change.apply(key, place);
        prop_assume!(forged != key);
        prop_assert_eq!(identity.by_bearer(&forged).err(), Some(BearerError::Invalid));
    }
}
