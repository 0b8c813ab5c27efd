//! A key that does not print itself.

use std::fmt;

/// A provider's key. It has no `Display` and cannot be serialised, and its `Debug` shows nothing of it, not even its
/// length; [`Secret::expose`] gives the text.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// The key without the white space around it: one that was read from a file usually ends in a line feed.
    pub fn new(key: impl AsRef<str>) -> Self {
        Self(key.as_ref().trim().into())
    }

    /// The key itself.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes the key from a text, should a provider or a proxy have repeated it.
    pub(crate) fn redact(&self, text: String) -> String {
        // A key of a few letters (compatible servers take any) would match ordinary words.
        if self.0.len() < 6 || !text.contains(&*self.0) {
            return text;
        }
        text.replace(&*self.0, "[key]")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl From<String> for Secret {
    fn from(key: String) -> Self {
        Self::new(key)
    }
}

impl From<&str> for Secret {
    fn from(key: &str) -> Self {
        Self::new(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_trimmed_and_never_printed() {
        let key = Secret::new(" sk-very-secret\n");
        assert_eq!(key.expose(), "sk-very-secret");
        assert_eq!(format!("{key:?} {key:#?}"), "Secret(…) Secret(…)");
        assert_eq!(key.redact("wrong key sk-very-secret!".to_owned()), "wrong key [key]!");
    }

    #[test]
    fn a_short_stand_in_key_does_not_blot_out_words() {
        assert_eq!(Secret::new("none").redact("there is none".to_owned()), "there is none");
    }
}
