//! Where a list goes on: opaque for clients, and of use for the list that it was made for alone.
//!
//! It holds the last name of the page before, which the client has seen. A cursor that a client invents begins elsewhere in
//! what the client may see anyway, so it needs no signature.

use base64_simd::URL_SAFE_NO_PAD;

/// Longer than any that we make: the longest name is an id of 200 characters.
const MAX_CURSOR_BYTES: usize = 2_048;

/// A list that is given in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PagedList {
    Resources,
    Prompts,
}

/// A cursor that was not made for this list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("The cursor is not one of this list. Ask for the list again without a cursor.")]
pub struct InvalidCursor;

impl PagedList {
    fn mark(self) -> char {
        match self {
            Self::Resources => 'r',
            Self::Prompts => 'p',
        }
    }

    /// The cursor for what comes after a name.
    pub fn cursor_after(self, name: &str) -> String {
        URL_SAFE_NO_PAD.encode_to_string(format!("{}{name}", self.mark()))
    }

    /// The name that the list goes on after.
    pub fn read_cursor(self, cursor: &str) -> Result<String, InvalidCursor> {
        if cursor.len() > MAX_CURSOR_BYTES {
            return Err(InvalidCursor);
        }
        let decoded = URL_SAFE_NO_PAD.decode_to_vec(cursor).map_err(|_| InvalidCursor)?;
        let text = String::from_utf8(decoded).map_err(|_| InvalidCursor)?;
        text.strip_prefix(self.mark()).map(str::to_owned).ok_or(InvalidCursor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cursor_of_another_list_or_of_none_is_refused() {
        let prompts = PagedList::Prompts.cursor_after("kb_search");
        assert_eq!(PagedList::Prompts.read_cursor(&prompts).as_deref(), Ok("kb_search"));
        for cursor in [prompts.as_str(), "", "!", "page 2", &"A".repeat(5_000)] {
            assert_eq!(PagedList::Resources.read_cursor(cursor), Err(InvalidCursor), "{cursor}");
        }
    }

    proptest! {
        #[test]
        fn a_cursor_leads_back_to_its_name(name in "\\PC{0,200}") {
            let cursor = PagedList::Resources.cursor_after(&name);
            prop_assert_eq!(PagedList::Resources.read_cursor(&cursor), Ok(name));
        }
    }
}
