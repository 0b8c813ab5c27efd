//! Where a value came from.

use std::fmt;

/// Where a value came from. Later ones in this list win over earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    Default,
    /// A line of the configuration file.
    File {
        path: String,
        line: usize,
    },
    /// An environment variable.
    Variable(String),
    /// A flag, such as `--listen`.
    Flag(&'static str),
    /// The file that holds a secret.
    SecretFile(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{path}:{line}"),
            Self::Variable(name) => write!(f, "env {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
            Self::SecretFile(path) => write!(f, "file {path}"),
        }
    }
}

/// The variable that sets a key: `text.provider` is `QUARTERDECK_TEXT__PROVIDER`.
pub(crate) fn variable_of(key: &str) -> String {
    format!("QUARTERDECK_{}", key.replace('.', "__").to_uppercase())
}
