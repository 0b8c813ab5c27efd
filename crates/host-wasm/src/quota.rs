//! How much output a call may write.

/// What one call may still send to one of log, audit, progress and partial results.
#[derive(Debug)]
pub(crate) struct Quota {
    left: usize,
    exhausted: bool,
}

/// Whether output is within the quota.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum QuotaVerdict {
    Granted,
    /// No more, and this is the first time that it had to be refused.
    JustExhausted,
    Refused,
}

impl Quota {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { left: bytes, exhausted: false }
    }

    /// Charges a message of `bytes`. Each costs a little more than its text, so that empty ones end too.
    pub(crate) fn spend(&mut self, bytes: usize) -> QuotaVerdict {
        const MESSAGE_OVERHEAD_BYTES: usize = 32;
        let cost = bytes.saturating_add(MESSAGE_OVERHEAD_BYTES);
        if !self.exhausted && cost <= self.left {
            self.left -= cost;
            return QuotaVerdict::Granted;
        }
        match std::mem::replace(&mut self.exhausted, true) {
            false => QuotaVerdict::JustExhausted,
            true => QuotaVerdict::Refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_reports_once_that_it_is_exhausted() {
        let mut quota = Quota::new(100);
        assert_eq!(quota.spend(60), QuotaVerdict::Granted);
        assert_eq!(quota.spend(0), QuotaVerdict::JustExhausted);
        assert_eq!(quota.spend(0), QuotaVerdict::Refused);
    }
}
