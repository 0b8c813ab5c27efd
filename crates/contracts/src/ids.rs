//! Names that must not be mistaken for one another.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The id of a tool, in a form that every provider accepts as a function name:
/// a letter or underscore, then letters, digits or underscores, at most 64 characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "json-schema", schemars(inline))]
pub struct ToolId(String);

impl ToolId {
    /// Every provider accepts ids up to this length.
    pub const MAX_LENGTH: usize = 64;

    /// Takes a name that is already an id, or says what is wrong with it.
    pub fn parse(name: &str) -> Result<Self, InvalidToolId> {
        let mut characters = name.chars();
        let first = characters.next().ok_or(InvalidToolId::Empty)?;
        if !(first.is_ascii_alphabetic() || first == '_') {
            return Err(InvalidToolId::BadFirst(first));
        }
        if let Some(bad) = characters.find(|c| !(c.is_ascii_alphanumeric() || *c == '_')) {
            return Err(InvalidToolId::BadCharacter(bad));
        }
        if name.len() > Self::MAX_LENGTH {
            return Err(InvalidToolId::TooLong(name.len()));
        }
        Ok(Self(name.to_owned()))
    }

    /// The id that a folder's name stands for: dashes become underscores.
    pub fn from_folder(folder: &str) -> Result<Self, InvalidToolId> {
        Self::parse(&folder.replace('-', "_"))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ToolId {
    type Error = InvalidToolId;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::parse(&name)
    }
}

impl From<ToolId> for String {
    fn from(id: ToolId) -> Self {
        id.0
    }
}

/// Why a name cannot be a tool's id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidToolId {
    /// No characters at all.
    #[error("a tool id cannot be empty")]
    Empty,
    /// Providers want a letter or an underscore first.
    #[error("a tool id begins with a letter or an underscore, not with {0:?}")]
    BadFirst(char),
    /// A character that some provider refuses.
    #[error("a tool id has only letters, digits and underscores, not {0:?}")]
    BadCharacter(char),
    /// Longer than the strictest provider allows.
    #[error("a tool id has at most 64 characters, not {0}")]
    TooLong(usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_names_its_tool_with_underscores() {
        assert_eq!(ToolId::from_folder("kb-search").unwrap().as_str(), "kb_search");
    }

    #[test]
    fn names_that_a_provider_would_refuse_are_not_ids() {
        assert_eq!(ToolId::parse(""), Err(InvalidToolId::Empty));
        assert_eq!(ToolId::parse("2fast"), Err(InvalidToolId::BadFirst('2')));
        assert_eq!(ToolId::parse("kb.search"), Err(InvalidToolId::BadCharacter('.')));
        assert_eq!(ToolId::parse(&"a".repeat(65)), Err(InvalidToolId::TooLong(65)));
        assert!(ToolId::parse(&"a".repeat(64)).is_ok());
    }
}
