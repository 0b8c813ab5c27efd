//! Cookies, tokens and API keys.

use jsonwebtoken::{EncodingKey, Header};
use quarterdeck_server::{ApiKey, Identity, Settings, TokenKey, TokenRules};
use serde_json::{Value, json};

use crate::world::{COOKIE_SECRET, World, now_ms};

#[tokio::test]
async fn a_cookie_is_set_once_and_honoured() {
    let world = World::new().await;
    let first = world.get("/api/me").send().await;
    let set = first.header("set-cookie").unwrap();
    assert!(set.contains("HttpOnly") && set.contains("SameSite=Lax") && !set.contains("Secure"), "{set}");
    let second = world.get("/api/me").with("cookie", &first.cookie().unwrap()).send().await;
    assert_eq!(second.header("set-cookie"), None);
    assert_eq!(second.json(), first.json());
}

#[tokio::test]
async fn a_tampered_cookie_makes_a_new_client() {
    let world = World::new().await;
    let cookie = world.new_client().await;
    let client = world.client_of(&cookie).await;
    let other = if cookie.ends_with('0') { '1' } else { '0' };
    let other_signature = format!("{}{other}", &cookie[..cookie.len() - 1]);
    let other_client = cookie.replacen("c_", "c_0", 1);
    for forged in [&*other_signature, &other_client, "quarterdeck_client=", "quarterdeck_client=é.é"] {
        let answer = world.get("/api/me").with("cookie", forged).send().await;
        assert_eq!(answer.status, 200);
        assert!(answer.cookie().is_some(), "{forged}");
        assert_ne!(answer.json()["clientId"], client.as_str());
    }
}

/// A server with token verification and one API key.
async fn with_tokens() -> World {
    let rules = TokenRules::new(TokenKey::Secret(b"shared"), None, Some("us")).unwrap();
    let keys = vec![ApiKey::new("ci", "sesame")];
    World::with_identity(Settings::default(), Identity::new(COOKIE_SECRET, Some(rules), keys)).await
}

fn token(claims: &Value, secret: &[u8]) -> String {
    jsonwebtoken::encode(&Header::default(), claims, &EncodingKey::from_secret(secret)).unwrap()
}

fn seconds(from_now: i64) -> i64 {
    now_ms() as i64 / 1_000 + from_now
}

#[tokio::test]
async fn the_subject_of_a_token_is_the_client() {
    let world = with_tokens().await;
    let valid = token(&json!({ "sub": "ann", "aud": "us", "exp": seconds(600) }), b"shared");
    let answer = world.get("/api/me").with("authorization", &format!("Bearer {valid}")).send().await;
    assert_eq!(answer.header("set-cookie"), None);
    let me = answer.json();
    assert_eq!((&me["clientId"], &me["authenticated"]), (&json!("sub:ann"), &json!(true)));
}

#[tokio::test]
async fn an_invalid_token_is_refused_in_every_error_format() {
    let world = with_tokens().await;
    let bad = [
        token(&json!({ "sub": "ann", "aud": "us", "exp": seconds(-600) }), b"shared"),
        token(&json!({ "sub": "ann", "aud": "them", "exp": seconds(600) }), b"shared"),
        token(&json!({ "sub": "ann", "aud": "us", "exp": seconds(600) }), b"another"),
        token(&json!({ "sub": "ann", "aud": "us" }), b"shared"),
        token(&json!({ "aud": "us", "exp": seconds(600) }), b"shared"),
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ.".to_owned(),
        "open".to_owned(),
    ];
    let message = "The bearer token is invalid or expired.";
    for bad in bad {
        let bearer = format!("Bearer {bad}");
        let own = world.get("/api/me").with("authorization", &bearer).send().await;
        assert_eq!(own.refusal(), (401, "AUTH".into(), message.into()));
        assert_eq!(own.header("www-authenticate"), Some("Bearer"));
        let openai = world.get("/v1/models").with("authorization", &bearer).send().await;
        assert_eq!(openai.refusal(), (401, "authentication_error".into(), message.into()));
    }
}

#[tokio::test]
async fn a_program_is_identified_by_its_api_key() {
    let world = with_tokens().await;
    let answer = world.get("/api/me").with("authorization", "bearer sesame").send().await;
    assert_eq!(answer.json()["clientId"], "key:ci");
    assert_eq!(answer.json()["authenticated"], false);
}

#[tokio::test]
async fn a_key_is_ignored_where_none_is_configured() {
    let world = World::new().await;
    let answer = world.get("/v1/models").with("authorization", "Bearer whatever").send().await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn metrics_are_for_operators_only() {
    let token = "an admin token";
    let settings = Settings { admin_token: Some(token.into()), is_loopback: false, ..Settings::default() };
    let world = World::with(settings).await;
    assert_eq!(world.get("/metrics").send().await.refusal().0, 401);
    let wrong = world.get("/metrics").with("authorization", "Bearer an admin tokem").send().await;
    assert_eq!(wrong.refusal().1, "AUTH");
    let right = world.get("/metrics").with("authorization", &format!("Bearer {token}")).send().await;
    assert_eq!((right.status, right.json()["sessions"]["active"].clone()), (200, json!(0)));

    let behind_a_proxy = World::with(Settings { trust_proxy: true, ..Settings::default() }).await;
    let answer = behind_a_proxy.get("/metrics").with("x-forwarded-for", "203.0.113.7").send().await;
    assert_eq!(answer.status, 401, "a proxy forwards other machines");
    assert_eq!(World::new().await.get("/metrics").send().await.status, 200, "on this machine");
}
