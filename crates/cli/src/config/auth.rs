//! `[auth]`: whose word is believed about who a client is.

use std::collections::BTreeMap;
use std::path::Path;

use quarterdeck_server::RequiredCredentials;

use super::choices::{choice, choices};
use super::kinds::{Bool, FILE, Line, Optional};
use super::origin::Origin;
use super::raw::API_KEY;
use super::reader::{Detail, Reader, Row};
use super::secret::Secret;
use super::value::Value;

/// How clients prove who they are.
#[derive(Debug, Clone)]
pub(crate) struct Auth {
    /// Bearer tokens, if they are verified.
    pub(crate) tokens: Option<TokenCheck>,
    /// Keys for `/v1`, by name.
    pub(crate) api_keys: BTreeMap<String, Secret>,
    /// Which surfaces need one of them.
    pub(crate) required: RequiredCredentials,
}

/// How a bearer token is verified.
#[derive(Debug, Clone)]
pub(crate) struct TokenCheck {
    pub(crate) algorithm: Algorithm,
    pub(crate) key: TokenKey,
    /// The only `iss` that is accepted, if it matters.
    pub(crate) issuer: Option<String>,
    /// The only `aud` that is accepted, if it matters.
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

choices! {
    /// Whether `/v1` needs a credential.
    enum WhenRequired {
        /// Beyond loopback, once one can be verified.
        Auto = "auto",
        Always = "true",
        Never = "false",
    }
}

/// Reads `[auth]`.
pub(super) fn auth(from: &mut Reader) -> Auth {
    from.table(
        "auth",
        "Bearer tokens of clients who have signed in elsewhere. They are verified when a key is given.",
    );
    let algorithm = from.read("auth.algorithm", choice(), "HS256", "How tokens are signed");
    let about = "A file that holds the secret of HS256, 32 bytes or more; the variable QUARTERDECK_AUTH_SECRET wins over it";
    let secret_file = from.read_secret_path("auth.secret_file", about);
    let secret = from.secret(
        "auth.secret",
        &["QUARTERDECK_AUTH_SECRET"],
        ("auth.secret_file", secret_file.as_deref()),
        "set QUARTERDECK_AUTH_SECRET, or name a file that holds it in `auth.secret_file`",
    );
    // RFC 7518 wants a key as long as the hash.
    from.check_strength("auth.secret", secret.as_ref(), 32);
    let public_file = from.read(
        "auth.public_key_file",
        Optional(FILE),
        Value::Absent,
        "A file that holds the public key of the other algorithms, in PEM",
    );
    let public = public_file.as_deref().and_then(|path| public_key(from, path));
    let issuer = from.read(
        "auth.issuer",
        Optional(Line),
        Value::Absent,
        "The only `iss` that is accepted; a token without it is refused",
    );
    let audience = from.read(
        "auth.audience",
        Optional(Line),
        Value::Absent,
        "The only `aud` that is accepted; a token without it is refused",
    );
    let tokens = match token_key(from, algorithm, secret, public, public_file.is_some()) {
        Some(key) => Some(TokenCheck { algorithm, key, issuer, audience }),
        None => {
            nothing_without_a_key(from, secret_file.is_some() || public_file.is_some());
            None
        }
    };
    let required = required(from);
    let api_keys = api_keys(from);
    if tokens.is_none() && api_keys.is_empty() {
        closed_to_all(from, required);
    }
    Auth { tokens, api_keys, required }
}

fn required(from: &mut Reader) -> RequiredCredentials {
    from.table(
        "auth.required",
        "Which parts of the API need a verified token or an API key. A cookie is not enough.",
    );
    let about = "/v1; \"auto\" needs one beyond loopback, or behind a trusted proxy, once a key or the verification of tokens is configured";
    let v1 = match from.read("auth.required.v1", choice(), "auto", about) {
        WhenRequired::Auto => None,
        WhenRequired::Always => Some(true),
        WhenRequired::Never => Some(false),
    };
    let about = "/api, but for /api/deck, which the admin token opens; the page at / then needs a front end that sends tokens";
    let api = from.read("auth.required.api", Bool, false, about);
    let about = "/voice; browsers open it with a ticket that they got with a token or a key";
    let voice = from.read("auth.required.voice", Bool, false, about);
    RequiredCredentials { v1, api, voice }
}

/// Who closes a surface and names nothing that opens it has forgotten something.
fn closed_to_all(from: &mut Reader, required: RequiredCredentials) {
    let closed = [("v1", required.v1 == Some(true)), ("api", required.api), ("voice", required.voice)];
    for (name, _) in closed.into_iter().filter(|(_, is_closed)| *is_closed) {
        let key = format!("auth.required.{name}");
        from.block_serve(
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
            from.block_serve(
                "auth.public_key_file",
                "both a secret and a public key are given, and tokens are verified with one of them".into(),
                Some("leave one out".into()),
            );
            None
        }
        (Algorithm::Hs256, None, Some(_)) => {
            from.block_serve(
                "auth.public_key_file",
                "`auth.public_key_file` is not used by HS256".into(),
                Some("set `auth.algorithm` to \"RS256\", \"ES256\" or \"EdDSA\"".into()),
            );
            None
        }
        (Algorithm::Hs256, secret, _) => secret.map(TokenKey::Shared),
        (_, Some(_), public) => {
            from.block_serve(
                "auth.algorithm",
                "a secret is given, which only HS256 uses".into(),
                Some("name a public key in `auth.public_key_file`, and leave the secret out".into()),
            );
            public.map(TokenKey::Public)
        }
        (_, None, public) => public.map(TokenKey::Public),
    }
}

/// Who says what a token must be like believes that tokens are verified.
fn nothing_without_a_key(from: &mut Reader, is_file_named: bool) {
    if is_file_named || from.variables.get("QUARTERDECK_AUTH_SECRET").is_some() {
        return;
    }
    for key in ["auth.algorithm", "auth.issuer", "auth.audience"] {
        if from.is_set(key) {
            from.block_serve(
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
            from.block_serve(
                key,
                format!("`{key}` names a file that is no public key in PEM"),
                Some(help.into()),
            );
            None
        }
        Err(error) => {
            from.block_serve(key, format!("`{key}` names a file that cannot be read: {error}"), None);
            None
        }
    }
}

fn api_keys(from: &mut Reader) -> BTreeMap<String, Secret> {
    let about = "A file that holds a key for /v1; the variable QUARTERDECK_API_KEY_<NAME> wins over it";
    from.table("auth.api_keys", "Keys for /v1: a name for each, and the file that holds it.");
    let files = from.read_named_files("auth.api_keys", about);
    let mut keys = BTreeMap::new();
    let of_variables: Vec<_> = from
        .variables
        .api_keys()
        .map(|(name, variable, secret)| (name, variable.to_owned(), Secret::new(secret.trim())))
        .collect();
    for (name, variable, secret) in of_variables {
        let row = format!("auth.api_key.{name}");
        from.rows.push(Row {
            key: row.clone(),
            detail: Detail::Secret { is_set: true, fallback: "" },
            about: about.into(),
            origin: Origin::Variable(variable),
        });
        from.check_strength(&row, Some(&secret), 16);
        keys.insert(name, secret);
    }
    for (name, path) in files {
        let key = format!("auth.api_keys.{name}");
        if keys.contains_key(&name) {
            from.skip_secret_file(&key, &path);
            continue;
        }
        let row = format!("auth.api_key.{name}");
        let about = format!("name a file that holds it, or set {API_KEY}{}", name.to_uppercase());
        if let Some(secret) = from.secret(&row, &[], (&key, Some(&path)), &about) {
            from.check_strength(&row, Some(&secret), 16);
            keys.insert(name, secret);
        }
    }
    keys
}
