//! Surfaces that require a credential.

use jsonwebtoken::{EncodingKey, Header};
use quarterdeck_server::{ApiKey, Identity, Network, RequiredCredentials, Settings, TokenKey, TokenRules};
use quarterdeck_websocket::UpgradeError;
use serde_json::json;

use crate::http::Answer;
use crate::voice::page::Page;
use crate::world::{COOKIE_SECRET, World};

const KEY: &str = "Bearer sesame-sesame-sesame";
const ADMIN: &str = "Bearer the-admin-token";

fn with_keys() -> Identity {
    Identity::new(COOKIE_SECRET, None, vec![ApiKey::new("ci", "sesame-sesame-sesame")])
}

fn with_tokens() -> Identity {
    let rules = TokenRules::new(TokenKey::Secret(b"shared"), None, None).unwrap();
    Identity::new(COOKIE_SECRET, Some(rules), Vec::new())
}

fn with_nothing() -> Identity {
    Identity::new(COOKIE_SECRET, None, Vec::new())
}

fn open() -> Settings {
    Settings { is_loopback: false, admin_token: Some("the-admin-token".into()), ..Settings::default() }
}

fn required(v1: Option<bool>, api: bool, voice: bool) -> Settings {
    Settings { required: RequiredCredentials { v1, api, voice, mcp: None }, ..open() }
}

async fn ask(world: &World, path: &str, bearer: Option<&str>) -> Answer {
    let ask = world.get(path);
    bearer.into_iter().fold(ask, |ask, bearer| ask.with("authorization", bearer)).send().await
}

#[tokio::test]
async fn beyond_this_machine_v1_requires_a_credential_once_one_is_configured() {
    let network: Network = "10.0.0.0/8".parse().unwrap();
    let proxied = [
        Settings { trust_proxy: true, ..Settings::default() },
        Settings { trusted_proxies: vec![network], ..Settings::default() },
    ];
    let cases = [
        (open(), with_keys(), 401),
        (open(), with_tokens(), 401),
        (open(), with_nothing(), 200),
        (Settings::default(), with_keys(), 200),
        (Settings::default(), with_tokens(), 200),
        (required(Some(false), false, false), with_keys(), 200),
        (
            Settings {
                required: RequiredCredentials { v1: Some(true), ..RequiredCredentials::default() },
                ..Settings::default()
            },
            with_keys(),
            401,
        ),
    ];
    let cases = cases.into_iter().chain(proxied.map(|settings| (settings, with_keys(), 401)));
    for (number, (settings, identity, status)) in cases.enumerate() {
        let world = World::with_identity(settings, identity).await;
        let answer = ask(&world, "/v1/models", None).await;
        assert_eq!(answer.status, status, "case {number}");
        for path in ["/api/me", "/healthz", "/openapi.json"] {
            assert_eq!(ask(&world, path, None).await.status, 200, "case {number}: {path} stays open");
        }
        if status == 401 {
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            let (_, kind, message) = answer.refusal();
            assert_eq!(kind, "authentication_error");
            assert!(message.contains("auth.required.v1") && message.contains("Bearer"), "{message}");
        }
    }
}

#[tokio::test]
async fn a_closed_surface_accepts_a_key_a_token_or_the_admin_token_but_no_cookie() {
    let world = World::with_identity(required(Some(true), true, true), with_keys()).await;
    for path in [
        "/v1/models",
        "/v1/models/quarterdeck",
        "/v1/nothing",
        "/v1",
        "/api/me",
        "/api/tools",
        "/api/nothing",
        "/voice",
    ] {
        assert_eq!(ask(&world, path, None).await.refusal().0, 401, "{path}");
        let forged = world.get(path).with("cookie", "quarterdeck_client=c_1.00").send().await;
        assert_eq!(forged.status, 401, "{path}");
        for bearer in [KEY, ADMIN] {
            assert_ne!(ask(&world, path, Some(bearer)).await.status, 401, "{path} {bearer}");
        }
    }
    // A cookie from before the surface was closed.
    let cookie = World::new().await.new_client().await;
    for path in ["/v1/models", "/api/me", "/voice"] {
        assert_eq!(world.get(path).with("cookie", &cookie).send().await.status, 401, "{path}");
    }
    for path in ["/", "/docs", "/healthz", "/readyz", "/openapi.json"] {
        assert_eq!(ask(&world, path, None).await.status, 200, "{path} belongs to no surface");
    }
    assert_eq!(ask(&world, "/api/deck/overview", None).await.status, 403, "operators only");
    assert_eq!(ask(&world, "/api/deck/overview", Some(ADMIN)).await.status, 200);
    let body = json!({ "messages": [{ "role": "user", "content": "hello" }] });
    assert_eq!(world.post("/v1/chat/completions", &body).send().await.status, 401);
    assert_eq!(world.post("/v1/chat/completions", &body).with("authorization", KEY).send().await.status, 200);
    assert_eq!(world.post("/api/chat", &json!({ "message": "hello" })).send().await.status, 401);

    let world = World::with_identity(required(None, true, false), with_tokens()).await;
    let claims = json!({ "sub": "ann", "exp": 4_000_000_000_u64 });
    let token =
        jsonwebtoken::encode(&Header::default(), &claims, &EncodingKey::from_secret(b"shared")).unwrap();
    for path in ["/v1/models", "/api/me"] {
        assert_eq!(ask(&world, path, None).await.status, 401);
        assert_eq!(ask(&world, path, Some(&format!("Bearer {token}"))).await.status, 200);
    }
}

#[tokio::test]
async fn closed_voice_opens_with_a_key_or_a_ticket_of_a_verified_client() {
    let world = World::with_identity(required(Some(false), false, true), with_keys()).await;
    let status =
        async |target: &str, headers: &[(&str, &str)]| match Page::try_open(&world, target, headers).await {
            Ok(_) => 101,
            Err(UpgradeError::Refused { status, .. }) => status,
            Err(error) => panic!("{error}"),
        };
    let cookie = world.new_client().await;
    assert_eq!(status("/voice", &[]).await, 401);
    assert_eq!(status("/voice", &[("cookie", &cookie)]).await, 401);
    assert_eq!(status("/voice?ticket=", &[]).await, 401);
    assert_eq!(status("/voice?ticket=eyJ9.00", &[("cookie", &cookie)]).await, 401);
    assert_eq!(status("/voice", &[("authorization", KEY)]).await, 101);
    let refused = world.post("/api/voice/ticket", &json!({})).with("cookie", &cookie).send().await;
    assert_eq!(refused.refusal().0, 401, "no ticket for a client that may not call");
    let ticket = world.post("/api/voice/ticket", &json!({})).with("authorization", KEY).send().await.json();
    let ticket = format!("/voice?ticket={}", ticket["ticket"].as_str().unwrap());
    assert_eq!(status(&ticket, &[]).await, 101);
    // A ticket of an anonymous client from an open server.
    let before = World::with_identity(open(), with_keys()).await;
    let ticket = before.post("/api/voice/ticket", &json!({})).send().await.json();
    let ticket = format!("/voice?ticket={}", ticket["ticket"].as_str().unwrap());
    assert_eq!(status(&ticket, &[]).await, 401);
}

#[tokio::test]
async fn a_preflight_needs_no_credential() {
    let settings =
        Settings { origins: vec!["https://shop.example".into()], ..required(Some(true), true, true) };
    let world = World::with_identity(settings, with_keys()).await;
    let preflight = world.ask("OPTIONS", "/v1/models").with("origin", "https://shop.example");
    let answer = preflight.with("access-control-request-method", "GET").send().await;
    assert_eq!(answer.status, 204);
    let refused = world.get("/v1/models").with("origin", "https://shop.example").send().await;
    assert_eq!(
        refused.header("access-control-allow-origin"),
        Some("https://shop.example"),
        "the page can read the error"
    );
}
