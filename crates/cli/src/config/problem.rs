//! The problems of a configuration: all at once, each with its place and a way out.

use std::fmt;

use serde_json::{Value as Json, json};

use super::origin::Origin;
use crate::terminal::{count, plain};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) origin: Origin,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// All problems, in the order of their places. Never holds the text of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    pub(crate) fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort_by(|one, other| one.origin.cmp(&other.origin));
        problems.dedup();
        Self(problems)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One text for each, with its place and its way out.
    pub(crate) fn texts(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|Problem { origin, message, help }| {
            let place = match origin {
                Origin::Default => String::new(),
                place => format!("{}: ", plain(&place.to_string())),
            };
            let help = help.as_deref().map(|help| format!("\n  help: {}", plain(help)));
            format!("{place}{}{}", plain(message), help.unwrap_or_default())
        })
    }

    pub(crate) fn to_json(&self) -> Json {
        let each = |problem: &Problem| {
            json!({
                "origin": problem.origin.to_string(),
                "message": problem.message,
                "help": problem.help,
            })
        };
        json!({ "problems": self.0.iter().map(each).collect::<Vec<_>>() })
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the configuration has {}", count(self.0.len(), "problem"))?;
        for Problem { origin, message, help } in &self.0 {
            match origin {
                Origin::Default => write!(f, "\n{}", plain(message))?,
                place => write!(f, "\n{}: {}", plain(&place.to_string()), plain(message))?,
            }
            if let Some(help) = help {
                write!(f, "\n  help: {}", plain(help))?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
