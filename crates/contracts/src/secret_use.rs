//! Where the secrets of a handler go: the field `secrets` of a definition. The secrets themselves are configured by the
//! operator and added by the host; no handler sees them.

use serde::{Deserialize, Serialize};

/// Headers that belong to the connection or to a body, or that follow a redirect to another host.
const UNFIT_HEADERS: [&str; 19] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "connection",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "location",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// What stands for the secret in a format.
const PLACEHOLDER: &str = "{}";

/// Where one secret goes: requests to one host, in a header or in the query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretUse {
    /// The only host that gets it; `network` names it too.
    pub host: String,
    /// The header that carries it, such as `Authorization`. Either this or `query`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The parameter of the query that carries it, such as `key`. Either this or `header`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// The value with `{}` for the secret, such as `Bearer {}`. Without it, the value is the secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

/// The part of a request that carries a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretPlace<'a> {
    /// A header of this name, as the author wrote it.
    Header(&'a str),
    /// A parameter of the query.
    Query(&'a str),
}

impl SecretUse {
    /// The one place that the definition names, or `None` when it names none, an empty one or two.
    pub fn place(&self) -> Option<SecretPlace<'_>> {
        match (self.header.as_deref(), self.query.as_deref()) {
            (Some(header), None) if !header.is_empty() => Some(SecretPlace::Header(header)),
            (None, Some(query)) if !query.is_empty() => Some(SecretPlace::Query(query)),
            _ => None,
        }
    }

    /// Whether the format has a place for the secret, and nothing that a header could not carry.
    pub fn has_sound_format(&self) -> bool {
        self.format.as_deref().is_none_or(|format| {
            format.matches(PLACEHOLDER).count() == 1 && format.chars().all(|c| matches!(c, ' '..='~'))
        })
    }

    /// The value that a request carries.
    pub fn value_with(&self, secret: &str) -> String {
        self.format.as_deref().map_or_else(|| secret.to_owned(), |format| format.replace(PLACEHOLDER, secret))
    }
}

/// Whether a header of this name may carry a secret: one that stays with the host that it is sent to, and is not the
/// connection's own.
pub fn can_carry_secret(header: &str) -> bool {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let name = header.to_ascii_lowercase();
    (1..=64).contains(&name.len())
        && name.chars().all(is_token)
        && !name.starts_with("proxy-")
        && !UNFIT_HEADERS.contains(&name.as_str())
}

/// Whether a secret may have this name: capital letters, digits and single underscores.
pub fn is_secret_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| matches!(c, 'A'..='Z' | '0'..='9' | '_'))
        && !name.contains("__")
        && !name.ends_with('_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(json: serde_json::Value) -> SecretUse {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_secret_has_one_place_and_one_value() {
        use serde_json::json;
        let bearer = used(json!({ "host": "a.example", "header": "Authorization", "format": "Bearer {}" }));
        assert_eq!(bearer.place(), Some(SecretPlace::Header("Authorization")));
        assert_eq!(bearer.value_with("s3cret"), "Bearer s3cret");
        let plain = used(json!({ "host": "a.example", "query": "key" }));
        assert_eq!((plain.place(), plain.value_with("{}")), (Some(SecretPlace::Query("key")), "{}".into()));
        for bad in [
            json!({ "host": "a" }),
            json!({ "host": "a", "header": "x", "query": "y" }),
            json!({ "host": "a", "query": "" }),
        ] {
            assert_eq!(used(bad).place(), None);
        }
        for (format, is_sound) in
            [("{}", true), ("Basic {}", true), ("x", false), ("{}{}", false), ("{}\n", false)]
        {
            assert_eq!(
                used(json!({ "host": "a", "query": "k", "format": format })).has_sound_format(),
                is_sound,
                "{format}"
            );
        }
    }

    #[test]
    fn headers_of_the_connection_and_those_that_follow_redirects_carry_no_secret() {
        for good in ["Authorization", "X-Api-Key", "cookie", "api-key"] {
            assert!(can_carry_secret(good), "{good}");
        }
        for bad in [
            "Host",
            "content-length",
            "Accept",
            "USER-AGENT",
            "Proxy-Authorization",
            "a b",
            "a:b",
            "",
            "ключ",
        ] {
            assert!(!can_carry_secret(bad), "{bad}");
        }
    }

    #[test]
    fn names_of_secrets_are_those_of_variables() {
        for good in ["API_KEY", "A", "KEY2"] {
            assert!(is_secret_name(good), "{good}");
        }
        for bad in ["api_key", "", "2KEY", "_KEY", "KEY_", "A__B", "A-B", "A.B"] {
            assert!(!is_secret_name(bad), "{bad}");
        }
    }
}
