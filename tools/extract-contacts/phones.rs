//! Phone numbers in running text.
//!
//! A *run* is a stretch of digit groups with the separators that are usual in phone numbers. Groups that
//! are clearly part of something else (a date, an address of a computer, a price, an order number) are set
//! aside; of what is left, the longest stretch that the numbering plans accept is a number.

mod context;
mod run;

use std::ops::{Range, RangeInclusive};

use phonenumber::country::Id as Region;

use super::number::{Number, NumberForm};
use run::{Group, Run};

#[derive(Debug)]
pub(super) struct PhoneMatch {
    pub(super) number: Number,
    /// In bytes.
    pub(super) range: Range<usize>,
}

/// Beyond these the numbering plans need not be asked. Without a limit, a page full of digits would cost seconds.
const DIGITS: RangeInclusive<usize> = 7..=17;
const MAX_GROUPS: usize = 8;

/// The numbering plan of North America, where digits are always grouped alike.
const NORTH_AMERICA: u16 = 1;

/// The phone numbers of a text, outside the ranges that are taken.
pub(super) fn find(text: &str, taken: &[Range<usize>], region: Region) -> Vec<PhoneMatch> {
    let mut found = Vec::new();
    for run in run::scan(text, taken) {
        let mut first = 0;
        while first < run.groups.len() {
            match match_from(text, &run, first, region) {
                Some((phone, next)) => {
                    found.push(phone);
                    first = next;
                }
                None => first += 1,
            }
        }
    }
    found
}

/// The longest number that begins with this group, and the group after it.
fn match_from(text: &str, run: &Run, first: usize, region: Region) -> Option<(PhoneMatch, usize)> {
    if first > 0 && !run.groups[first].can_begin {
        return None;
    }
    let mut digits = 0;
    let usable = run.groups[first..].iter().take(MAX_GROUPS).take_while(|group| {
        digits += group.digits.len();
        group.usable && digits <= *DIGITS.end()
    });
    let usable = usable.count();
    (first + 1..=first + usable).rev().find_map(|end| {
        if end < run.groups.len() && !run.groups[end].can_begin {
            return None;
        }
        read(text, run, first..end, region).map(|phone| (phone, end))
    })
}

fn read(text: &str, run: &Run, span: Range<usize>, region: Region) -> Option<PhoneMatch> {
    let groups = &run.groups[span.clone()];
    let form = if span.start == 0 && run.plus { NumberForm::International } else { NumberForm::National };
    let digits = dialled(groups, form);
    if !DIGITS.contains(&digits.len()) {
        return None;
    }
    let mut range = run.range(span.clone());
    let mut number = Number::parse(&digits, form, region)?;

    if form == NumberForm::National {
        let whole = groups.len() == run.groups.len();
        if !is_plausible(groups, whole, &number) || is_something_else(text, &range, groups, &number) {
            return None;
        }
    }
    if span.end == run.groups.len()
        && let Some(extension) = &run.extension
    {
        number.extension = Some(extension.digits.clone());
        range.end = extension.end;
    }
    Some(PhoneMatch { number, range })
}

/// Whether the number is usually written so. Part of a longer run needs more than digits that happen to fit.
fn is_plausible(groups: &[Group], whole: bool, number: &Number) -> bool {
    groups.len() == 1
        || groups[0].digits.starts_with('0')
        || (whole && number.country_code() != NORTH_AMERICA)
        || is_usual_grouping(groups, number)
}

/// Whether the words around make it an amount, or a reference that is not unmistakably grouped like a number.
fn is_something_else(text: &str, range: &Range<usize>, groups: &[Group], number: &Number) -> bool {
    let unmistakable = groups.len() >= 3 && is_usual_grouping(groups, number);
    context::is_amount(text, range) || (!unmistakable && context::is_reference(text, range.start))
}

/// The digits as one would dial them: the (0) in +49 (0)30… is only for callers from within.
fn dialled(groups: &[Group], form: NumberForm) -> String {
    let inner_zero =
        |group: &Group| form == NumberForm::International && group.parenthesized && group.digits == "0";
    groups.iter().filter(|group| !inner_zero(group)).map(|group| group.digits.as_str()).collect()
}

/// Whether the groups are those of the usual form. A block that joins neighbouring groups is as usual, and the
/// trunk prefix may stand alone: 1 (415) 5552671.
fn is_usual_grouping(groups: &[Group], number: &Number) -> bool {
    let usual = number.usual_groups();
    let mut written = groups.iter().map(|group| group.digits.as_str()).peekable();
    if number.country_code() == NORTH_AMERICA && groups.len() > 1 {
        written.next_if_eq(&"1");
    }
    let mut rest = usual.iter().map(String::as_str);
    for group in written {
        let mut joined = String::new();
        while joined.len() < group.len() {
            match rest.next() {
                Some(next) => joined.push_str(next),
                None => return false,
            }
        }
        if joined != group {
            return false;
        }
    }
    rest.next().is_none()
}
