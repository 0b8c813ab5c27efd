//! Bearer tokens and their claims.

use base64_simd::URL_SAFE_NO_PAD as BASE64;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use quarterdeck_server::{Identity, Settings, TokenKey, TokenRules};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use crate::world::{COOKIE_SECRET, World, now_ms};

const SECRET: &[u8] = b"a shared secret of thirty-two bytes";

async fn world(rules: TokenRules) -> World {
    World::with_identity(Settings::default(), Identity::new(COOKIE_SECRET, Some(rules), Vec::new())).await
}

fn seconds(from_now: i64) -> i64 {
    now_ms() as i64 / 1_000 + from_now
}

fn signed(header: &Header, claims: &Value, secret: &[u8]) -> String {
    jsonwebtoken::encode(header, claims, &EncodingKey::from_secret(secret)).unwrap()
}

/// Valid claims with one changed; `null` removes it.
fn claims(name: &str, value: Value) -> Value {
    let mut claims = json!({ "sub": "ann", "iss": "issuer", "aud": "us", "exp": seconds(600) });
    claims[name] = value;
    let claims = claims.as_object_mut().unwrap();
    claims.retain(|_, value| !value.is_null());
    json!(claims)
}

async fn status(world: &World, path: &str, token: &str) -> u16 {
    world.get(path).with("authorization", &format!("Bearer {token}")).send().await.status
}

#[tokio::test]
async fn every_configured_claim_is_required_and_has_its_type() {
    let world = world(TokenRules::new(TokenKey::Secret(SECRET), Some("issuer"), Some("us")).unwrap()).await;
    let good = [
        claims("sub", json!("ann")),
        claims("aud", json!(["them", "us"])),
        claims("aud", json!(["us"])),
        claims("nbf", json!(seconds(-10))),
        claims("exp", json!(seconds(600) as f64 + 0.5)),
        claims("sub", json!("\u{e9} \u{1f419}")),
    ];
    for good in good {
        assert_eq!(
            status(&world, "/api/me", &signed(&Header::default(), &good, SECRET)).await,
            200,
            "{good}"
        );
    }
    let wrong_text = [json!(null), json!(""), json!(" "), json!(7), json!(true), json!({}), json!([])];
    let mut bad: Vec<Value> = Vec::new();
    for value in wrong_text {
        bad.extend(["sub", "iss", "aud"].map(|name| claims(name, value.clone())));
    }
    for value in
        [json!("them"), json!(["them"]), json!(["us", 7]), json!([["us"]]), json!("US"), json!({ "us": 1 })]
    {
        bad.push(claims("aud", value));
    }
    for value in [json!("another"), json!(["issuer"]), json!("issuer/"), json!("Issuer")] {
        bad.push(claims("iss", value));
    }
    bad.push(claims("sub", json!("x".repeat(1_025))));
    for value in
        [json!(null), json!("4000000000"), json!(seconds(-600)), json!(-1), json!([4_000_000_000_u64])]
    {
        bad.push(claims("exp", value));
    }
    for value in [json!(seconds(600)), json!("0"), json!(false), json!([])] {
        bad.push(claims("nbf", value));
    }
    for bad in bad {
        let token = signed(&Header::default(), &bad, SECRET);
        for path in ["/api/me", "/v1/models", "/voice", "/healthz"] {
            assert_eq!(status(&world, path, &token).await, 401, "{path} {bad}");
        }
    }
}

#[tokio::test]
async fn claims_that_are_not_configured_are_not_required() {
    let world = world(TokenRules::new(TokenKey::Secret(SECRET), None, None).unwrap()).await;
    for claims in [claims("iss", json!(null)), claims("aud", json!(null)), claims("aud", json!("them"))] {
        assert_eq!(
            status(&world, "/api/me", &signed(&Header::default(), &claims, SECRET)).await,
            200,
            "{claims}"
        );
    }
}

#[tokio::test]
async fn only_the_configured_algorithm_is_accepted() {
    let pair = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let public = Ed25519KeyPair::from_pkcs8(pair.as_ref()).unwrap();
    let public = public.public_key().as_ref();
    let der = [b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00".as_slice(), public].concat();
    let text = base64_simd::STANDARD.encode_to_string(&der);
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n");
    let world =
        world(TokenRules::new(TokenKey::Ed(pem.as_bytes()), Some("issuer"), Some("us")).unwrap()).await;
    let good = claims("sub", json!("ann"));
    let own = EncodingKey::from_ed_der(pair.as_ref());
    let eddsa = Header::new(Algorithm::EdDSA);
    let token = jsonwebtoken::encode(&eddsa, &good, &own).unwrap();
    assert_eq!(status(&world, "/api/me", &token).await, 200);

    let part = |value: Value| BASE64.encode_to_string(value.to_string());
    let body = part(good.clone());
    let signature = token.rsplit('.').next().unwrap();
    let mut forged = Vec::new();
    // The public key as the secret of another algorithm, in every form that it is known in.
    for secret in [pem.as_bytes(), pem.trim_end().as_bytes(), &der, public] {
        for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
            forged.push(signed(&Header::new(algorithm), &good, secret));
        }
    }
    for algorithm in ["none", "None", "NONE", "", "HS256", "RS256", "ES256"] {
        let head = part(json!({ "alg": algorithm, "typ": "JWT" }));
        forged.extend(["", signature].map(|signature| format!("{head}.{body}.{signature}")));
    }
    forged.push(format!("{}.{body}", part(json!({ "alg": "EdDSA" }))));
    forged.push(format!(".{body}.{signature}"));
    forged.push(format!("{token}.{signature}"));
    // A head that asks for something that must be understood, signed as it should be.
    let critical = format!("{}.{body}", part(json!({ "alg": "EdDSA", "crit": ["exp"], "exp": 1 })));
    let key = Ed25519KeyPair::from_pkcs8(pair.as_ref()).unwrap();
    let signature = BASE64.encode_to_string(key.sign(critical.as_bytes()));
    forged.push(format!("{critical}.{signature}"));
    for forged in forged {
        assert_eq!(status(&world, "/v1/models", &forged).await, 401, "{forged}");
    }
}
