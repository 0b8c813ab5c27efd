//! Small steps for reading text from left to right.

/// Removes `count` digits from the front and returns their value.
pub(super) fn digits(text: &mut &str, count: usize) -> Option<u32> {
    let (front, rest) = text.split_at_checked(count)?;
    let value = front.bytes().all(|byte| byte.is_ascii_digit()).then(|| front.parse().ok())??;
    *text = rest;
    Some(value)
}

/// Removes `prefix` from the front, if it is there.
pub(super) fn skip(text: &mut &str, prefix: char) -> bool {
    match text.strip_prefix(prefix) {
        Some(rest) => {
            *text = rest;
            true
        }
        None => false,
    }
}

/// Removes what satisfies `test` from the front and returns it.
pub(super) fn take_while<'t>(text: &mut &'t str, test: impl Fn(char) -> bool) -> &'t str {
    let end = text.find(|character| !test(character)).unwrap_or(text.len());
    let (front, rest) = text.split_at(end);
    *text = rest;
    front
}

/// Whether the text consists of characters that satisfy `test` and of percent-escapes.
pub(super) fn is_made_of(text: &str, test: impl Fn(char) -> bool) -> bool {
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        let is_escape = || {
            let digits = rest.as_str().as_bytes();
            character == '%' && digits.len() >= 2 && digits[..2].iter().all(u8::is_ascii_hexdigit)
        };
        if test(character) {
            continue;
        }
        if !is_escape() {
            return false;
        }
        rest.nth(1);
    }
    true
}

/// Whether all of it, and at least one character, are letters or digits with hyphens only inside.
pub(super) fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edges = [bytes.first(), bytes.last()];
    edges.iter().all(|edge| edge.is_some_and(u8::is_ascii_alphanumeric))
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

/// What `\s` means in ECMAScript.
pub(super) fn is_ecma_space(character: char) -> bool {
    (character.is_whitespace() && character != '\u{85}') || character == '\u{feff}'
}
