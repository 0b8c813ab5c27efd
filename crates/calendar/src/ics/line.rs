//! Content lines: `NAME;PARAMETER=value:value`, folded over several lines of the file.

use super::IcsError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// Where it begins in the file.
    pub(super) number: usize,
    /// In upper case.
    pub(super) name: String,
    /// Their names in upper case.
    parameters: Vec<(String, String)>,
    /// As it was written.
    pub(super) value: String,
}

impl Line {
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn parse(number: usize, text: &str) -> Result<Self, IcsError> {
        let colon = unquoted(text, ':')
            .next()
            .ok_or_else(|| IcsError::at(number, "there is no colon after the name"))?;
        let (head, value) = (&text[..colon], &text[colon + 1..]);
        let mut parts = split_unquoted(head, ';');
        let name = parts.next().unwrap_or_default().trim().to_ascii_uppercase();
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        {
            return Err(IcsError::at(number, "the line does not begin with a name"));
        }
        let parameters = parts.map(|part| {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            (key.trim().to_ascii_uppercase(), value.trim_matches('"').to_owned())
        });
        Ok(Self { number, name, parameters: parameters.collect(), value: value.to_owned() })
    }
}

/// The content lines of a file, unfolded. Line endings may be CRLF or LF; empty lines mean nothing.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Result<Line, IcsError>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut physical =
        text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).enumerate().peekable();
    std::iter::from_fn(move || {
        loop {
            let (index, first) = physical.next()?;
            let mut whole = first.to_owned();
            while let Some((_, more)) = physical.next_if(|(_, line)| line.starts_with([' ', '\t'])) {
                whole.push_str(&more[1..]);
            }
            if !whole.trim().is_empty() {
                return Some(Line::parse(index + 1, &whole));
            }
        }
    })
}

/// Where a character stands outside quotation marks.
pub(super) fn unquoted(text: &str, wanted: char) -> impl Iterator<Item = usize> {
    let mut quoted = false;
    text.char_indices().filter_map(move |(at, c)| {
        quoted ^= c == '"';
        (c == wanted && !quoted).then_some(at)
    })
}

fn split_unquoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut begin = 0;
    unquoted(text, separator).chain([text.len()]).map(move |at| {
        let part = &text[begin..at];
        begin = (at + 1).min(text.len());
        part
    })
}
