//! Which property names each provider takes.

/// `^[a-zA-Z_][a-zA-Z0-9_]{0,63}$`
pub(super) fn gemini_native(name: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.len() <= 64 && name.starts_with(first) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// `^[a-zA-Z0-9_.-]{1,64}$`
pub(super) fn anthropic(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    (1..=64).contains(&name.len()) && name.chars().all(allowed)
}
