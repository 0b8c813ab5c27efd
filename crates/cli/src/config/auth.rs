//! `[auth]`: how clients prove their identity.

use std::collections::BTreeMap;
use std::path::Path;

use quarterdeck_server::RequiredCredentials;
use quarterdeck_transports::Secret;

use super::kinds::{auto_or_boolean, boolean, choice, choices, file, line};
use super::origin::Origin;
use super::raw::API_KEY;
use super::reader::{Detail, OpenTable, Reader, Row, settings};

/// How clients prove their identity.
#[derive(Debug, Clone)]
pub(crate) struct Auth {
    /// Set if bearer tokens are verified.
    pub(crate) tokens: Option<TokenCheck>,
    /// Keys for `/v1`, by name.
    pub(crate) api_keys: BTreeMap<String, Secret>,
}

/// How a bearer token is verified.
#[derive(Debug, Clone)]
pub(crate) struct TokenCheck {
    pub(crate) algorithm: Algorithm,
    pub(crate) key: TokenKey,
    /// The required `iss`.
    pub(crate) issuer: Option<String>,
    /// The required `aud`.
    pub(crate) audience: Option<String>,
}

/// What a signature is checked with.
#[derive(Debug, Clone)]
pub(crate) enum TokenKey {
    /// For HS256, which signs with it as well.
    Shared(Secret),
    /// PEM text, for the others.
    Public(String),
}

choices! {
    /// How bearer tokens are signed.
    enum Algorithm {
        Hs256 = "HS256",
        Rs256 = "RS256",
        Es256 = "ES256",
        EdDsa = "EdDSA",
    }
}

pub(super) fn auth(from: &mut Reader, required: &mut RequiredCredentials) -> Auth {
    from.table(
        "auth",
        "Bearer tokens of clients who have signed in elsewhere. They are verified when a key is given.",
    );
    let mut algorithm = Algorithm::Hs256;
    settings! { from;
        "algorithm": choice() => algorithm, "How tokens are signed";
    }
    let (secret, secret_file) = from.secret(
        "secret",
        &["QUARTERDECK_AUTH_SECRET"],
        "A file that holds the secret of HS256, 32 bytes or more; the variable QUARTERDECK_AUTH_SECRET wins over it",
        "set QUARTERDECK_AUTH_SECRET, or name a file that holds it in `auth.secret_file`",
    );
    // RFC 7518 wants a key as long as the hash.
    from.check_strength("auth.secret", secret.as_ref(), 32);
    let about = "A file that holds the public key of the other algorithms, in PEM";
    let public_file = from.optional("public_key_file", file(), about);
    let public = public_file.as_deref().and_then(|path| public_key(from, path));
    let about = "The only `iss` that is accepted; a token without it is refused";
    let issuer = from.optional("issuer", line(), about);
    let about = "The only `aud` that is accepted; a token without it is refused";
    let audience = from.optional("audience", line(), about);
    let key = token_key(from, algorithm, secret, public, public_file.is_some());
    if key.is_none() {
        check_unused(from, secret_file.is_some() || public_file.is_some());
    }
    let tokens = key.map(|key| TokenCheck { algorithm, key, issuer, audience });
    read_required(from, required);
    let api_keys = api_keys(from);
    if tokens.is_none() && api_keys.is_empty() {
        check_closed(from, *required);
    }
    Auth { tokens, api_keys }
}

fn read_required(from: &mut Reader, required: &mut RequiredCredentials) {
    from.table(
        "auth.required",
        "Which parts of the API need a verified token or an API key. A cookie is not enough.",
    );
    settings! { from;
        "v1": auto_or_boolean() => required.v1,
            "/v1; \"auto\" needs one beyond loopback, or behind a trusted proxy, once a key or the verification of tokens is \
             configured";
        "api": boolean() => required.api,
            "/api, but for /api/deck, which the admin token opens; the page at / then needs a front end that sends \
             tokens";
        "voice": boolean() => required.voice,
            "/voice; browsers open it with a ticket that they got with a token or a key";
        "mcp": auto_or_boolean() => required.mcp, "/mcp; \"auto\" as for /v1";
    }
}

/// Refuses a surface that needs a credential when none is configured.
fn check_closed(from: &mut Reader, required: RequiredCredentials) {
    let closed = [
        ("v1", required.v1 == Some(true)),
        ("api", required.api),
        ("voice", required.voice),
        ("mcp", required.mcp == Some(true)),
    ];
    for (name, _) in closed.into_iter().filter(|(_, is_closed)| *is_closed) {
        let key = format!("auth.required.{name}");
        from.add_serve_problem(
            &key,
            format!("`{key}` is true, but there is no key and no verification of tokens, so nothing would open it"),
            Some(format!(
                "set {API_KEY}<NAME>, or QUARTERDECK_AUTH_SECRET, `auth.secret_file` or `auth.public_key_file`"
            )),
        );
    }
}

fn token_key(
    from: &mut Reader,
    algorithm: Algorithm,
    secret: Option<Secret>,
    public: Option<String>,
    is_public_named: bool,
) -> Option<TokenKey> {
    match (algorithm, secret, public) {
        (Algorithm::Hs256, Some(_), _) if is_public_named => {
            from.add_serve_problem(
                "auth.public_key_file",
                "both a secret and a public key are given, and tokens are verified with one of them".into(),
                Some("leave one out".into()),
            );
            None
        }
        (Algorithm::Hs256, None, Some(_)) => {
            from.add_serve_problem(
                "auth.public_key_file",
                "`auth.public_key_file` is not used by HS256".into(),
                Some("set `auth.algorithm` to \"RS256\", \"ES256\" or \"EdDSA\"".into()),
            );
            None
        }
        (Algorithm::Hs256, secret, _) => secret.map(TokenKey::Shared),
        (_, Some(_), public) => {
            from.add_serve_problem(
                "auth.algorithm",
                "a secret is given, which only HS256 uses".into(),
                Some("name a public key in `auth.public_key_file`, and leave the secret out".into()),
            );
            public.map(TokenKey::Public)
        }
        (_, None, public) => public.map(TokenKey::Public),
    }
}

/// Refuses requirements for tokens when no key verifies them.
fn check_unused(from: &mut Reader, is_file_named: bool) {
    if is_file_named || from.variables.get("QUARTERDECK_AUTH_SECRET").is_some() {
        return;
    }
    for key in ["auth.algorithm", "auth.issuer", "auth.audience"] {
        if from.is_set(key) {
            from.add_serve_problem(
                key,
                format!("`{key}` is set, but without a key no token is verified"),
                Some("set QUARTERDECK_AUTH_SECRET, `auth.secret_file` or `auth.public_key_file`".into()),
            );
        }
    }
}

fn public_key(from: &mut Reader, path: &Path) -> Option<String> {
    let key = "auth.public_key_file";
    match std::fs::read_to_string(path) {
        Ok(text)
            if text.contains("-----BEGIN PUBLIC KEY-----")
                || text.contains("-----BEGIN RSA PUBLIC KEY-----") =>
        {
            Some(text)
        }
        Ok(_) => {
            let help = "it begins with -----BEGIN PUBLIC KEY-----; `openssl pkey -pubout` makes one";
            from.add_serve_problem(
                key,
                format!("`{key}` names a file that is not a public key in PEM"),
                Some(help.into()),
            );
            None
        }
        Err(error) => {
            from.add_serve_problem(key, format!("`{key}` names a file that cannot be read: {error}"), None);
            None
        }
    }
}

fn api_keys(from: &mut Reader) -> BTreeMap<String, Secret> {
    let about = "A file that holds a key for /v1; the variable QUARTERDECK_API_KEY_<NAME> wins over it";
    let form = OpenTable {
        form: "`NAME = \"FILE\"` for each key; or a variable `QUARTERDECK_API_KEY_<NAME>`.",
        example: "partner = \"secrets/partner\"",
        is_template: false,
    };
    from.open_table("auth.api_keys", "Keys for /v1: a name for each, and the file that holds it.", form);
    let files = from.named_secret_files(about);
    let mut keys = BTreeMap::new();
    let variables: Vec<_> = from
        .variables
        .api_keys()
        .map(|(name, variable, secret)| (name, variable.to_owned(), Secret::from(secret)))
        .collect();
    for (name, variable, secret) in variables {
        let key = format!("auth.api_key.{name}");
        from.rows.push(Row {
            key: key.clone(),
            detail: Detail::Secret { is_set: true, fallback: "" },
            about: about.into(),
            origin: Origin::Variable(variable),
        });
        from.check_strength(&key, Some(&secret), 16);
        keys.insert(name, secret);
    }
    for (name, path) in files {
        let file_key = format!("auth.api_keys.{name}");
        if keys.contains_key(&name) {
            from.skip_secret_file(&file_key, &path);
            continue;
        }
        let key = format!("auth.api_key.{name}");
        let way_out = format!("name a file that holds it, or set {API_KEY}{}", name.to_uppercase());
        if let Some(secret) = from.take_secret(&key, &[], (&file_key, Some(&path)), &way_out) {
            from.check_strength(&key, Some(&secret), 16);
            keys.insert(name, secret);
        }
    }
    keys
}
