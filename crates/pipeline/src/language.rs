//! The languages in which code itself has something to say.

use quarterdeck_contracts::SITUATION_HEADING;

/// A language with words of its own here. What is said in any other is said by the model alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    English,
    German,
    French,
    Spanish,
    Other,
}

impl Language {
    /// By its tag, `de-AT`. Unknown is English.
    pub(crate) fn of(tag: Option<&str>) -> Self {
        let primary = tag.and_then(|tag| tag.split(['-', '_']).next()).unwrap_or("en");
        match primary.to_ascii_lowercase().as_str() {
            "en" | "" => Self::English,
            "de" => Self::German,
            "fr" => Self::French,
            "es" => Self::Spanish,
            _ => Self::Other,
        }
    }

    /// What is said when an utterance could not be understood.
    pub(crate) fn not_heard(self) -> &'static str {
        match self {
            Self::English | Self::Other => "Sorry, I did not catch that.",
            Self::German => "Das habe ich leider nicht verstanden.",
            Self::French => "Désolé, je n'ai pas compris.",
            Self::Spanish => "Perdón, no lo he entendido.",
        }
    }
}

/// The user's language, as the instruction states it where it speaks of this conversation.
pub(crate) fn language_tag(system: &str) -> Option<&str> {
    let situation = &system[system.rfind(SITUATION_HEADING)?..];
    let (_, rest) = situation.split_once("their locale is ")?;
    let end =
        rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-').unwrap_or(rest.len());
    Some(&rest[..end]).filter(|tag| !tag.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_in_the_instruction() {
        let system = "Be kind.\n\n## Now\n\nThe user's time zone is UTC and their locale is de-AT. The conversation is spoken.";
        assert_eq!(language_tag(system), Some("de-AT"));
        assert_eq!(Language::of(language_tag(system)), Language::German);
        assert_eq!(language_tag("their locale is de"), None);
    }

    #[test]
    fn an_unknown_language_is_english_and_a_foreign_one_is_not() {
        assert_eq!(Language::of(None), Language::English);
        assert_eq!(Language::of(Some("en-GB")), Language::English);
        assert_eq!(Language::of(Some("nb-NO")), Language::Other);
    }
}
