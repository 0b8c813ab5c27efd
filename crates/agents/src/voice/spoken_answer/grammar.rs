//! The phrases, as [`quarterdeck_contracts::folded_words`] writes them: small letters, no punctuation, no apostrophes.

/// The answers of one language.
pub(super) struct Grammar {
    /// Words that are a yes by themselves, and may accompany a code.
    pub(super) yes_words: &'static [&'static str],
    pub(super) yes: &'static [&'static str],
    pub(super) no: &'static [&'static str],
    /// The words of the digits from 0 to 9.
    pub(super) digits: [&'static [&'static str]; 10],
}

impl Grammar {
    /// The grammar of a language by its tag, whatever its region.
    pub(super) fn find(language: &str) -> Option<&'static Self> {
        let primary = language.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
        match primary.as_str() {
            "en" => Some(&ENGLISH),
            "de" => Some(&GERMAN),
            "es" => Some(&SPANISH),
            "fr" => Some(&FRENCH),
            _ => None,
        }
    }

    /// The digits that a word stands for: itself, when it is written in them.
    pub(super) fn digits_of(&self, word: &str) -> Option<String> {
        if word.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some(word.to_owned());
        }
        let digit = self.digits.iter().position(|names| names.contains(&word))?;
        Some(digit.to_string())
    }
}

static ENGLISH: Grammar = Grammar {
    yes_words: &["yes", "yeah", "yep"],
    yes: &[
        "yes",
        "yeah",
        "yep",
        "yes please",
        "yeah please",
        "yes go ahead",
        "yeah go ahead",
        "yes please go ahead",
        "yes go ahead please",
        "yes do it",
        "yes do that",
        "yes please do",
        "yes please do it",
        "yes please do that",
        "yes confirm",
        "yes i confirm",
        "yes i approve",
        "yes thats right",
        "yes thats correct",
        "go ahead",
        "please go ahead",
        "confirm",
        "i confirm",
        "i approve",
    ],
    no: &[
        "no",
        "nope",
        "no thanks",
        "no thank you",
        "no please",
        "no please dont",
        "no dont",
        "no dont do it",
        "no dont do that",
        "please dont",
        "dont do it",
        "dont do that",
        "no cancel",
        "no cancel it",
        "no cancel that",
        "no please cancel",
        "cancel",
        "cancel it",
        "cancel that",
        "please cancel",
        "please cancel it",
        "please cancel that",
        "i decline",
        "no i decline",
    ],
    digits: [
        &["zero", "oh"],
        &["one"],
        &["two"],
        &["three"],
        &["four"],
        &["five"],
        &["six"],
        &["seven"],
        &["eight"],
        &["nine"],
    ],
};

static GERMAN: Grammar = Grammar {
    yes_words: &["ja", "jawohl"],
    yes: &[
        "ja",
        "jawohl",
        "ja bitte",
        "ja gern",
        "ja gerne",
        "ja mach das",
        "ja mach es",
        "ja bitte mach das",
        "ja bitte mach es",
        "ja machen sie das",
        "ja bitte machen sie das",
        "ja einverstanden",
        "ja ich bestätige",
        "ja ich bestätige das",
        "ja ich bin einverstanden",
        "ja das stimmt",
        "ja bestätigen",
        "bestätigen",
        "ich bestätige",
        "ich bestätige das",
        "ich bin einverstanden",
    ],
    no: &[
        "nein",
        "nee",
        "nein danke",
        "nein bitte nicht",
        "nein lieber nicht",
        "nein nicht",
        "bitte nicht",
        "lieber nicht",
        "nein abbrechen",
        "nein bitte abbrechen",
        "abbrechen",
        "bitte abbrechen",
        "ich lehne ab",
        "nein ich lehne ab",
    ],
    digits: [
        &["null"],
        &["eins"],
        &["zwei", "zwo"],
        &["drei"],
        &["vier"],
        &["fünf"],
        &["sechs"],
        &["sieben"],
        &["acht"],
        &["neun"],
    ],
};

static SPANISH: Grammar = Grammar {
    yes_words: &["sí", "si"],
    yes: &[
        "sí",
        "si",
        "sí por favor",
        "si por favor",
        "sí adelante",
        "si adelante",
        "sí hazlo",
        "si hazlo",
        "sí hágalo",
        "si hágalo",
        "sí de acuerdo",
        "si de acuerdo",
        "sí confirmo",
        "si confirmo",
        "sí lo confirmo",
        "si lo confirmo",
        "sí es correcto",
        "si es correcto",
        "adelante",
        "adelante por favor",
        "confirmar",
        "confirmo",
        "lo confirmo",
    ],
    no: &[
        "no",
        "no gracias",
        "no por favor",
        "no lo hagas",
        "no lo haga",
        "no cancela",
        "no cancelar",
        "no cancélalo",
        "cancela",
        "cancelar",
        "cancélalo",
        "cancele",
    ],
    digits: [
        &["cero"],
        &["uno"],
        &["dos"],
        &["tres"],
        &["cuatro"],
        &["cinco"],
        &["seis"],
        &["siete"],
        &["ocho"],
        &["nueve"],
    ],
};

static FRENCH: Grammar = Grammar {
    yes_words: &["oui", "ouais"],
    yes: &[
        "oui",
        "ouais",
        "oui sil vous plaît",
        "oui sil vous plait",
        "oui sil te plaît",
        "oui sil te plait",
        "oui allez y",
        "oui vas y",
        "oui faites le",
        "oui fais le",
        "oui daccord",
        "oui je confirme",
        "oui cest ça",
        "oui cest exact",
        "allez y",
        "vas y",
        "confirmer",
        "je confirme",
    ],
    no: &[
        "non",
        "non merci",
        "non sil vous plaît",
        "non sil vous plait",
        "non annule",
        "non annuler",
        "non annulez",
        "annule",
        "annuler",
        "annulez",
        "je refuse",
        "non je refuse",
    ],
    digits: [
        &["zéro", "zero"],
        &["un"],
        &["deux"],
        &["trois"],
        &["quatre"],
        &["cinq"],
        &["six"],
        &["sept"],
        &["huit"],
        &["neuf"],
    ],
};

#[cfg(test)]
pub(super) static ALL: [(&str, &Grammar); 4] =
    [("en", &ENGLISH), ("de", &GERMAN), ("es", &SPANISH), ("fr", &FRENCH)];
