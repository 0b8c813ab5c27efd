//! Keys that take one of a few words, and keys that take several values.

use quarterdeck_server::Network;
use serde_json::{Value as Json, json};
use url::{Host, Url};

use super::kinds::{Kind, Line};
use super::value::Value;

/// A set of words, each with a meaning.
pub(crate) trait Choices: Copy + PartialEq + 'static {
    /// The words, in the order in which they are told.
    const ALL: &'static [(&'static str, Self)];

    /// The word for this.
    fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, each)| *each == self).map_or("", |(word, _)| word)
    }
}

/// Declares an enum with the word for each of its variants.
macro_rules! choices {
    ($(#[$doc:meta])* enum $name:ident { $($(#[$each:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $name { $($(#[$each])* $variant,)+ }

        impl $crate::config::choices::Choices for $name {
            const ALL: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),+];
        }
    };
}
pub(crate) use choices;

/// One of a few words.
pub(crate) struct Choice<T>(std::marker::PhantomData<T>);

pub(crate) fn choice<T: Choices>() -> Choice<T> {
    Choice(std::marker::PhantomData)
}

impl<T: Choices> Kind for Choice<T> {
    type Out = T;

    fn takes(&self) -> String {
        let bare = |word: &str| matches!(word, "true" | "false");
        let words: Vec<_> = T::ALL
            .iter()
            .map(|(word, _)| if bare(word) { (*word).into() } else { format!("{word:?}") })
            .collect();
        match words.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => words.concat(),
        }
    }

    fn read(&self, value: &Value) -> Result<T, String> {
        let text = match value {
            Value::Boolean(flag) => flag.to_string(),
            other => other.as_text().ok_or_else(|| other.describe())?.to_owned(),
        };
        T::ALL.iter().find(|(word, _)| *word == text).map(|(_, each)| *each).ok_or_else(|| value.describe())
    }

    fn show(&self, out: &T) -> Json {
        match out.as_str() {
            "true" => json!(true),
            "false" => json!(false),
            word => json!(word),
        }
    }
}

/// Several of a kind.
pub(crate) struct ListOf<K>(pub(crate) K);

impl<K: Kind> Kind for ListOf<K> {
    type Out = Vec<K::Out>;

    fn takes(&self) -> String {
        format!("a list; each item is {}", self.0.takes())
    }

    fn read(&self, value: &Value) -> Result<Self::Out, String> {
        let items = value.as_list().ok_or_else(|| value.describe())?;
        items.iter().map(|item| self.0.read(item)).collect()
    }

    fn show(&self, out: &Self::Out) -> Json {
        out.iter().map(|item| self.0.show(item)).collect()
    }
}

/// A host without a port.
pub(crate) struct HostName;

impl Kind for HostName {
    type Out = String;

    fn takes(&self) -> String {
        "a host name or an address without a port, such as app.example, 192.0.2.1 or [2001:db8::1], in lower case"
            .into()
    }

    fn read(&self, value: &Value) -> Result<String, String> {
        let text = Line.read(value)?;
        let is_host = Host::parse(&text).is_ok_and(|host| host.to_string() == text);
        if is_host { Ok(text) } else { Err(value.describe()) }
    }

    fn show(&self, out: &String) -> Json {
        json!(out)
    }
}

/// An address, or a network of them.
pub(crate) struct AddressRange;

impl Kind for AddressRange {
    type Out = Network;

    fn takes(&self) -> String {
        "an address or a network, such as 10.0.0.5, 10.0.0.0/8 or 2001:db8::/32".into()
    }

    fn read(&self, value: &Value) -> Result<Network, String> {
        Line.read(value)?.parse().map_err(|_| value.describe())
    }

    fn show(&self, out: &Network) -> Json {
        json!(out.to_string())
    }
}

/// An origin, letter for letter as browsers send it.
pub(crate) struct WebOrigin;

impl Kind for WebOrigin {
    type Out = String;

    fn takes(&self) -> String {
        "an origin as browsers send it, such as https://app.example or http://localhost:3000: \
         lower case, no path, no slash at the end"
            .into()
    }

    fn read(&self, value: &Value) -> Result<String, String> {
        let text = Line.read(value)?;
        if text.contains('@') {
            return Err("an origin with a user".into());
        }
        let is_origin = Url::parse(&text).is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https") && url.origin().ascii_serialization() == text
        });
        if is_origin { Ok(text) } else { Err(value.describe()) }
    }

    fn show(&self, out: &String) -> Json {
        json!(out)
    }
}
