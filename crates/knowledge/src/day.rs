//! Days, as records and filters say them.

/// As a number that is never zero; earlier days are smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Day(pub(crate) u32);

impl Day {
    /// Reads `2025-03-14`, or the day at the beginning of a date-time.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (day, rest) = text.split_at_checked(10)?;
        if !(rest.is_empty() || rest.starts_with(['T', 't', ' '])) {
            return None;
        }
        let bytes = day.as_bytes();
        let digits = |from: usize, to: usize| -> Option<u32> {
            let part = &bytes[from..to];
            let all_digits = part.iter().all(u8::is_ascii_digit);
            all_digits.then(|| part.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')))
        };
        let (year, month, day) = (digits(0, 4)?, digits(5, 7)?, digits(8, 10)?);
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            4 | 6 | 9 | 11 => 30,
            2 if is_leap => 29,
            2 => 28,
            1..=12 => 31,
            _ => return None,
        };
        let is_sound = bytes[4] == b'-' && bytes[7] == b'-' && (1..=days).contains(&day);
        is_sound.then_some(Self(year * 10_000 + month * 100 + day))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_read_from_a_date_or_a_date_time() {
        assert!(Day::parse("2025-03-14") < Day::parse("2025-12-01T10:00:00Z"));
        assert_eq!(Day::parse("2025-03-14"), Day::parse(" 2025-03-14T23:59:59+02:00"));
        assert!(Day::parse("2024-02-29").is_some());
    }

    #[test]
    fn what_is_no_day_is_not_taken_for_one() {
        for bad in [
            "",
            "2025",
            "2025-3-14",
            "2025-13-01",
            "2023-02-29",
            "2025-04-31",
            "14.03.2025",
            "2025-03-141",
            "２０２５-03",
        ] {
            assert_eq!(Day::parse(bad), None, "{bad}");
        }
    }
}
