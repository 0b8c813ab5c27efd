//! Whether digits are a phone number, by the numbering plans of the world.

use phonenumber::country::Id as Region;
use phonenumber::metadata::DATABASE;
use phonenumber::{Mode, NationalNumber, PhoneNumber};
use serde_json::json;

use super::{Phone, Place};

/// How the digits say which country they belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberForm {
    /// After a `+`, beginning with a country code.
    International,
    /// As one dials within the region.
    National,
}

/// A number that can be assigned in its country.
#[derive(Debug)]
pub(super) struct Number {
    parsed: PhoneNumber,
    pub(super) extension: Option<String>,
}

impl Number {
    pub(super) fn parse(digits: &str, form: NumberForm, region: Region) -> Option<Self> {
        let parsed = match form {
            NumberForm::International => parse_international(digits)?,
            NumberForm::National => match after_dial_out_prefix(digits, region) {
                Some(rest) => parse_international(rest)?,
                None => parse_national(digits, region)?,
            },
        };
        Some(Self { parsed, extension: None })
    }

    /// The digit groups of its usual national form, such as `["415", "555", "2671"]`.
    pub(super) fn usual_groups(&self) -> Vec<String> {
        groups(&self.parsed.format().mode(Mode::National).to_string())
    }

    pub(super) fn country_code(&self) -> u16 {
        self.parsed.code().value()
    }

    pub(super) fn into_phone(self, place: Place) -> Phone {
        Phone {
            value: self.parsed.format().mode(Mode::E164).to_string(),
            international: self.parsed.format().mode(Mode::International).to_string(),
            country: self.parsed.country().id().map(|id| id.as_ref().to_owned()),
            extension: self.extension,
            place,
        }
    }
}

/// No region is given here on purpose: the parser would strip that region's trunk prefix from a foreign
/// number and turn +49 151… into +49 51… for a user in the United States.
fn parse_international(digits: &str) -> Option<PhoneNumber> {
    let number = phonenumber::parse(None, format!("+{digits}")).ok()?;
    let code = number.code().value();
    let significant = digits.strip_prefix(&code.to_string())?;
    // Some write the trunk zero after the country code (+49 030…); nothing else may be dropped.
    if number.national().to_string() == significant || significant.starts_with('0') {
        return number.is_valid().then_some(number);
    }
    unshortened(code, significant)
}

fn parse_national(digits: &str, region: Region) -> Option<PhoneNumber> {
    let plan = DATABASE.by_id(region.as_ref())?;
    let parsed = phonenumber::parse(Some(region), digits).ok().filter(PhoneNumber::is_valid);
    let number = parsed.or_else(|| {
        let significant = plan.national_prefix().and_then(|prefix| digits.strip_prefix(prefix));
        unshortened(plan.country_code(), significant.unwrap_or(digits))
    })?;

    // Where the trunk prefix is always written, eight digits without it are just eight digits.
    let significant = number.national().to_string();
    let usual = groups(&number.format().mode(Mode::National).to_string()).concat();
    let needs_prefix = plan.national_prefix().is_some_and(|prefix| usual == format!("{prefix}{significant}"))
        && !prefix_is_optional(plan, &significant);
    let has_prefix = digits.len() > significant.len();
    (number.code().value() == plan.country_code() && (has_prefix || !needs_prefix)).then_some(number)
}

/// The number with exactly these significant digits.
///
/// Where a number may begin with the digit of the trunk prefix, as Russia's 8 800 lines do, the parser strips
/// it once too often. It has no other constructor than its data form.
fn unshortened(code: u16, significant: &str) -> Option<PhoneNumber> {
    let national: NationalNumber = significant.parse().ok()?;
    let data = json!({
        "code": { "value": code, "source": "plus" },
        "national": national,
        "extension": null,
        "carrier": null,
    });
    serde_json::from_value(data).ok().filter(PhoneNumber::is_valid)
}

fn prefix_is_optional(plan: &phonenumber::Metadata, significant: &str) -> bool {
    let format = plan.formats().iter().find(|format| {
        let leads = format.leading_digits().last();
        leads.is_none_or(|leading| leading.find(significant).is_some_and(|found| found.start() == 0))
            && format.pattern().find(significant).is_some_and(|found| found.range() == (0..significant.len()))
    });
    format.is_some_and(phonenumber::metadata::Format::is_national_prefix_optional)
}

/// What follows the region's prefix for calls abroad (`00`, `011`), when the digits begin with it.
fn after_dial_out_prefix(digits: &str, region: Region) -> Option<&str> {
    let prefix = DATABASE.by_id(region.as_ref())?.international_prefix()?.find(digits)?;
    let rest = &digits[prefix.end()..];
    (prefix.start() == 0 && rest.len() >= 7 && !rest.starts_with('0')).then_some(rest)
}

fn groups(formatted: &str) -> Vec<String> {
    let groups = formatted.split(|c: char| !c.is_ascii_digit());
    groups.filter(|group| !group.is_empty()).map(str::to_owned).collect()
}
