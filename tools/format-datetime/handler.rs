//! Says when something is, in the words of a place and a language.
//!
//! The instant comes in with its offset, so no wall-clock time is ever ambiguous or missing: a change to or
//! from summer time only decides which offset the answer shows.

mod locale;
mod relative;
mod spoken;
mod zone;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use icu_datetime::fieldsets::zone::SpecificShort;
use icu_datetime::fieldsets::{T, YMD, YMDE};
use icu_datetime::{DateTimeFormatter, DateTimeFormatterLoadError, NoCalendarFormatter};
use icu_locale_core::Locale;
use jiff::{Timestamp, Zoned};
use quarterdeck_contracts::handler::Context;
use quarterdeck_contracts::{ErrorType, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The arguments, after the registry has checked them and filled in the defaults of `schema.json`.
#[derive(Debug, Deserialize)]
pub struct Args {
    pub datetime: String,
    pub timezone: String,
    pub style: Style,
    pub locale: String,
}

#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    Iso,
    Date,
    Time,
    Full,
    Spoken,
    Relative,
}

#[derive(Debug, Serialize)]
pub struct FormattedDatetime {
    /// What to show or say.
    pub formatted: String,
    /// The same instant in RFC 3339, with the offset of the time zone.
    pub iso: String,
    /// The time zone as the database spells it.
    pub timezone: String,
    /// The offset from UTC at that instant, such as `+01:00`.
    pub offset: String,
    /// The locale in its canonical form.
    pub locale: String,
    pub style: Style,
}

pub async fn execute(args: Args, context: Arc<dyn Context>) -> Result<FormattedDatetime, ToolError> {
    let instant = parse_instant(&args.datetime)?;
    let zone = zone::find(&args.timezone)?;
    let locale = locale::find(&args.locale)?;

    let there = instant.to_zoned(zone.clone());
    let now = read_clock(&*context)?.to_zoned(zone);
    let iso = instant.display_with_offset(there.offset()).to_string();
    let formatted = match args.style {
        Style::Iso => iso.clone(),
        Style::Date => date(&there, &locale).map_err(no_patterns)?,
        Style::Time => time(&there, &locale).map_err(no_patterns)?,
        Style::Full => full(&there, &locale).map_err(no_patterns)?,
        Style::Spoken => spoken::words(&there, &now, &locale).map_err(no_patterns)?,
        Style::Relative => relative::words(&there, &now, &locale).map_err(no_patterns)?,
    };

    Ok(FormattedDatetime {
        formatted: plain_spaces(&formatted),
        iso,
        timezone: there.time_zone().iana_name().unwrap_or(&args.timezone).to_owned(),
        offset: there.strftime("%:z").to_string(),
        locale: locale.to_string(),
        style: args.style,
    })
}

fn date(there: &Zoned, locale: &Locale) -> Result<String, DateTimeFormatterLoadError> {
    Ok(DateTimeFormatter::try_new(locale.into(), YMD::long())?.format(there).to_string())
}

fn time(there: &Zoned, locale: &Locale) -> Result<String, DateTimeFormatterLoadError> {
    Ok(NoCalendarFormatter::try_new(locale.into(), T::hm())?.format(&there.time()).to_string())
}

fn full(there: &Zoned, locale: &Locale) -> Result<String, DateTimeFormatterLoadError> {
    let fields = YMDE::long().with_time_hm().with_zone(SpecificShort);
    Ok(DateTimeFormatter::try_new(locale.into(), fields)?.format(there).to_string())
}

/// The schema has checked the form; what is left to refuse is a moment outside the calendar's range.
fn parse_instant(datetime: &str) -> Result<Timestamp, ToolError> {
    datetime.parse().map_err(|_| {
        refuse("/datetime", "datetime is not a moment between the years 0000 and 9999 with an offset")
            .with_suggestion("Write it like 2026-01-13T09:30:00Z or 2026-01-13T09:30:00+01:00.")
    })
}

fn read_clock(context: &dyn Context) -> Result<Timestamp, ToolError> {
    Timestamp::try_from(context.now())
        .map_err(|_| ToolError::new(ErrorType::Internal, "the clock is outside the calendar's range"))
}

/// A refusal of one parameter, in the form that the schema's own refusals have.
fn refuse(path: &str, message: impl Into<String>) -> ToolError {
    let message = message.into();
    let details = json!([{ "path": path, "keyword": "format", "message": message }]);
    ToolError::new(ErrorType::Validation, message).with_details(details)
}

/// The locale data is compiled in and the locale is known, so this is a fault of the build.
fn no_patterns<E>(_: E) -> ToolError {
    ToolError::new(ErrorType::Internal, "format_datetime has no patterns for this locale")
}

/// Locale data sets no-break spaces (`9:30\u{202f}AM`). Plain ones compare, search and read aloud better.
fn plain_spaces(text: &str) -> String {
    text.replace(['\u{a0}', '\u{202f}'], " ")
}
