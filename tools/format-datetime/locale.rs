//! Locales by BCP 47 tag, and the nearest one when a tag is not known.

use icu_experimental::provider::Baked;
use icu_experimental::relativetime::provider::DatetimeRelativeDayLongV1;
use icu_locale_core::Locale;
use icu_provider::marker::DataMarkerExt;
use icu_provider::{DataIdentifierBorrowed, DataProvider, DataRequest, DataResponse};
use quarterdeck_contracts::ToolError;
use strsim::jaro_winkler;

/// Languages worth guessing at, with the name a caller may have written instead of the tag.
const LANGUAGES: [(&str, &str); 36] = [
    ("ar", "arabic"),
    ("bn", "bengali"),
    ("cs", "czech"),
    ("da", "danish"),
    ("de", "german"),
    ("el", "greek"),
    ("en", "english"),
    ("es", "spanish"),
    ("fa", "persian"),
    ("fi", "finnish"),
    ("fr", "french"),
    ("he", "hebrew"),
    ("hi", "hindi"),
    ("hu", "hungarian"),
    ("id", "indonesian"),
    ("it", "italian"),
    ("ja", "japanese"),
    ("ko", "korean"),
    ("ms", "malay"),
    ("nb", "norwegian"),
    ("nl", "dutch"),
    ("pl", "polish"),
    ("pt", "portuguese"),
    ("ro", "romanian"),
    ("ru", "russian"),
    ("sk", "slovak"),
    ("sv", "swedish"),
    ("sw", "swahili"),
    ("ta", "tamil"),
    ("te", "telugu"),
    ("th", "thai"),
    ("tr", "turkish"),
    ("uk", "ukrainian"),
    ("ur", "urdu"),
    ("vi", "vietnamese"),
    ("zh", "chinese"),
];

pub(super) fn find(tag: &str) -> Result<Locale, ToolError> {
    parse_known(tag).ok_or_else(|| {
        let refusal = super::refuse("/locale", "locale is not a known BCP 47 language tag");
        match nearest(tag) {
            Some(nearest) => refusal.with_suggestion(format!("Did you mean {nearest}?")),
            None => refusal.with_suggestion("Use a tag such as en, en-GB, de or pt-BR."),
        }
    })
}

pub(super) fn nearest(tag: &str) -> Option<String> {
    if let Some(locale) = parse_known(&tag.trim().replace('_', "-")) {
        return Some(locale.to_string());
    }
    let wanted = tag.to_lowercase();
    let language = wanted.split(['-', '_']).next().unwrap_or(&wanted);
    let likeness = |name: &str| jaro_winkler(language, name);
    LANGUAGES
        .iter()
        .map(|(code, name)| (likeness(code).max(likeness(name)), *code))
        .filter(|(likeness, _)| *likeness >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, code)| code.to_owned())
}

/// Locale data never fails: a language without any falls back to the root, which speaks none
/// (`2026 M01 13`). Such a tag is refused here instead. An unknown region of a known language is fine.
fn parse_known(tag: &str) -> Option<Locale> {
    let locale = Locale::try_from_str(tag).ok()?;
    let wanted = DatetimeRelativeDayLongV1::make_locale((&locale).into());
    let id = DataIdentifierBorrowed::for_locale(&wanted);
    let found: DataResponse<DatetimeRelativeDayLongV1> =
        Baked.load(DataRequest { id, ..Default::default() }).ok()?;
    let speaks = found.metadata.locale.unwrap_or(wanted);
    (!speaks.is_unknown()).then_some(locale)
}
