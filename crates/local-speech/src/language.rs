//! Languages by their tags.

/// The language of a tag without its region, in lower case: `de` for `de-AT`. `None` if it is no tag.
pub(crate) fn primary(tag: &str) -> Option<String> {
    let language = tag.split(['-', '_']).next()?;
    let is_tag = (2..=3).contains(&language.len()) && language.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_tag.then(|| language.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_read_without_its_region() {
        assert_eq!(primary("de-AT").as_deref(), Some("de"));
        assert_eq!(primary("EN_us").as_deref(), Some("en"));
    }

    #[test]
    fn what_could_be_an_option_or_a_path_is_no_language() {
        for tag in ["", "-v", "../x", "e", "engl", "e n", "é\u{e9}"] {
            assert_eq!(primary(tag), None, "{tag}");
        }
    }
}
