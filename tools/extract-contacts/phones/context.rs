//! What the words around some digits say about them.

use std::ops::Range;

/// Words that announce a number of another kind. English only; elsewhere the numbering plan decides alone.
const REFERENCES: [&str; 24] = [
    "account",
    "acct",
    "batch",
    "booking",
    "card",
    "case",
    "confirmation",
    "contract",
    "customer",
    "iban",
    "id",
    "imei",
    "invoice",
    "isbn",
    "item",
    "order",
    "po",
    "policy",
    "ref",
    "reference",
    "serial",
    "sku",
    "ticket",
    "tracking",
];

/// Words that say nothing about the kind of number: in “order number is: 415…” the order decides.
const NEUTRAL: [&str; 10] = ["a", "code", "is", "my", "no", "nr", "num", "number", "our", "the"];

const CURRENCIES: [&str; 12] =
    ["aud", "cad", "chf", "cny", "eur", "euro", "euros", "gbp", "inr", "jpy", "usd", "dollars"];

/// Whether the words before announce an order, an account or the like.
pub(super) fn is_reference(text: &str, start: usize) -> bool {
    let line = text[..start].rsplit('\n').next().unwrap_or("");
    let words =
        line.rsplit(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).map(str::to_lowercase);
    words
        .take(4)
        .find(|word| !NEUTRAL.contains(&word.as_str()))
        .is_some_and(|word| REFERENCES.contains(&word.as_str()))
}

/// Whether a currency stands before or after.
pub(super) fn is_amount(text: &str, range: &Range<usize>) -> bool {
    let before = text[..range.start].trim_end_matches([' ', '\u{a0}', '(']);
    let after = text[range.end..].trim_start_matches([' ', '\u{a0}']);
    let word_before = before.rsplit(|c: char| !c.is_alphabetic()).next().unwrap_or("");
    let word_after = after.split(|c: char| !c.is_alphabetic()).next().unwrap_or("");
    before.ends_with(is_currency_sign)
        || after.starts_with(is_currency_sign)
        || [word_before, word_after].iter().any(|word| CURRENCIES.contains(&word.to_lowercase().as_str()))
}

fn is_currency_sign(c: char) -> bool {
    matches!(c, '$' | '¢' | '£' | '¥' | '\u{20a0}'..='\u{20cf}')
}
