//! Where a store is: `postgres://user@host/database`, or `sqlite:///path`.

use std::fmt;
use std::path::PathBuf;

use quarterdeck_postgres::PostgresSettings;
use quarterdeck_transports::Secret;

/// What a URL of a store looks like, for messages.
pub(crate) const FORM: &str = "postgres://USER@HOST/DATABASE or sqlite:///PATH";

/// The address of a store. Shown without its password.
#[derive(Clone)]
pub(crate) enum StoreUrl {
    /// One file on this machine.
    Sqlite(PathBuf),
    /// A database, which several nodes may share.
    Postgres(Secret),
}

impl StoreUrl {
    /// Reads a URL. The error says what it is instead, and does not repeat it: it may hold a password.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("sqlite", rest)) => sqlite_path(rest).map(Self::Sqlite),
            Some(("postgres" | "postgresql", _)) => {
                PostgresSettings::from_url(text)
                    .map_err(|error| format!("a URL that cannot be used: {error}"))?;
                Ok(Self::Postgres(Secret::new(text)))
            }
            _ => Err("an address of another kind".into()),
        }
    }

    /// Whether it holds a password, which belongs into the environment or a file of its own.
    pub(crate) fn has_password(&self) -> bool {
        match self {
            Self::Sqlite(_) => false,
            Self::Postgres(url) => without_password(url.expose()) != url.expose(),
        }
    }

    /// The same with a password, unless it has one.
    pub(crate) fn with_password(self, password: &Secret) -> Self {
        match self {
            Self::Postgres(url) if without_password(url.expose()) == url.expose() => {
                Self::Postgres(Secret::new(with_parameter(url.expose(), "password", password.expose())))
            }
            other => other,
        }
    }

    /// The same with another parameter in its query, unless it has that one.
    pub(crate) fn with_parameter(self, name: &str, value: &str) -> Self {
        match self {
            Self::Postgres(url) => Self::Postgres(Secret::new(with_parameter(url.expose(), name, value))),
            other @ Self::Sqlite(_) => other,
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "{}", path.display()),
            Self::Postgres(url) => f.write_str(&without_password(url.expose())),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `///absolute/path` or `relative/path`.
fn sqlite_path(rest: &str) -> Result<PathBuf, String> {
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(path) if path.starts_with('/') => path,
        Some(_) => return Err("a URL of a file without its three slashes".into()),
    };
    match path {
        "" => Err("a URL that names no file".into()),
        path => Ok(PathBuf::from(path)),
    }
}

/// A URL as it may be shown: without what follows the user's name, and without secrets in its query.
fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
    // The last one: a password may hold another that was not escaped.
    let place = match place.rsplit_once('@') {
        None => place.to_owned(),
        Some((user, host)) => format!("{}@{host}", user.split(':').next().unwrap_or_default()),
    };
    let is_shown = |part: &&str| !part.split('=').next().unwrap_or_default().contains("password");
    let query = query.map(|query| query.split('&').filter(is_shown).collect::<Vec<_>>().join("&"));
    let query = query.filter(|query| !query.is_empty()).map(|query| format!("?{query}")).unwrap_or_default();
    format!("{scheme}://{place}{query}")
}

fn with_parameter(url: &str, name: &str, value: &str) -> String {
    let query = url.split_once('?').map(|(_, query)| query);
    let has = |query: &str| query.split('&').any(|part| part.split('=').next() == Some(name));
    if query.is_some_and(has) {
        return url.to_owned();
    }
    let separator = if query.is_some() { '&' } else { '?' };
    let value: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
    // A plus means a space in forms, and itself in the query of a URL.
    format!("{url}{separator}{name}={}", value.replace('+', "%20"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        StoreUrl::parse(text).map_or_else(|error| error, |url| url.to_string())
    }

    #[test]
    fn password_is_never_shown() {
        for (url, expected) in [
            ("postgres://qd:hunter2@db.example/qd", "postgres://qd@db.example/qd"),
            (
                "postgresql://qd:hun%40ter2@a:5432,b:5433/qd?sslmode=require",
                "postgresql://qd@a:5432,b:5433/qd?sslmode=require",
            ),
            ("postgres://db/qd?user=qd&password=hunter2", "postgres://db/qd?user=qd"),
            ("postgres://qd@db/qd?password=hunter2", "postgres://qd@db/qd"),
            ("postgres://qd@/qd?host=/run/postgresql", "postgres://qd@/qd?host=/run/postgresql"),
        ] {
            let parsed = StoreUrl::parse(url).unwrap();
            assert_eq!(parsed.to_string(), expected);
            assert_eq!(format!("{parsed:?}"), expected);
            assert_eq!(parsed.has_password(), url.contains("hun"), "{url}");
        }
        let injected =
            StoreUrl::parse("postgres://qd@db/qd").unwrap().with_password(&Secret::new("a b&c@/+"));
        let StoreUrl::Postgres(url) = &injected else { panic!("not PostgreSQL") };
        assert_eq!(url.expose(), "postgres://qd@db/qd?password=a%20b%26c%40%2F%2B");
        assert_eq!(injected.to_string(), "postgres://qd@db/qd");
    }

    #[test]
    fn password_of_the_url_wins_over_the_separate_one() {
        let url =
            StoreUrl::parse("postgres://qd:hunter2@db/qd").unwrap().with_password(&Secret::new("other"));
        let StoreUrl::Postgres(url) = url else { panic!("not PostgreSQL") };
        assert_eq!(url.expose(), "postgres://qd:hunter2@db/qd");
    }

    #[test]
    fn other_addresses_are_refused_without_being_repeated() {
        for text in [
            "mysql://u:hunter2@h/d",
            "hunter2",
            "",
            "postgres:hunter2",
            "sqlite:",
            "sqlite://hunter2/x",
            "https://hunter2",
        ] {
            let error = StoreUrl::parse(text).err().unwrap_or_else(|| panic!("{text} was accepted"));
            assert!(!error.contains("hunter2"), "{error}");
        }
        assert_eq!(shown("sqlite:///var/lib/qd/store.db"), "/var/lib/qd/store.db");
        assert_eq!(shown("sqlite:store.db"), "store.db");
    }
}
