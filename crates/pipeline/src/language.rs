//! The languages in which code itself has something to say.

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

    /// What is said when there is no answer, or no more of it.
    pub(crate) fn not_answered(self) -> &'static str {
        match self {
            Self::English | Self::Other => "Sorry, something went wrong. Please ask me again.",
            Self::German => "Da ist leider etwas schiefgegangen. Bitte fragen Sie noch einmal.",
            Self::French => "Désolé, un problème est survenu. Veuillez me reposer la question.",
            Self::Spanish => "Perdón, algo ha fallado. Pregúntemelo otra vez, por favor.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_language_is_english_and_a_foreign_one_is_not() {
        assert_eq!(Language::of(None), Language::English);
        assert_eq!(Language::of(Some("en-GB")), Language::English);
        assert_eq!(Language::of(Some("de-AT")), Language::German);
        assert_eq!(Language::of(Some("nb-NO")), Language::Other);
    }
}
