use proptest::prelude::*;

use super::*;

fn identity() -> Identity {
    Identity::new(b"thirty-two bytes for a test only", None, Vec::new())
}

/// A text with one character put in the place of another, left out, or put in.
fn changed() -> impl Strategy<Value = (prop::sample::Index, Change)> {
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
    fn a_cookie_with_one_change_is_nobodys((place, change) in changed()) {
        let (client, cookie) = identity().newcomer().unwrap();
        prop_assert_eq!(identity().by_cookie(&cookie).map(|known| known.id), Some(client.id));
        let forged = change.apply(&cookie, place);
        prop_assume!(forged != cookie);
        prop_assert!(identity().by_cookie(&forged).is_none(), "{} for {}", forged, cookie);
    }

    #[test]
    fn a_seal_with_one_change_is_broken((place, change) in changed(), session in "[a-z0-9_]{1,20}") {
        let seal = identity().seal("voice-resume", &["c_1", &session]);
        prop_assert!(identity().is_sealed("voice-resume", &["c_1", &session], &seal));
        let forged = change.apply(&seal, place);
        prop_assume!(forged != seal);
        prop_assert!(!identity().is_sealed("voice-resume", &["c_1", &session], &forged), "{}", forged);
    }

    #[test]
    fn a_signed_token_with_one_change_is_invalid((place, change) in changed()) {
        let rules = TokenRules::new(TokenKey::Secret(b"shared"), None, None).unwrap();
        let identity = Identity::new(b"thirty-two bytes for a test only", Some(rules), Vec::new());
        let claims = serde_json::json!({ "sub": "ann", "exp": 4_000_000_000_u64 });
        let key = jsonwebtoken::EncodingKey::from_secret(b"shared");
        let token = jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).unwrap();
        prop_assert!(identity.by_bearer(&token).is_ok());
        let forged = change.apply(&token, place);
        prop_assume!(forged != token);
        prop_assert_eq!(identity.by_bearer(&forged).err(), Some(NotProved::Invalid), "{}", forged);
    }

    #[test]
    fn an_api_key_with_one_change_is_invalid((place, change) in changed()) {
        let key = "0123456789abcdef0123456789abcdef";
        let identity = Identity::new(b"thirty-two bytes for a test only", None, vec![ApiKey::new("ci", key)]);
        prop_assert!(identity.by_bearer(key).is_ok());
        let forged = change.apply(key, place);
        prop_assume!(forged != key);
        prop_assert_eq!(identity.by_bearer(&forged).err(), Some(NotProved::Invalid));
    }
}
