//! What a user is asked by voice: code makes it from the preview, and no model has a say in it.

use quarterdeck_contracts::{ConfirmBy, ConfirmationRequest};

/// Longer previews are read, not heard: half a minute of speech is no question.
const MAX_PREVIEW_CHARS: usize = 300;

/// The fixed words around a preview.
struct Phrases {
    confirm: &'static str,
    not_understood: &'static str,
    /// Two words each: a bare yes is too short to be told from a recording of our own voice, and would often be refused.
    say_yes_or_no: &'static str,
    say_code: &'static str,
    or_no: &'static str,
}

const ENGLISH: Phrases = Phrases {
    confirm: "Please confirm:",
    not_understood: "That was not an answer.",
    say_yes_or_no: "Please say yes please, or no thank you.",
    say_code: "To approve, say",
    or_no: "Otherwise say no.",
};
const GERMAN: Phrases = Phrases {
    confirm: "Bitte bestätigen Sie:",
    not_understood: "Das war keine Antwort.",
    say_yes_or_no: "Bitte sagen Sie ja bitte oder nein danke.",
    say_code: "Zum Bestätigen sagen Sie",
    or_no: "Sonst sagen Sie nein.",
};
const SPANISH: Phrases = Phrases {
    confirm: "Por favor, confirme:",
    not_understood: "Eso no fue una respuesta.",
    say_yes_or_no: "Diga sí, por favor, o no, gracias.",
    say_code: "Para aprobar, diga",
    or_no: "Si no, diga no.",
};
const FRENCH: Phrases = Phrases {
    confirm: "Veuillez confirmer :",
    not_understood: "Ce n'était pas une réponse.",
    say_yes_or_no: "Dites oui s'il vous plaît, ou non merci.",
    say_code: "Pour approuver, dites",
    or_no: "Sinon, dites non.",
};

/// The question in a language, `en` or `de-AT`; `None` where it cannot be asked by voice. The whole preview is said every time, so
/// that no yes is about something else that was said in between.
pub(super) fn question_text(
    request: &ConfirmationRequest,
    language: &str,
    is_repeated: bool,
) -> Option<String> {
    let phrases = match language.split(['-', '_']).next()?.to_ascii_lowercase().as_str() {
        "en" => &ENGLISH,
        "de" => &GERMAN,
        "es" => &SPANISH,
        "fr" => &FRENCH,
        _ => return None,
    };
    let preview = request.preview.trim().trim_end_matches(['.', '!', '?']);
    if preview.is_empty() || preview.chars().count() > MAX_PREVIEW_CHARS {
        return None;
    }
    let how = match (request.confirm_by, &request.code) {
        (ConfirmBy::Any, _) => phrases.say_yes_or_no.to_owned(),
        (ConfirmBy::Code, Some(code)) => {
            let digits: Vec<String> = code.expose().chars().map(String::from).collect();
            format!("{} {}. {}", phrases.say_code, digits.join(", "), phrases.or_no)
        }
        (ConfirmBy::Code, None) | (ConfirmBy::Page, _) => return None,
    };
    let opening = if is_repeated { format!("{} ", phrases.not_understood) } else { String::new() };
    Some(format!("{opening}{} {preview}. {how}", phrases.confirm))
}

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::ConfirmationCode;
    use serde_json::json;

    use super::*;
    use crate::voice::spoken_answer::is_supported;

    fn request(confirm_by: ConfirmBy, preview: &str) -> ConfirmationRequest {
        let code = (confirm_by == ConfirmBy::Code).then(|| ConfirmationCode::new(4_071));
        let (tool, preview) = ("pay".into(), preview.into());
        ConfirmationRequest {
            token: None,
            expires: 0,
            tool,
            args: json!({}),
            preview,
            reason: None,
            confirm_by,
            code,
        }
    }

    #[test]
    fn the_preview_is_asked_in_the_language_of_the_session() {
        let request = request(ConfirmBy::Any, "Pay 20 euros to Ann.");
        let ask = |language| question_text(&request, language, false);
        assert_eq!(
            ask("en").as_deref(),
            Some("Please confirm: Pay 20 euros to Ann. Please say yes please, or no thank you.")
        );
        assert_eq!(
            ask("de-AT").as_deref(),
            Some("Bitte bestätigen Sie: Pay 20 euros to Ann. Bitte sagen Sie ja bitte oder nein danke.")
        );
        for language in ["en", "de", "es", "fr", "it", "", "tlh"] {
            assert_eq!(ask(language).is_some(), is_supported(language), "{language}");
        }
        let again = question_text(&request, "en", true).unwrap_or_default();
        assert!(again.starts_with("That was not an answer. Please confirm: Pay 20"), "{again}");
    }

    #[test]
    fn a_code_is_spoken_by_its_digits() {
        let text = question_text(&request(ConfirmBy::Code, "Pay."), "en", false);
        assert_eq!(
            text.as_deref(),
            Some("Please confirm: Pay. To approve, say 4, 0, 7, 1. Otherwise say no.")
        );
    }

    #[test]
    fn what_must_be_read_is_not_asked_by_voice() {
        assert_eq!(question_text(&request(ConfirmBy::Page, "Pay."), "en", false), None);
        assert_eq!(question_text(&request(ConfirmBy::Any, &"long ".repeat(100)), "en", false), None);
        assert_eq!(question_text(&request(ConfirmBy::Any, "…".trim_matches('…')), "en", false), None);
        let without_code = ConfirmationRequest { code: None, ..request(ConfirmBy::Code, "Pay.") };
        assert_eq!(question_text(&without_code, "en", false), None);
    }
}
