//! What a voice should say: “Tuesday the 13th of January at half past nine in the morning”.
//!
//! The year is said only when it is not the current one, and the time zone never is: a caller who needs it
//! said has it in the answer.

use icu_datetime::fieldsets::{MDE, YMDE};
use icu_datetime::{DateTimeFormatter, DateTimeFormatterLoadError};
use icu_locale_core::Locale;
use jiff::Zoned;
use jiff::civil::Time;

pub(super) fn words(
    there: &Zoned,
    now: &Zoned,
    locale: &Locale,
) -> Result<String, DateTimeFormatterLoadError> {
    let this_year = there.year() == now.year();
    if locale.id.language.as_str() == "en" {
        Ok(in_english(there, this_year))
    } else if this_year {
        let fields = MDE::long().with_time_hm();
        Ok(DateTimeFormatter::try_new(locale.into(), fields)?.format(there).to_string())
    } else {
        let fields = YMDE::long().with_time_hm();
        Ok(DateTimeFormatter::try_new(locale.into(), fields)?.format(there).to_string())
    }
}

fn in_english(there: &Zoned, this_year: bool) -> String {
    let weekday = there.strftime("%A");
    let month = there.strftime("%B");
    let day = ordinal(there.day());
    let year = if this_year { String::new() } else { format!(" {}", there.year()) };
    format!("{weekday} the {day} of {month}{year} at {}", time_in_english(there.time()))
}

/// Seconds are not said.
pub(super) fn time_in_english(time: Time) -> String {
    let (hour, minute) = (time.hour(), time.minute());
    let this_hour = hour_name(hour);
    let clock = match minute {
        0 if hour == 0 => return "midnight".to_owned(),
        0 if hour == 12 => return "noon".to_owned(),
        0 => format!("{this_hour} o'clock"),
        1..=9 => format!("{this_hour} oh {}", number(minute)),
        15 => format!("a quarter past {this_hour}"),
        30 => format!("half past {this_hour}"),
        45 => format!("a quarter to {}", hour_name((hour + 1) % 24)),
        _ => format!("{this_hour} {}", number(minute)),
    };
    format!("{clock} {}", part_of_day(hour))
}

fn part_of_day(hour: i8) -> &'static str {
    match hour {
        1..12 => "in the morning",
        12..17 => "in the afternoon",
        17..21 => "in the evening",
        _ => "at night",
    }
}

fn hour_name(hour: i8) -> String {
    number(if hour % 12 == 0 { 12 } else { hour % 12 })
}

/// A number below sixty in words.
fn number(n: i8) -> String {
    const SMALL: [&str; 20] = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ];
    const TENS: [&str; 6] = ["", "", "twenty", "thirty", "forty", "fifty"];
    let n = usize::from(n.unsigned_abs());
    match (n / 10, n % 10) {
        (0 | 1, _) => SMALL[n].to_owned(),
        (tens, 0) => TENS[tens].to_owned(),
        (tens, ones) => format!("{}-{}", TENS[tens], SMALL[ones]),
    }
}

fn ordinal(day: i8) -> String {
    let suffix = match day {
        1 | 21 | 31 => "st",
        2 | 22 => "nd",
        3 | 23 => "rd",
        _ => "th",
    };
    format!("{day}{suffix}")
}
