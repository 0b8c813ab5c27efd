//! Where secrets come from, and that they are never shown.

use std::path::Path;

use expect_test::expect;
use proptest::prelude::*;
use quarterdeck_testkit::tree;

use super::super::*;
use super::{TOKEN, config, loaded, refused, with};

#[test]
fn secret_in_the_file_is_refused_even_when_it_is_overridden() {
    refused(
        r#"
        [server]
        admin_token = "hunter2-hunter2-hunter2"
        cookie_secret = "hunter2"
        [auth]
        secret = "hunter2"
        [text]
        api_key = "hunter2"
        [auth.api_keys]
        partner = "hunter2"
        [kb]
        password = "hunter2"
        "#,
        &[("QUARTERDECK_SERVER__ADMIN_TOKEN", "hunter2")],
        expect![[r#"
            the configuration has 7 problems
            quarterdeck.toml:3: `server.admin_token` is a secret, and secrets do not belong in this file
              help: set QUARTERDECK_ADMIN_TOKEN, or name a file that holds it in `server.admin_token_file`
            quarterdeck.toml:4: `server.cookie_secret` is a secret, and secrets do not belong in this file
              help: name a file that holds it in `server.cookie_secret_file`
            quarterdeck.toml:6: `auth.secret` is a secret, and secrets do not belong in this file
              help: set QUARTERDECK_AUTH_SECRET, or name a file that holds it in `auth.secret_file`
            quarterdeck.toml:8: `text.api_key` is a secret, and secrets do not belong in this file
              help: set the provider's variable, such as GEMINI_API_KEY, or name a file that holds it in `text.api_key_file`
            quarterdeck.toml:10: `auth.api_keys.partner` names a file that cannot be read: No such file or directory (os error 2)
              help: write the name of a file that holds the secret, not the secret itself
            quarterdeck.toml:12: `kb.password` is a secret, and secrets do not belong in this file
              help: secrets come from the environment or from files; docs/CONFIGURATION.md says which
            env QUARTERDECK_SERVER__ADMIN_TOKEN: this variable sets nothing: there is no key `server.admin_token`
              help: set QUARTERDECK_ADMIN_TOKEN, or name a file that holds it in `server.admin_token_file`
        "#]],
    );
}

#[test]
fn a_secret_that_can_be_guessed_is_none() {
    let short = [("QUARTERDECK_ADMIN_TOKEN", "hunter2"), ("QUARTERDECK_AUTH_SECRET", "hunter2\nhunter2")];
    refused(
        "",
        &short,
        expect![[r#"
            the configuration has 3 problems
            env QUARTERDECK_ADMIN_TOKEN: this secret is too short for `server.admin_token`, which takes 16 characters or more
              help: `openssl rand -hex 32` makes a good one
            env QUARTERDECK_AUTH_SECRET: `auth.secret` has more than one line
            env QUARTERDECK_AUTH_SECRET: this secret is too short for `auth.secret`, which takes 32 characters or more
              help: `openssl rand -hex 32` makes a good one
        "#]],
    );
}

#[test]
fn tokens_are_verified_when_there_is_a_key_that_fits() {
    let long = "0123456789abcdef0123456789abcdef";
    let tokens = |file: &str| config(file, &[("QUARTERDECK_AUTH_SECRET", long)]).auth.tokens.unwrap();
    let check = tokens("auth.issuer = 'https://id.example'");
    assert_eq!((check.algorithm, check.issuer.as_deref()), (Algorithm::Hs256, Some("https://id.example")));
    assert!(matches!(check.key, TokenKey::Shared(secret) if secret.expose() == long));

    let files =
        tree("//- key.pem\n-----BEGIN PUBLIC KEY-----\n//- private.pem\n-----BEGIN PRIVATE KEY-----\n");
    let named = |name: &str| format!("public_key_file = {:?}", files.join(name));
    let file = format!("[auth]\nalgorithm = 'ES256'\n{}", named("key.pem"));
    assert!(matches!(config(&file, &[]).auth.tokens.unwrap().key, TokenKey::Public(_)));

    refused(
        "auth.audience = 'us'",
        &[],
        expect![[r#"
            the configuration has 1 problem
            quarterdeck.toml:1: `auth.audience` is set, but without a key no token is verified
              help: set QUARTERDECK_AUTH_SECRET, `auth.secret_file` or `auth.public_key_file`
        "#]],
    );
    refused(
        &format!("[auth]\n{}", named("key.pem")),
        &[],
        expect![[r#"
            the configuration has 1 problem
            quarterdeck.toml:2: `auth.public_key_file` is not used by HS256
              help: set `auth.algorithm` to "RS256", "ES256" or "EdDSA"
        "#]],
    );
    refused(
        &format!("[auth]\nalgorithm = 'RS256'\n{}", named("private.pem")),
        &[],
        expect![[r#"
            the configuration has 1 problem
            quarterdeck.toml:3: `auth.public_key_file` names a file that is not a public key in PEM
              help: it begins with -----BEGIN PUBLIC KEY-----; `openssl pkey -pubout` makes one
        "#]],
    );
    refused(
        "auth.algorithm = 'EdDSA'",
        &[("QUARTERDECK_AUTH_SECRET", long)],
        expect![[r#"
            the configuration has 1 problem
            quarterdeck.toml:1: a secret is given, which only HS256 uses
              help: name a public key in `auth.public_key_file`, and leave the secret out
        "#]],
    );
}

#[test]
fn keys_for_v1_come_from_files_and_variables() {
    let files = tree("//- partner\nthe-key-of-the-partner\n");
    let file = format!("[auth.api_keys]\npartner = {:?}\nother = 'nowhere'", files.join("partner"));
    let loaded = loaded(&file, &[("QUARTERDECK_API_KEY_OTHER", TOKEN)]);
    let keys: Vec<_> =
        loaded.config.auth.api_keys.iter().map(|(name, key)| (name.as_str(), key.expose())).collect();
    assert_eq!(keys, [("other", TOKEN), ("partner", "the-key-of-the-partner")]);
}

#[test]
fn cookie_secret_is_generated_once_and_for_its_owner() {
    let files = tree("");
    let data = files.join("state");
    let first = CookieSecret::Generated.load(&data).unwrap();
    assert_eq!(first.expose().len(), 64);
    assert_eq!(CookieSecret::Generated.load(&data).unwrap(), first);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&data), mode(&data.join("cookie_secret"))), (0o700, 0o600));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Wherever a secret is put, right or wrong, nothing that is shown has it in it.
    #[test]
    fn no_secret_is_ever_shown(secret in "zq[a-zA-Z0-9/+@:?#=_-]{32,60}", in_file in 0..SECRET_KEYS.len()) {
        let files = tree("");
        std::fs::write(files.join("secret"), &secret).unwrap();
        let variables: Vec<_> = SECRET_VARIABLES.iter().map(|name| (*name, secret.as_str())).collect();
        let path = format!("{:?}", files.join("secret"));
        let good = format!(
            "[server]\nadmin_token_file = {path}\ncookie_secret_file = {path}\n[auth]\nsecret_file = {path}\n\
             [text]\nprovider = 'gemini'\napi_key_file = {path}\n[voice]\napi_key_file = {path}\n[auth.api_keys]\na = {path}",
        );
        for variables in [&[][..], &variables] {
            let loaded = loaded(&good, variables);
            let shown = format!(
                "{loaded:?}{:#?}{}{}", loaded.config, loaded.listing.to_text(), loaded.listing.to_json()
            );
            prop_assert!(!shown.contains(&secret), "{}", shown);
        }
        let bad = format!("{} = {secret:?}", SECRET_KEYS[in_file]);
        let wrong = [("QUARTERDECK_SERVER__ADMIN_TOKEN", secret.as_str()), ("QUARTERDECK_TOKEN", secret.as_str())];
        for variables in [&wrong[..], &variables, &[]] {
            let shown = match with(&bad, variables, ServeOptions::default()) {
                Err(problems) => format!("{problems:?}{problems}{}", problems.to_json()),
                Ok(loaded) => format!("{loaded:?}{}{}", loaded.listing.to_text(), loaded.listing.to_json()),
            };
            prop_assert!(!shown.contains(&secret), "{}", shown);
        }
    }
}

const SECRET_VARIABLES: [&str; 5] = [
    "QUARTERDECK_ADMIN_TOKEN",
    "QUARTERDECK_AUTH_SECRET",
    "QUARTERDECK_API_KEY_PARTNER",
    "GEMINI_API_KEY",
    "ANTHROPIC_API_KEY",
];

/// Keys where an operator might put a secret by mistake.
const SECRET_KEYS: [&str; 12] = [
    "server.admin_token",
    "server.admin_token_file",
    "server.cookie_secret",
    "server.cookie_secret_file",
    "auth.secret",
    "auth.secret_file",
    "auth.api_keys.partner",
    "text.api_key",
    "text.api_key_file",
    "voice.api_key",
    "images.api_key",
    "images.api_key_file",
];
