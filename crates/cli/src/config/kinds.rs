//! What a key takes: each kind reads a value, shows one, and says what it allows.

use std::marker::PhantomData;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use quarterdeck_runtime::RequiredClaim;
use serde_json::{Value as Json, json};
use url::Url;

use super::value::Value;

/// What a key takes.
pub(crate) trait Kind {
    /// What it means.
    type Out;

    /// What may be written, as the end of “it takes …”.
    fn takes(&self) -> String;

    /// The meaning of a value, or what was found instead of one.
    fn read(&self, value: &Value) -> Result<Self::Out, String>;

    /// A meaning as it would be written.
    fn show(&self, out: &Self::Out) -> Json;
}

/// A whole number between two others.
pub(crate) struct Whole<T>(u64, u64, PhantomData<T>);

pub(crate) fn whole<T>(least: u64, most: u64) -> Whole<T> {
    Whole(least, most, PhantomData)
}

impl<T: TryFrom<u64> + TryInto<u64> + Copy> Kind for Whole<T> {
    type Out = T;

    fn takes(&self) -> String {
        format!("a whole number from {} to {}", self.0, self.1)
    }

    fn read(&self, value: &Value) -> Result<T, String> {
        let number = value.as_whole().filter(|number| (self.0..=self.1).contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| value.describe())
    }

    fn show(&self, out: &T) -> Json {
        json!((*out).try_into().unwrap_or(u64::MAX))
    }
}

/// A whole number of some unit of time, which stands in the key's name.
pub(crate) struct Span {
    unit: Duration,
    count: Whole<u32>,
}

pub(crate) fn millis(least: u64, most: u64) -> Span {
    Span { unit: Duration::from_millis(1), count: whole(least, most) }
}

pub(crate) fn seconds(least: u64, most: u64) -> Span {
    Span { unit: Duration::from_secs(1), count: whole(least, most) }
}

pub(crate) fn days(least: u64, most: u64) -> Span {
    Span { unit: Duration::from_secs(24 * 3_600), count: whole(least, most) }
}

impl Kind for Span {
    type Out = Duration;

    fn takes(&self) -> String {
        self.count.takes()
    }

    fn read(&self, value: &Value) -> Result<Duration, String> {
        Ok(self.unit * self.count.read(value)?)
    }

    fn show(&self, out: &Duration) -> Json {
        json!((out.as_millis() / self.unit.as_millis()) as u64)
    }
}

/// Something that can be switched off with `"none"`.
pub(crate) struct OrNone<K>(pub(crate) K);

impl<K: Kind> Kind for OrNone<K> {
    type Out = Option<K::Out>;

    fn takes(&self) -> String {
        format!("{}, or \"none\"", self.0.takes())
    }

    fn read(&self, value: &Value) -> Result<Self::Out, String> {
        match value {
            Value::Absent => Ok(None),
            given if given.as_text() == Some("none") => Ok(None),
            given => self.0.read(given).map(Some),
        }
    }

    fn show(&self, out: &Self::Out) -> Json {
        out.as_ref().map_or(json!("none"), |out| self.0.show(out))
    }
}

/// Something that need not be said.
pub(crate) struct Optional<K>(pub(crate) K);

impl<K: Kind> Kind for Optional<K> {
    type Out = Option<K::Out>;

    fn takes(&self) -> String {
        self.0.takes()
    }

    fn read(&self, value: &Value) -> Result<Self::Out, String> {
        match value {
            Value::Absent => Ok(None),
            given => self.0.read(given).map(Some),
        }
    }

    fn show(&self, out: &Self::Out) -> Json {
        out.as_ref().map_or(Json::Null, |out| self.0.show(out))
    }
}

/// Yes or no.
pub(crate) struct Bool;

impl Kind for Bool {
    type Out = bool;

    fn takes(&self) -> String {
        "true or false".into()
    }

    fn read(&self, value: &Value) -> Result<bool, String> {
        match value {
            Value::Boolean(flag) => Ok(*flag),
            Value::Untyped(words) if words.trim() == "true" => Ok(true),
            Value::Untyped(words) if words.trim() == "false" => Ok(false),
            other => Err(other.describe()),
        }
    }

    fn show(&self, out: &bool) -> Json {
        json!(out)
    }
}

/// One line of text.
pub(crate) struct Line;

impl Kind for Line {
    type Out = String;

    fn takes(&self) -> String {
        "one line of text".into()
    }

    fn read(&self, value: &Value) -> Result<String, String> {
        let text = value.as_text().filter(|text| !text.is_empty() && !text.contains(char::is_control));
        text.map(str::to_owned).ok_or_else(|| value.describe())
    }

    fn show(&self, out: &String) -> Json {
        json!(out)
    }
}

/// A claim of a client's verified token.
pub(crate) struct Claim;

impl Kind for Claim {
    type Out = RequiredClaim;

    fn takes(&self) -> String {
        "the name of a claim that must be true, or name=value".into()
    }

    fn read(&self, value: &Value) -> Result<RequiredClaim, String> {
        Line.read(value)?.parse().map_err(|_| value.describe())
    }

    fn show(&self, out: &RequiredClaim) -> Json {
        json!(out.to_string())
    }
}

/// A SHA-256 digest.
pub(crate) struct Sha256;

impl Kind for Sha256 {
    type Out = String;

    fn takes(&self) -> String {
        "a SHA-256 digest: 64 hexadecimal digits".into()
    }

    fn read(&self, value: &Value) -> Result<String, String> {
        let digest = Line.read(value)?.to_ascii_lowercase();
        let is_one = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_one { Ok(digest) } else { Err(value.describe()) }
    }

    fn show(&self, out: &String) -> Json {
        json!(out)
    }
}

/// The name of a file or a folder, from the working directory on.
pub(crate) struct Place(pub(crate) &'static str);

/// The name of a folder.
pub(crate) const FOLDER: Place = Place("a folder");
/// The name of a file.
pub(crate) const FILE: Place = Place("a file");

impl Kind for Place {
    type Out = PathBuf;

    fn takes(&self) -> String {
        format!("the path of {}", self.0)
    }

    fn read(&self, value: &Value) -> Result<PathBuf, String> {
        Line.read(value).map(PathBuf::from)
    }

    fn show(&self, out: &PathBuf) -> Json {
        json!(out.display().to_string())
    }
}

/// An address and a port to listen on.
pub(crate) struct Address;

impl Kind for Address {
    type Out = SocketAddr;

    fn takes(&self) -> String {
        "an address with a port, such as 127.0.0.1:8080, [::1]:8080 or localhost:8080".into()
    }

    fn read(&self, value: &Value) -> Result<SocketAddr, String> {
        let text = value.as_text().ok_or_else(|| value.describe())?;
        let local = text.strip_prefix("localhost:").and_then(|port| port.parse::<u16>().ok());
        match local {
            Some(port) => Ok((Ipv4Addr::LOCALHOST, port).into()),
            None => text.parse().map_err(|_| value.describe()),
        }
    }

    fn show(&self, out: &SocketAddr) -> Json {
        json!(out.to_string())
    }
}

/// The address of a provider. What stands before its host or after its path is not repeated: it may be a password.
pub(crate) struct BaseUrl(pub(crate) &'static [&'static str]);

impl Kind for BaseUrl {
    type Out = String;

    fn takes(&self) -> String {
        let schemes: Vec<_> = self.0.iter().map(|scheme| format!("{scheme}://")).collect();
        format!("a URL that begins with {}, without a password, a query and a fragment", schemes.join(" or "))
    }

    fn read(&self, value: &Value) -> Result<String, String> {
        let text = Line.read(value)?;
        if text.contains(['@', '?', '#']) {
            return Err("a URL with a user, a query or a fragment".into());
        }
        match Url::parse(&text) {
            Ok(url) if self.0.contains(&url.scheme()) && url.has_host() => {
                Ok(text.trim_end_matches('/').to_owned())
            }
            _ => Err(value.describe()),
        }
    }

    fn show(&self, out: &String) -> Json {
        json!(out)
    }
}
