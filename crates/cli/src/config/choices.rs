//! Keys that take one of a few words, and keys that take several values.

use serde_json::{Value as Json, json};
use url::Url;

use super::kinds::{Kind, Line};
use super::value::Value;

/// A set of words, each with a meaning.
pub(crate) trait Words: Copy + PartialEq + 'static {
    /// The words, in the order in which they are told.
    const ALL: &'static [(&'static str, Self)];

    /// The word for this.
    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, each)| *each == self).map_or("", |(word, _)| word)
    }
}

/// Declares an enum with the word for each of its variants.
macro_rules! words {
    ($(#[$doc:meta])* enum $name:ident { $($(#[$each:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $name { $($(#[$each])* $variant,)+ }

        impl $crate::config::choices::Words for $name {
            const ALL: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),+];
        }
    };
}
pub(crate) use words;

/// One of a few words.
pub(crate) struct Choice<T>(std::marker::PhantomData<T>);

pub(crate) fn choice<T: Words>() -> Choice<T> {
    Choice(std::marker::PhantomData)
}

impl<T: Words> Kind for Choice<T> {
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
            other => other.as_text().ok_or_else(|| other.found())?.to_owned(),
        };
        T::ALL.iter().find(|(word, _)| *word == text).map(|(_, each)| *each).ok_or_else(|| value.found())
    }

    fn show(&self, out: &T) -> Json {
        match out.word() {
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
        let items = value.as_list().ok_or_else(|| value.found())?;
        items.iter().map(|item| self.0.read(item)).collect()
    }

    fn show(&self, out: &Self::Out) -> Json {
        out.iter().map(|item| self.0.show(item)).collect()
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
        if is_origin { Ok(text) } else { Err(value.found()) }
    }

    fn show(&self, out: &String) -> Json {
        json!(out)
    }
}
