//! A value as it was given, before anybody knows what it should have been.

/// What stands in a file, a variable or a flag. It may be a secret in the wrong place, so it has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// Nothing, where nothing is a default.
    Absent,
    /// Text that may mean anything: a variable or a flag has no types.
    Untyped(String),
    Text(String),
    Integer(i64),
    Boolean(bool),
    List(Vec<Value>),
    /// What no key takes, by its name for people.
    Other(&'static str),
}

impl Value {
    /// The value for the person who wrote it.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Absent => "nothing".into(),
            Self::Untyped(text) | Self::Text(text) => format!("{:?}", shortened(text)),
            Self::Integer(number) => number.to_string(),
            Self::Boolean(flag) => flag.to_string(),
            Self::List(_) => "a list".into(),
            Self::Other(what) => (*what).into(),
        }
    }

    /// What a key that takes text was given.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Untyped(text) | Self::Text(text) => Some(text.trim()),
            _ => None,
        }
    }

    /// What a key that takes whole numbers was given.
    pub(crate) fn as_whole(&self) -> Option<u64> {
        match self {
            Self::Integer(number) => u64::try_from(*number).ok(),
            Self::Untyped(text) => text.trim().replace('_', "").parse().ok(),
            _ => None,
        }
    }

    /// What a key that takes several was given. In a variable they are separated by commas.
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

fn shortened(text: &str) -> String {
    const MAX_CHARS: usize = 80;
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Boolean(flag)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::from(number as u64)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Into::into)
    }
}

impl From<Vec<String>> for Value {
    fn from(items: Vec<String>) -> Self {
        Self::List(items.into_iter().map(Self::Text).collect())
    }
}
