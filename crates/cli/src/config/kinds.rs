//! What a key takes: how a value is read, how it is shown, and what is allowed.

use std::fmt::Display;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use quarterdeck_contracts::folded_words;
use quarterdeck_outbound::PrivateHost;
use quarterdeck_runtime::RequiredClaim;
use quarterdeck_server::{Colour, Network, PageLink};
use serde_json::{Value as Json, json};
use url::{Host, Url};

use super::mcp::sounds_secret;
use super::value::Value;
use crate::store_url::{self, StoreUrl};

type ReadValue<T> = dyn Fn(&Value) -> Result<T, String>;

/// What a key takes.
pub(crate) struct Kind<T> {
    /// The end of “it takes …”.
    pub(super) takes: String,
    /// The meaning of a value, or a description of what was found instead.
    pub(super) read: Box<ReadValue<T>>,
    /// A meaning as it would be written.
    pub(super) show: Box<dyn Fn(&T) -> Json>,
}

impl<T: 'static> Kind<T> {
    fn new(
        takes: impl Into<String>,
        read: impl Fn(&Value) -> Option<T> + 'static,
        show: impl Fn(&T) -> Json + 'static,
    ) -> Self {
        let read = move |value: &Value| read(value).ok_or_else(|| value.describe());
        Self { takes: takes.into(), read: Box::new(read), show: Box::new(show) }
    }

    /// Describes a refused value that `is_secret` applies to as `instead`, without repeating it.
    fn redact(self, is_secret: fn(&str) -> bool, instead: &'static str) -> Self {
        let inner = self.read;
        let read = move |value: &Value| match value.as_text() {
            Some(text) if is_secret(text) => inner(value).map_err(|_| instead.into()),
            _ => inner(value),
        };
        Self { read: Box::new(read), ..self }
    }
}

/// One line of text that `parse` accepts.
fn parsed<T: Display + 'static>(
    takes: impl Into<String>,
    parse: impl Fn(&str) -> Option<T> + 'static,
) -> Kind<T> {
    Kind::new(takes, move |value| parse(value.as_line()?), |out| json!(out.to_string()))
}

pub(crate) fn line() -> Kind<String> {
    parsed("one line of text", |text| Some(text.into()))
}

/// A line of at most so many characters.
pub(crate) fn short_line(max_chars: usize) -> Kind<String> {
    parsed(format!("one line of text, at most {max_chars} characters"), move |text| {
        (text.chars().count() <= max_chars).then(|| text.into())
    })
}

/// A whole number within bounds.
pub(crate) fn whole<T: TryFrom<u64> + TryInto<u64> + Copy + 'static>(min: u64, max: u64) -> Kind<T> {
    Kind::new(
        format!("a whole number from {min} to {max}"),
        move |value| T::try_from(value.as_whole().filter(|number| (min..=max).contains(number))?).ok(),
        |out| json!((*out).try_into().unwrap_or(u64::MAX)),
    )
}

/// A whole number of a unit of time, which the key's name ends in.
fn span(unit: Duration, min: u64, max: u64) -> Kind<Duration> {
    let Kind { takes, read, show } = whole::<u32>(min, max);
    let count = move |out: &Duration| u32::try_from(out.as_millis() / unit.as_millis()).unwrap_or(u32::MAX);
    Kind {
        takes,
        read: Box::new(move |value| Ok(unit * read(value)?)),
        show: Box::new(move |out| show(&count(out))),
    }
}

pub(crate) fn millis(min: u64, max: u64) -> Kind<Duration> {
    span(Duration::from_millis(1), min, max)
}

pub(crate) fn seconds(min: u64, max: u64) -> Kind<Duration> {
    span(Duration::from_secs(1), min, max)
}

pub(crate) fn days(min: u64, max: u64) -> Kind<Duration> {
    span(Duration::from_secs(24 * 3_600), min, max)
}

/// Something that `"none"` switches off.
pub(crate) fn or_none<T: 'static>(kind: Kind<T>) -> Kind<Option<T>> {
    let Kind { takes, read, show } = kind;
    Kind {
        takes: format!("{takes}, or \"none\""),
        read: Box::new(move |value| match value.as_text() {
            Some("none") => Ok(None),
            _ => read(value).map(Some),
        }),
        show: Box::new(move |out| out.as_ref().map_or(json!("none"), &show)),
    }
}

pub(crate) fn list<T: 'static>(item: Kind<T>) -> Kind<Vec<T>> {
    let Kind { takes, read, show } = item;
    Kind {
        takes: format!("a list; each item is {takes}"),
        read: Box::new(move |value| {
            let items = value.as_list().ok_or_else(|| value.describe())?;
            items.iter().map(&read).collect()
        }),
        show: Box::new(move |out| out.iter().map(&show).collect()),
    }
}

/// A list of at most so many items.
pub(crate) fn short_list<T: 'static>(item: Kind<T>, max: usize) -> Kind<Vec<T>> {
    let Kind { takes, read, show } = list(item);
    let read = move |value: &Value| match read(value)? {
        items if items.len() > max => Err(format!("a list of {}", items.len())),
        items => Ok(items),
    };
    Kind { takes: format!("{takes}; at most {max}"), read: Box::new(read), show }
}

pub(crate) fn boolean() -> Kind<bool> {
    Kind::new("true or false", Value::as_bool, |out| json!(out))
}

/// `None` where the server decides by itself.
pub(crate) fn auto_or_boolean() -> Kind<Option<bool>> {
    Kind::new(
        "\"auto\", true or false",
        |value| match value.as_text() {
            Some("auto") => Some(None),
            Some(text) => text.parse().ok().map(Some),
            None => value.as_bool().map(Some),
        },
        |out| out.map_or(json!("auto"), |flag| json!(flag)),
    )
}

/// Meanings that each have a word in the configuration.
pub(crate) trait Choices: Copy + PartialEq + 'static {
    /// In the order in which they are listed.
    const ALL: &'static [(&'static str, Self)];

    fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, each)| *each == self).map_or("", |(word, _)| word)
    }
}

/// Declares the words of an enum: of a new one, or of one of a library (`for`).
macro_rules! choices {
    (for $name:ty { $($variant:ident = $word:literal,)+ }) => {
        impl $crate::config::kinds::Choices for $name {
            const ALL: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),+];
        }
    };
    ($(#[$doc:meta])* enum $name:ident { $($(#[$each:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $name { $($(#[$each])* $variant,)+ }

        $crate::config::kinds::choices! { for $name { $($variant = $word,)+ } }
    };
}
pub(crate) use choices;

/// One of a few words.
pub(crate) fn choice<T: Choices>() -> Kind<T> {
    let words: Vec<_> = T::ALL.iter().map(|(word, _)| format!("{word:?}")).collect();
    let takes = match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    };
    Kind::new(
        takes,
        |value| {
            let text = value.as_text()?;
            T::ALL.iter().find(|(word, _)| *word == text).map(|(_, each)| *each)
        },
        |out| json!(out.as_str()),
    )
}

/// A topic that a tool asks about.
pub(crate) fn topic() -> Kind<String> {
    parsed("a word, or several words next to each other", |text| {
        (!folded_words(text).is_empty()).then(|| text.to_owned())
    })
}

/// A claim of a client's verified token.
pub(crate) fn claim() -> Kind<RequiredClaim> {
    parsed("the name of a claim that must be true, or name=value", |text| text.parse().ok())
}

pub(crate) fn sha256() -> Kind<String> {
    parsed("a SHA-256 digest: 64 hexadecimal digits", |text| {
        let is_digest = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_digest.then(|| text.to_ascii_lowercase())
    })
}

/// A path, relative to the working directory.
fn path(to: &str) -> Kind<PathBuf> {
    Kind::new(
        format!("the path of {to}"),
        |value| value.as_line().map(PathBuf::from),
        |out| json!(out.display().to_string()),
    )
}

pub(crate) fn folder() -> Kind<PathBuf> {
    path("a folder")
}

pub(crate) fn file() -> Kind<PathBuf> {
    path("a file")
}

/// An operator may have put the secret itself here, so a refused value is never repeated.
pub(crate) fn secret_file() -> Kind<PathBuf> {
    path("a file that holds the secret").redact(|_| true, "not a path")
}

/// The name of a variable. An operator may have put the secret itself here, so a refused value is never repeated.
pub(crate) fn variable() -> Kind<String> {
    let takes =
        "the name of an environment variable that holds the secret, and does not begin with QUARTERDECK_";
    parsed(takes, |text| {
        let is_name = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !text.starts_with(|c: char| c.is_ascii_digit())
            && !text.starts_with("QUARTERDECK_");
        is_name.then(|| text.into())
    })
    .redact(|_| true, "not such a name")
}

/// A host that an operator opens to a tool.
pub(crate) fn private_host() -> Kind<PrivateHost> {
    parsed("a host with a port, such as localhost:8080, vault.internal:8200 or 10.0.0.5:443", |text| {
        text.parse().ok()
    })
}

/// An address and a port to listen on.
pub(crate) fn address() -> Kind<SocketAddr> {
    parsed("an address with a port, such as 127.0.0.1:8080, [::1]:8080 or localhost:8080", |text| {
        let local = text.strip_prefix("localhost:").and_then(|port| port.parse::<u16>().ok());
        local.map_or_else(|| text.parse().ok(), |port| Some((Ipv4Addr::LOCALHOST, port).into()))
    })
}

/// The address of a provider. What is before its host or after its path may be a password, and is not repeated.
pub(crate) fn base_url(schemes: &'static [&'static str]) -> Kind<String> {
    let shown: Vec<_> = schemes.iter().map(|scheme| format!("{scheme}://")).collect();
    let takes =
        format!("a URL that begins with {}, without a password, a query and a fragment", shown.join(" or "));
    let has_more = |text: &str| text.contains(['@', '?', '#']);
    parsed(takes, move |text| {
        let url = Url::parse(text).ok().filter(|_| !has_more(text))?;
        let is_allowed = schemes.contains(&url.scheme()) && url.has_host();
        is_allowed.then(|| text.trim_end_matches('/').to_owned())
    })
    .redact(has_more, "a URL with a user, a query or a fragment")
}

/// The whole address of an MCP server. A password belongs into a header; what may be one is not repeated.
pub(crate) fn server_url() -> Kind<Url> {
    let takes = "a URL that begins with https:// or http://, without a user, a password, a fragment and secrets in its query";
    let has_more = |text: &str| text.contains(['@', '#', '?']);
    parsed(takes, |text| {
        let url = Url::parse(text).ok()?;
        let is_plain = url.username().is_empty()
            && url.password().is_none()
            && url.fragment().is_none()
            && !url.query_pairs().any(|(name, _)| sounds_secret(&name));
        (matches!(url.scheme(), "http" | "https") && url.has_host() && is_plain).then_some(url)
    })
    .redact(has_more, "a URL with a user, a query or a fragment")
}

/// Where a store is. It may hold a password, so a refused value is never repeated.
pub(crate) fn store_url() -> Kind<StoreUrl> {
    Kind {
        takes: format!("a URL: {}", store_url::FORM),
        read: Box::new(|value| value.as_line().map_or_else(|| Err("not a URL".into()), StoreUrl::parse)),
        show: Box::new(|url| match url {
            StoreUrl::Sqlite(path) => json!(format!("sqlite:{}", path.display())),
            StoreUrl::Postgres(_) => json!(url.to_string()),
        }),
    }
}

/// The name of a node, which is part of keys in the store.
pub(crate) fn node_name() -> Kind<String> {
    parsed("a name of up to 64 letters, digits, `-`, `_` and `.`", |text| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        (text.len() <= 64 && text.chars().all(is_plain)).then(|| text.to_owned())
    })
}

/// Any text without control characters, also an empty one, with its spaces.
pub(crate) fn text_value() -> Kind<String> {
    Kind::new(
        "a text without control characters",
        |value| match value {
            Value::Untyped(text) | Value::Text(text) if !text.contains(char::is_control) => {
                Some(text.clone())
            }
            _ => None,
        },
        |out| json!(out),
    )
}

/// A host without a port.
pub(crate) fn host_name() -> Kind<String> {
    let takes = "a host name or an address without a port, such as app.example, 192.0.2.1 or [2001:db8::1], \
                 in lower case";
    parsed(takes, |text| Host::parse(text).ok().map(|host| host.to_string()).filter(|host| host == text))
}

pub(crate) fn network() -> Kind<Network> {
    parsed("an address or a network, such as 10.0.0.5, 10.0.0.0/8 or 2001:db8::/32", |text| text.parse().ok())
}

/// An origin, letter for letter as browsers send it.
pub(crate) fn web_origin() -> Kind<String> {
    let takes = "an origin as browsers send it, such as https://app.example or http://localhost:3000: \
                 lower case, no path, no slash at the end";
    parsed(takes, |text| {
        let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        Some(url.origin().ascii_serialization()).filter(|origin| origin == text)
    })
    .redact(|text| text.contains('@'), "an origin with a user")
}

/// A site that may show a page in a frame: an origin, or all hosts below one.
pub(crate) fn frame_ancestor() -> Kind<String> {
    let takes = "an origin such as https://app.example, or https://*.app.example for all hosts below it: lower case, no \
                 path, no slash at the end";
    parsed(takes, |text| {
        let plain = text.replacen("://*.", "://", 1);
        let url = Url::parse(&plain).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        (url.origin().ascii_serialization() == plain).then(|| text.to_owned())
    })
    .redact(|text| text.contains('@'), "an origin with a user")
}

pub(crate) fn colour() -> Kind<Colour> {
    parsed("a colour such as #0d5c6b, #fff or #0d5c6bcc", |text| text.parse().ok())
}

/// A label and a URL.
pub(crate) fn page_link() -> Kind<PageLink> {
    let takes = "a label and a URL that begins with https:// or a slash, such as \"Imprint https://example.com/imprint\"";
    parsed(takes, |text| text.parse().ok())
}
