//! Finds the e-mail addresses, phone numbers and links in a text.
//!
//! Every occurrence is reported where it stands, also when the same address comes twice: `value` is the normal
//! form to compare by. Kinds never overlap; the digits inside a link are not a phone number.

mod links;
mod number;
mod phones;

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use phonenumber::country::Id as Region;
use quarterdeck_contracts::handler::Context;
use quarterdeck_contracts::{ErrorType, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The arguments, after the registry has checked them and filled in the defaults of `schema.json`.
#[derive(Debug, Deserialize)]
pub struct Args {
    pub text: String,
    /// The country of numbers that are written without a country code.
    pub region: String,
}

#[derive(Debug, Serialize)]
pub struct Contacts {
    pub emails: Vec<Link>,
    pub phones: Vec<Phone>,
    pub urls: Vec<Link>,
}

/// An e-mail address or a URL.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    pub value: String,
    #[serde(flatten)]
    pub place: Place,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Phone {
    /// E.164, such as `+14155552671`.
    pub value: String,
    /// As usually written, such as `+1 415-555-2671`.
    pub international: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension: Option<String>,
    #[serde(flatten)]
    pub place: Place,
}

/// Where something stands: the words as written and their half-open range, counted in characters.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    pub text: String,
    pub start: usize,
    pub end: usize,
}

pub async fn execute(args: Args, _context: Arc<dyn Context>) -> Result<Contacts, ToolError> {
    let region = find_region(&args.region)?;
    let links = links::find(&args.text);
    let taken: Vec<Range<usize>> = links.iter().map(|link| link.range.clone()).collect();
    let phones = phones::find(&args.text, &taken, region);

    let place = |range: &Range<usize>| Place::new(&args.text, range);
    let of_kind = |kind| {
        let matching = links.iter().filter(move |link| link.kind == kind);
        matching.map(|link| Link { value: link.value.clone(), place: place(&link.range) }).collect()
    };
    Ok(Contacts {
        emails: of_kind(links::Kind::Email),
        urls: of_kind(links::Kind::Url),
        phones: phones.into_iter().map(|found| found.number.into_phone(place(&found.range))).collect(),
    })
}

/// The schema has checked the form; whether there is such a country, the numbering plans know.
fn find_region(region: &str) -> Result<Region, ToolError> {
    region.parse().map_err(|_| {
        let message = "region is not a country with a numbering plan";
        ToolError::new(ErrorType::Validation, message)
            .with_details(json!([{ "path": "/region", "keyword": "format", "message": message }]))
            .with_suggestion("Use an ISO 3166 code such as US, GB (not UK), DE or IN.")
    })
}

impl Place {
    /// Scanners work in bytes; callers get characters, which mean the same in every language.
    fn new(text: &str, range: &Range<usize>) -> Self {
        let words = &text[range.clone()];
        let start = text[..range.start].chars().count();
        Self { text: words.to_owned(), start, end: start + words.chars().count() }
    }
}
