//! How a call ends, before anything is made of it.

/// How a call ended.
#[derive(Debug, PartialEq)]
pub enum Ending {
    /// The module returned these bytes.
    Returned(Vec<u8>),
    /// It trapped, or did what its interface does not allow.
    Crashed(String),
    /// It went over this limit.
    OverLimit(&'static str),
    /// It waits for something that nothing will bring: no request is open.
    Idle,
    /// It was stopped at its deadline, while it computed.
    Stopped,
}
