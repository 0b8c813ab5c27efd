//! A value as it was given, before it is known what its key takes.

/// A value of the file, a variable or a flag. It may be a secret in the wrong place, so it has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// A variable or a flag, which has no type: it may mean a number, a list or a boolean too.
    Untyped(String),
    Text(String),
    Integer(i64),
    Boolean(bool),
    List(Vec<Value>),
    /// What no key takes, described.
    Other(&'static str),
}

impl Value {
    /// The value in an error message.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Untyped(text) | Self::Text(text) => format!("{:?}", shorten(text)),
            Self::Integer(number) => number.to_string(),
            Self::Boolean(flag) => flag.to_string(),
            Self::List(_) => "a list".into(),
            Self::Other(what) => (*what).into(),
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Untyped(text) | Self::Text(text) => Some(text.trim()),
            _ => None,
        }
    }

    /// Text that is not empty and has no control characters.
    pub(crate) fn as_line(&self) -> Option<&str> {
        self.as_text().filter(|text| !text.is_empty() && !text.contains(char::is_control))
    }

    pub(crate) fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Boolean(flag) => Some(*flag),
            Self::Untyped(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    pub(crate) fn as_whole(&self) -> Option<u64> {
        match self {
            Self::Integer(number) => u64::try_from(*number).ok(),
            Self::Untyped(text) => text.trim().replace('_', "").parse().ok(),
            _ => None,
        }
    }

    /// Items of a variable or a flag are separated by commas.
    pub(crate) fn as_list(&self) -> Option<Vec<Value>> {
        match self {
            Self::List(items) => Some(items.clone()),
            Self::Untyped(text) => {
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                Some(items.map(|item| Self::Untyped(item.into())).collect())
            }
            _ => None,
        }
    }
}

fn shorten(text: &str) -> String {
    const MAX_CHARS: usize = 80;
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
