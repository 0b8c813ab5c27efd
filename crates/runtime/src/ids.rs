//! Ids of sessions and clients.

/// Whether a text can be the id of a session or a client. Ids become parts of keys, so they hold nothing that parts keys.
pub fn is_valid_id(id: &str) -> bool {
    (1..=128).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:@".contains(&byte))
}

/// What a tool may issue as the id of a session.
pub(crate) fn is_session_id(id: &str) -> bool {
    (8..=64).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Random bytes in hex, unless the operating system has none to give.
pub fn random_hex(bytes: usize) -> Option<String> {
    let mut random = vec![0_u8; bytes];
    getrandom::fill(&mut random).ok()?;
    Some(random.iter().map(|byte| format!("{byte:02x}")).collect())
}
