//! Malformed credentials are refused on every path.

use quarterdeck_server::{ApiKey, Identity, Settings};

use crate::world::{COOKIE_SECRET, World};

/// One path of each surface, and some that are on none.
const PATHS: [&str; 8] =
    ["/v1/models", "/v1/nothing", "/api/me", "/api/deck/overview", "/voice", "/metrics", "/healthz", "/"];

/// Headers that are not a bearer token.
const MALFORMED: [&[&str]; 14] = [
    &["Basic YW5uOnNlc2FtZQ=="],
    &["Digest username=\"ann\""],
    &["Negotiate abc"],
    &["Token sesame"],
    &["sesame"],
    &["Bearer"],
    &["Bearer "],
    &["Bearer Bearer sesame"],
    &["Bearer a b"],
    &["Bearer a, Bearer b"],
    &["Bearer s\u{e9}same"],
    &["Bearer=sesame"],
    &["Bearer sesame", "Bearer sesame"],
    &["Bearer sesame", "Basic YW5uOnNlc2FtZQ=="],
];

#[tokio::test]
async fn a_malformed_or_foreign_credential_is_refused_on_every_path() {
    let keys = || vec![ApiKey::new("ci", "sesame")];
    let with_keys =
        World::with_identity(Settings::default(), Identity::new(COOKIE_SECRET, None, keys())).await;
    let open = World::with_identity(
        Settings { is_loopback: false, admin_token: Some("an admin token".into()), ..Settings::default() },
        Identity::new(COOKIE_SECRET, None, Vec::new()),
    )
    .await;
    for world in [World::new().await, with_keys, open] {
        for given in MALFORMED {
            for path in PATHS {
                let ask = world.get(path);
                let ask = given.iter().fold(ask, |ask, value| ask.with("authorization", value));
                let answer = ask.send().await;
                assert_eq!(answer.status, 401, "{path} {given:?}");
                assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{path} {given:?}");
                assert_eq!(answer.header("set-cookie"), None, "{path} {given:?}");
                let (_, kind, message) = answer.refusal();
                let expected = if path.starts_with("/v1") { "authentication_error" } else { "AUTH" };
                assert_eq!(kind, expected, "{path} {given:?}");
                assert!(!message.contains("sesame") && !message.contains("YW5u"), "{message}");
            }
        }
    }
}

#[tokio::test]
async fn an_unknown_api_key_is_refused_and_a_known_one_is_accepted() {
    let keys = vec![ApiKey::new("ci", "sesame"), ApiKey::new("desk", "open the door")];
    let world = World::with_identity(Settings::default(), Identity::new(COOKIE_SECRET, None, keys)).await;
    for (token, status) in [
        ("sesame", 200),
        ("open the door", 200),
        ("sesam", 401),
        ("Sesame", 401),
        ("sesame=", 401),
        ("key:ci", 401),
    ] {
        for path in ["/v1/models", "/api/me"] {
            let answer = world.get(path).with("authorization", &format!("Bearer {token}")).send().await;
            assert_eq!(answer.status, status, "{path} {token}");
        }
    }
}

#[tokio::test]
async fn on_this_machine_an_unconfigured_key_identifies_a_program() {
    let world = World::new().await;
    let client = async |key: &str| {
        let answer = world.get("/api/me").with("authorization", &format!("Bearer {key}")).send().await;
        answer.json()["clientId"].as_str().unwrap().to_owned()
    };
    let first = client("sk-none").await;
    assert!(first.starts_with("p_"), "{first}");
    assert_eq!(first, client("sk-none").await);
    assert_ne!(first, client("sk-other").await);
}
