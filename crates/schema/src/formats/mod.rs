//! Formats, asserted as ajv-formats asserts them: that is what tool authors have tested their schemas with.
//!
//! The rules are looser than the RFCs in places (`duration` may skip units, `uri` takes almost any port) and tighter in
//! others (`email` wants a dotted domain, `time` an offset).

mod calendar;
mod network;
mod scan;
mod tokens;
mod uri;

use jsonschema::{Keyword, ValidationError};
use serde_json::Value;

/// What a format checks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Format {
    Text(fn(&str) -> bool),
    Number(fn(f64) -> bool),
    /// A hint for people; every value passes.
    Hint,
}

impl Format {
    pub(crate) fn find(name: &str) -> Option<Self> {
        FORMATS.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }

    /// Values of a type that the format is not about pass.
    pub(crate) fn admits(self, value: &Value) -> bool {
        match self {
            Self::Text(check) => value.as_str().is_none_or(check),
            Self::Number(check) => value.as_f64().is_none_or(check),
            Self::Hint => true,
        }
    }
}

/// The names of all known formats.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|(name, _)| *name)
}

// The validator crate's own formats are for strings only, so the whole keyword is ours.
impl<'i> Keyword<'i> for Format {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.admits(value) { Ok(()) } else { Err(ValidationError::custom("the format does not match")) }
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        self.admits(value)
    }
}

const FORMATS: &[(&str, Format)] = &[
    ("binary", Format::Hint),
    ("byte", Format::Text(tokens::is_byte)),
    ("date", Format::Text(calendar::is_date)),
    ("date-time", Format::Text(calendar::is_date_time)),
    ("double", Format::Hint),
    ("duration", Format::Text(calendar::is_duration)),
    ("email", Format::Text(network::is_email)),
    ("float", Format::Hint),
    ("hostname", Format::Text(network::is_hostname)),
    ("int32", Format::Number(is_int32)),
    ("int64", Format::Number(is_integer)),
    ("ipv4", Format::Text(network::is_ipv4)),
    ("ipv6", Format::Text(network::is_ipv6)),
    ("iso-date-time", Format::Text(calendar::is_iso_date_time)),
    ("iso-time", Format::Text(calendar::is_iso_time)),
    ("json-pointer", Format::Text(tokens::is_json_pointer)),
    ("json-pointer-uri-fragment", Format::Text(tokens::is_json_pointer_fragment)),
    ("password", Format::Hint),
    ("regex", Format::Text(tokens::is_regex)),
    ("relative-json-pointer", Format::Text(tokens::is_relative_json_pointer)),
    ("time", Format::Text(calendar::is_time)),
    ("uri", Format::Text(uri::is_uri)),
    ("uri-reference", Format::Text(uri::is_uri_reference)),
    ("uri-template", Format::Text(uri::is_uri_template)),
    ("url", Format::Text(uri::is_url)),
    ("uuid", Format::Text(tokens::is_uuid)),
];

fn is_int32(number: f64) -> bool {
    is_integer(number) && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number)
}

/// Any whole number: beyond 2^53 JSON numbers have lost their last digits anyway.
fn is_integer(number: f64) -> bool {
    number.fract() == 0.0
}
