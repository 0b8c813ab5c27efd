//! Dates, times, money, measures and telephone numbers as they are said.

use std::sync::LazyLock;

use regex::Regex;

use super::units::{MONTHS, currency, unit, words};
use super::{pattern, replace};
use crate::language::Language;

/// Figures as words, where a voice would read them otherwise than a person.
pub(super) fn spell(text: &str, language: Language) -> String {
    let text = phone_numbers(text);
    let text = dates(&text, language);
    let text = times(&text, language);
    let text = money(&text, language);
    let text = measures(&text, language);
    let text = ranges(&text, language);
    let text = grouped(&text, language);
    symbols(&text, language)
}

/// Digit by digit, with a pause between the groups.
fn phone_numbers(text: &str) -> String {
    static PHONE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?x)
            \+ \d{1,3} (?: [\s.-]? \(? \d{1,4} \)? ){2,7}
          | \( 0? \d{2,4} \) [\s-]? \d{3,4} [\s-]? \d{3,4} \b
          | \b \d{3} - \d{3} - \d{4} \b
          | \b 0 \d{2,4} [\s/-] \d{3,4} [\s-]? \d{3,5} \b",
        )
    });
    replace(text, &PHONE, |group| {
        let number = group(0);
        let groups = number.split(|letter: char| !letter.is_ascii_digit() && letter != '+');
        let groups: Vec<String> = groups.filter(|group| !group.is_empty()).map(spaced_digits).collect();
        let tail = if number.ends_with(char::is_whitespace) { " " } else { "" };
        format!("{}{tail}", groups.join(", "))
    })
}

fn spaced_digits(digits: &str) -> String {
    let digits: Vec<String> = digits
        .chars()
        .map(|digit| if digit == '+' { "plus".to_owned() } else { digit.to_string() })
        .collect();
    digits.join(" ")
}

fn dates(text: &str, language: Language) -> String {
    static MOMENT: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"\b(\d{4})-(\d{2})-(\d{2})[T ](\d{2}:\d{2})(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?\b?")
    });
    static DAY: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b(\d{4})-(\d{2})-(\d{2})\b"));
    let text = replace(text, &MOMENT, |group| match date(&group(1), &group(2), &group(3), language) {
        Some(day) => format!("{day} {} {}", words(language).at, group(4)).replace("  ", " "),
        None => group(0),
    });
    replace(&text, &DAY, |group| date(&group(1), &group(2), &group(3), language).unwrap_or_else(|| group(0)))
}

fn date(year: &str, month: &str, day: &str, language: Language) -> Option<String> {
    let month: usize = month.parse().ok()?;
    let day: u32 = day.parse().ok().filter(|day| (1..=31).contains(day))?;
    let (_, names) = MONTHS.iter().find(|(of, _)| *of == language)?;
    let month = names.get(month.checked_sub(1)?)?;
    Some(match language {
        Language::German => format!("{day}. {month} {year}"),
        Language::Spanish => format!("{day} de {month} de {year}"),
        _ => format!("{day} {month} {year}"),
    })
}

fn times(text: &str, language: Language) -> String {
    static TIME: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"(?i)\b([01]?\d|2[0-4]):([0-5]\d)(?::[0-5]\d)?(\s?[ap]\.?m\b\.?)?(\s+(?:Uhr|h)\b)?")
    });
    replace(text, &TIME, |group| {
        let (Ok(hour), Ok(minute)) = (group(1).parse::<u32>(), group(2).parse::<u32>()) else {
            return group(0);
        };
        match language {
            Language::English => english_time(hour, minute, &group(3)),
            Language::German if minute == 0 => format!("{hour} Uhr"),
            Language::German => format!("{hour} Uhr {minute}"),
            Language::French if minute == 0 => format!("{hour} heures"),
            Language::French => format!("{hour} heures {minute}"),
            Language::Spanish if minute == 0 => format!("{hour} horas"),
            Language::Spanish => format!("{hour} y {minute}"),
            Language::Other => group(0),
        }
    })
}

fn english_time(hour: u32, minute: u32, half: &str) -> String {
    if half.is_empty() && minute == 0 && hour.is_multiple_of(12) {
        return if hour == 12 { "noon" } else { "midnight" }.to_owned();
    }
    let is_afternoon = if half.is_empty() { (12..24).contains(&hour) } else { half.contains(['p', 'P']) };
    let half = if is_afternoon { "p.m." } else { "a.m." };
    let hour = if hour.is_multiple_of(12) { 12 } else { hour % 12 };
    match minute {
        0 => format!("{hour} {half}"),
        1..=9 => format!("{hour} oh {minute} {half}"),
        _ => format!("{hour} {minute} {half}"),
    }
}

fn money(text: &str, language: Language) -> String {
    static BEFORE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"(?i)([$€£¥])\s?(\d[\d.,]*\d|\d)(\s?(?:k|m|bn|million|billion|trillion|Mio|Mrd)\b\.?)?")
    });
    static AFTER: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\d[\d.,]*\d|\d)\s?([€£¥$])"));
    let say = |amount: String, scale: String, sign: String| {
        let scale = match scale.trim().to_lowercase().as_str() {
            "" => String::new(),
            "k" => words(language).thousand.to_owned(),
            "m" => words(language).million.to_owned(),
            "bn" => words(language).billion.to_owned(),
            scale => scale.to_owned(),
        };
        amount_of(&amount, &scale, &sign, language)
    };
    let text = replace(text, &BEFORE, |group| say(group(2), group(3), group(1)));
    replace(&text, &AFTER, |group| say(group(1), String::new(), group(2)))
}

fn amount_of(amount: &str, scale: &str, sign: &str, language: Language) -> String {
    let Some(names) = currency(sign, language) else { return format!("{amount} {sign}") };
    if !scale.is_empty() {
        return format!("{amount} {scale} {}", names.many);
    }
    let decimal = if language == Language::English { '.' } else { ',' };
    let (whole, cents) = match amount.split_once(decimal) {
        Some((whole, cents)) if cents.len() == 2 => (whole, cents.trim_start_matches('0')),
        _ => (amount, ""),
    };
    let name = if whole == "1" { names.one } else { names.many };
    match (cents, language) {
        ("", _) => format!("{whole} {name}"),
        (cents, Language::English) if whole == "0" => format!("{cents} {}", names.cents),
        (cents, Language::English) => format!("{whole} {name} {cents}"),
        (cents, _) => format!("{whole} {name} {cents}"),
    }
}

/// Units after a number, and per cent.
fn measures(text: &str, language: Language) -> String {
    static PERCENT: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\d)\s?%"));
    // One letter needs its space: `1890s` are no seconds.
    static UNIT: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(\d(?:[\d.,]*\d)?)(?:\s?(km/h|m/s|kWh|km|cm|mm|kg|mg|GB|MB|kB|TB|GHz|MHz|kHz|Hz|kW|MW|ms|ml|mph|ft|lbs?|°C|°F|km²|m²|m³|°)|\s(m|g|s|h|l|min|t))(?:\b|$|\s|[,.;:!?)])",
        )
    });
    let per_cent = words(language).per_cent;
    let text = match per_cent.is_empty() {
        true => text.to_owned(),
        false => replace(text, &PERCENT, |group| format!("{} {per_cent}", group(1))),
    };
    if language != Language::English {
        return text;
    }
    replace(&text, &UNIT, |group| {
        let (whole, sign) = (group(0), format!("{}{}", group(2), group(3)));
        let Some(name) = unit(&sign, group(1) == "1") else { return whole };
        let end = whole.chars().last().filter(|last| !last.is_alphanumeric() && !sign.ends_with(*last));
        format!("{} {name}{}", group(1), end.map_or_else(String::new, |end| end.to_string()))
    })
}

fn ranges(text: &str, language: Language) -> String {
    static RANGE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\d)\s?–\s?(\d)"));
    match words(language).to {
        "" => text.to_owned(),
        to => replace(text, &RANGE, |group| format!("{} {to} {}", group(1), group(2))),
    }
}

/// Thousands are one number.
fn grouped(text: &str, language: Language) -> String {
    static COMMAS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b\d{1,3}(?:,\d{3})+\b"));
    static POINTS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b\d{1,3}(?:\.\d{3}){2,}\b"));
    static SPACES: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b\d{1,3}(?:[\x{a0}\x{202f}]\d{3})+\b"));
    let text = replace(text, &SPACES, |group| group(0).replace(['\u{a0}', '\u{202f}'], ""));
    match language {
        Language::English => replace(&text, &COMMAS, |group| group(0).replace(',', "")),
        _ => replace(&text, &POINTS, |group| group(0).replace('.', "")),
    }
}

fn symbols(text: &str, language: Language) -> String {
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?:#|\bNo\.\s)(\d)"));
    static ABOUT: LazyLock<Regex> = LazyLock::new(|| pattern(r"(^|\s)[~≈]\s?(\d)"));
    let words = words(language);
    let mut text =
        text.replace(['→', '⇒', '➜'], ", ").replace(" / ", ", ").replace(" — ", ", ").replace(" – ", ", ");
    if words.and.is_empty() {
        return text;
    }
    text = replace(&text, &NUMBER, |group| format!("{} {}", words.number, group(1)));
    text = replace(&text, &ABOUT, |group| format!("{}{} {}", group(1), words.about, group(2)));
    text = text.replace(" & ", &format!(" {} ", words.and)).replace(" @ ", &format!(" {} ", words.at_sign));
    text = text.replace('×', &format!(" {} ", words.times)).replace(" + ", " plus ");
    if language == Language::English {
        for (short, long) in
            [("e.g.", "for example"), ("i.e.", "that is"), ("vs.", "versus"), ("approx.", "about")]
        {
            text = text.replace(short, long);
        }
    }
    text
}
