//! Runs of digit groups, and the groups in them that cannot be part of a phone number.

use std::ops::Range;

/// The longest stretch of separators within a number, as in `(415) - 555`.
const MAX_GAP_CHARS: usize = 3;

#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) plus: bool,
    pub(super) groups: Vec<Group>,
    pub(super) extension: Option<Extension>,
}

#[derive(Debug)]
pub(super) struct Group {
    /// In ASCII, whatever script they were written in.
    pub(super) digits: String,
    /// In bytes, with a `+` or parenthesis that belongs to it.
    range: Range<usize>,
    /// What stands between the group before and this one.
    gap: String,
    pub(super) parenthesized: bool,
    /// A number may begin here, or end before here: there is room between this group and the one before.
    pub(super) can_begin: bool,
    pub(super) usable: bool,
}

#[derive(Debug)]
pub(super) struct Extension {
    pub(super) digits: String,
    pub(super) end: usize,
}

impl Run {
    pub(super) fn range(&self, span: Range<usize>) -> Range<usize> {
        self.groups[span.start].range.start..self.groups[span.end - 1].range.end
    }
}

/// All runs outside the taken ranges, with their groups judged.
pub(super) fn scan(text: &str, taken: &[Range<usize>]) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find(|c| ascii_digit(c).is_some()).map(|offset| at + offset) {
        if let Some(range) = taken.iter().find(|range| range.contains(&start)) {
            at = range.end;
            continue;
        }
        let limit =
            taken.iter().map(|range| range.start).filter(|taken| *taken > start).min().unwrap_or(text.len());
        let run = read_run(text, start, limit);
        at = run.groups.last().map_or(limit, |group| group.range.end);
        at = run.extension.as_ref().map_or(at, |extension| extension.end);
        runs.push(run);
    }
    runs
}

fn read_run(text: &str, start: usize, limit: usize) -> Run {
    let mut run = Run::default();
    let mut at = start;
    let mut gap = String::new();
    loop {
        let (digits, end) = take_digits(&text[..limit], at);
        run.groups.push(Group {
            digits,
            range: at..end,
            can_begin: gap.contains(|c: char| c.is_whitespace() || c == '/' || c == '('),
            gap,
            parenthesized: false,
            usable: true,
        });
        let length = gap_length(&text[end..limit]);
        if length == 0 {
            break;
        }
        gap = text[end..end + length].to_owned();
        at = end + length;
    }
    pair_parentheses(text, &mut run);
    take_plus(text, &mut run);
    run.extension = read_extension(text, run.groups.last().map_or(limit, |group| group.range.end), limit);
    set_aside(text, &mut run);
    run
}

fn take_digits(text: &str, start: usize) -> (String, usize) {
    let mut digits = String::new();
    let mut end = start;
    for c in text[start..].chars() {
        let Some(digit) = ascii_digit(c) else { break };
        digits.push(digit);
        end += c.len_utf8();
    }
    (digits, end)
}

/// The bytes of separators before the next group, or 0 when the run ends here.
fn gap_length(rest: &str) -> usize {
    let is_separator =
        |c: char| matches!(c, ' ' | '\u{a0}' | '\u{2009}' | '\u{202f}' | '.' | '/' | '(' | ')') || is_dash(c);
    let gap: usize = rest.chars().take_while(|c| is_separator(*c)).map(char::len_utf8).sum();
    let goes_on = rest[gap..].starts_with(|c| ascii_digit(c).is_some());
    if goes_on && rest[..gap].chars().count() <= MAX_GAP_CHARS { gap } else { 0 }
}

fn is_dash(c: char) -> bool {
    matches!(c, '-' | '\u{2010}'..='\u{2013}' | '\u{2212}')
}

fn ascii_digit(c: char) -> Option<char> {
    let zero = ['0', '٠', '۰', '०', '０'].into_iter().rfind(|zero| *zero <= c)?;
    char::from_digit(c as u32 - zero as u32, 10)
}

/// A group that has a parenthesis on both sides owns them.
fn pair_parentheses(text: &str, run: &mut Run) {
    for index in 0..run.groups.len() {
        let Range { start, end } = run.groups[index].range;
        if text[..start].ends_with('(') && text[end..].starts_with(')') {
            let group = &mut run.groups[index];
            group.parenthesized = true;
            group.range = start - 1..end;
        }
    }
}

fn take_plus(text: &str, run: &mut Run) {
    let first = &mut run.groups[0];
    let before = text[..first.range.start].trim_end_matches(['(', ' ']);
    let sign = ['+', '＋'].into_iter().find(|sign| before.ends_with(*sign));
    if let Some(sign) = sign
        && first.range.start - before.len() <= 1
    {
        run.plus = true;
        first.range.start = before.len() - sign.len_utf8();
    }
}

/// `ext. 12`, `extension 12`, `x12`, `;ext=12`.
fn read_extension(text: &str, after: usize, limit: usize) -> Option<Extension> {
    let rest = text[after..limit].trim_start_matches([' ', '\u{a0}', ',', ';']);
    let word_end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    if !["ext", "extn", "extension", "x"].contains(&rest[..word_end].to_ascii_lowercase().as_str()) {
        return None;
    }
    let number = rest[word_end..].trim_start_matches(['.', ':', '=', ' ', '\u{a0}']);
    let (digits, end) = take_digits(number, 0);
    let ends_clean = !number[end..].starts_with(|c: char| c.is_alphanumeric());
    (1..=7).contains(&digits.len()).then_some(())?;
    ends_clean.then(|| Extension { digits, end: limit - number.len() + end })
}

/// Marks the groups that are part of something else.
fn set_aside(text: &str, run: &mut Run) {
    if !run.plus {
        set_aside_look_alikes(&mut run.groups);
    }
    let start = run.groups[0].range.start;
    if is_attached_before(&text[..start]) {
        spoil(&mut run.groups, 0);
    }
    let last = run.groups.len() - 1;
    if run.extension.is_none() && is_attached_after(&text[run.groups[last].range.end..]) {
        spoil(&mut run.groups, last);
    }
}

/// Sets a group aside with its neighbours up to the next room.
fn spoil(groups: &mut [Group], index: usize) {
    let first = (0..=index).rev().find(|i| groups[*i].can_begin).unwrap_or(0);
    let end = (index + 1..groups.len()).find(|i| groups[*i].can_begin).unwrap_or(groups.len());
    groups[first..end].iter_mut().for_each(|group| group.usable = false);
}

/// A letter, a sign or a decimal point right before: the digits belong to what stands there.
fn is_attached_before(before: &str) -> bool {
    let mut chars = before.chars().rev();
    let Some(last) = chars.next() else { return false };
    let beyond = chars.next();
    match last {
        '.' | ',' | ':' => beyond.is_some_and(|c| ascii_digit(c).is_some()),
        '-' | '/' => beyond.is_some_and(char::is_alphanumeric),
        _ => last.is_alphanumeric() || matches!(last, '_' | '#' | '№' | '@' | '=' | '+' | '*'),
    }
}

fn is_attached_after(after: &str) -> bool {
    let mut chars = after.chars();
    let Some(first) = chars.next() else { return false };
    let beyond = chars.next();
    match first {
        '.' | ',' | ':' => beyond.is_some_and(|c| ascii_digit(c).is_some()),
        '-' | '/' => beyond.is_some_and(char::is_alphanumeric),
        _ => first.is_alphanumeric() || matches!(first, '_' | '@' | '%' | '°' | '='),
    }
}

/// Sets aside dates, spans of years, decimal numbers and IPv4 addresses.
fn set_aside_look_alikes(groups: &mut [Group]) {
    for start in 0..groups.len() {
        let ends = start + 1..=groups.len().min(start + 4);
        let look_alike = ends.rev().find(|end| {
            let values: Vec<&str> = groups[start..*end].iter().map(|group| group.digits.as_str()).collect();
            let gap =
                groups.get(start + 1).filter(|_| values.len() > 1).map_or("", |group| group.gap.as_str());
            let even = groups[start..*end].iter().skip(1).all(|group| group.gap == gap);
            // The whole of its kind: a dotted number with five groups is no IPv4 address and a part.
            let joins_before = start > 0 && groups[start].gap == gap;
            let joins_after = groups.get(*end).is_some_and(|group| group.gap == gap);
            even && !joins_before && !joins_after && is_look_alike(&values, gap)
        });
        if let Some(end) = look_alike {
            groups[start..end].iter_mut().for_each(|group| group.usable = false);
        }
    }
}

fn is_look_alike(values: &[&str], gap: &str) -> bool {
    let dash = gap.trim().chars().all(is_dash) && !gap.trim().is_empty();
    match values {
        [packed] => packed.len() == 8 && is_date(&packed[..4], &packed[4..6], &packed[6..]),
        [_, _] if gap == "." => true,
        [from, to] => dash && is_year(from) && is_year(to),
        [a, b, c] if matches!(gap, "-" | "." | "/") => {
            is_date(a, b, c) || is_date(c, b, a) || is_date(c, a, b)
        }
        [a, b, c, d] => gap == "." && [a, b, c, d].iter().all(|part| part.parse::<u8>().is_ok()),
        _ => false,
    }
}

fn is_date(year: &str, month: &str, day: &str) -> bool {
    let within = |value: &str, most: u32| {
        value.len() <= 2 && value.parse().is_ok_and(|value: u32| (1..=most).contains(&value))
    };
    (is_year(year) || year.len() == 2) && within(month, 12) && within(day, 31)
}

fn is_year(value: &str) -> bool {
    value.len() == 4 && (value.starts_with("19") || value.starts_with("20"))
}
