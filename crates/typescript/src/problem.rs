//! What is wrong with a file, for its author.

use std::fmt;

use quarterdeck_contracts::handler::Position;

/// Why a file in TypeScript cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeScriptProblem {
    /// Where it stands; the place is the same in the JavaScript.
    pub position: Position,
    /// One sentence that names what was found.
    pub message: String,
    /// What to write instead, when that is known.
    pub help: Option<&'static str>,
}

impl fmt::Display for TypeScriptProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)?;
        match self.help {
            Some(help) => write!(formatter, "; {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for TypeScriptProblem {}
