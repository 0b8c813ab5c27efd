//! Other languages than English: says what it is in ten of them, because its rules are for English.

/// A language by words that it has and English has not.
struct Language {
    words: &'static [&'static str],
    reply: &'static str,
}

/// The reply to a message in another language.
pub(crate) fn answer(text: &str) -> Option<&'static str> {
    let letters = text.chars().filter(|letter| letter.is_alphabetic()).take(400);
    let (mut latin, mut cyrillic, mut han, mut other) = (0, 0, 0, 0);
    for letter in letters {
        match letter {
            '\u{0}'..='\u{24f}' => latin += 1,
            '\u{400}'..='\u{4ff}' => cyrillic += 1,
            '\u{4e00}'..='\u{9fff}' => han += 1,
            _ => other += 1,
        }
    }
    match [cyrillic, han, other].into_iter().max()? {
        most if most < latin || most == 0 => of_words(text),
        most if most == other => Some(OTHER),
        most if most == cyrillic => Some(RUSSIAN),
        _ => Some(CHINESE),
    }
}

/// The language with the most of its words. One word is enough for a short message, and none of English may stand beside it.
fn of_words(text: &str) -> Option<&'static str> {
    let lower = text.to_lowercase();
    let words: Vec<&str> =
        lower.split(|it: char| !it.is_alphanumeric()).filter(|it| !it.is_empty()).take(60).collect();
    let count = |known: &[&str]| words.iter().filter(|word| known.contains(*word)).count();
    let is_plain =
        |known: &[&str]| words.iter().any(|it| known.contains(it) && it.len() > 2 && !AMBIGUOUS.contains(it));
    let (hits, best) =
        LANGUAGES.iter().map(|it| (count(it.words), it)).rev().max_by_key(|(hits, _)| *hits)?;
    let is_enough = hits > count(ENGLISH) && is_plain(best.words) && (hits > 1 || words.len() <= 4);
    is_enough.then_some(best.reply)
}

#[rustfmt::skip]
const ENGLISH: &[&str] = &[
    "the", "is", "was", "what", "who", "when", "where", "how", "a", "an", "of", "and", "my", "me", "you", "with", "at", "tell",
    "book", "please", "did", "does", "for", "in", "to", "meeting", "about", "call", "cancel", "move", "show",
];

/// Words that English has too: they say nothing alone.
const AMBIGUOUS: &[&str] = &[
    "hat", "pour", "met", "dove", "est", "was", "con", "des", "per", "los", "las", "van", "kan", "com",
    "dank", "dia",
];

#[rustfmt::skip]
const LANGUAGES: &[Language] = &[
    Language {
        words: &[
            "wer", "wie", "wo", "wann", "warum", "ist", "und", "der", "das", "hat", "ich", "nicht", "ein", "eine", "mit", "bitte",
            "kannst", "können", "hallo", "guten", "termin", "geht", "dir", "mir", "sie", "was", "wurde", "für", "auf", "welche",
            "sprichst", "deutsch", "buche", "morgen",
        ],
        reply: "Ich bin die eingebaute Probe von Quarterdeck: kein Sprachmodell, sondern Regeln, die nur Englisch verstehen. Bitte \
                fragen Sie auf Englisch, oder verbinden Sie ein echtes Modell.",
    },
    Language {
        words: &[
            "qui", "que", "quoi", "où", "quand", "pourquoi", "est", "et", "le", "la", "les", "des", "une", "je", "vous", "bonjour",
            "merci", "comment", "avec", "dans", "pour", "quel", "quelle", "peux", "tu", "français", "sur", "construit", "salut",
        ],
        reply: "Je suis la répétition intégrée de Quarterdeck : pas un modèle de langage, mais des règles qui ne comprennent que \
                l'anglais. Posez votre question en anglais, ou connectez un vrai modèle.",
    },
    Language {
        words: &[
            "quién", "qué", "dónde", "cuándo", "cómo", "por", "el", "los", "las", "una", "hola", "gracias", "puedes", "con", "para",
            "está", "es", "ayudarme", "reserva", "español", "fue", "cuál", "del", "quiero", "buenos",
        ],
        reply: "Soy el ensayo integrado de Quarterdeck: no soy un modelo de lenguaje, sino reglas que solo entienden inglés. \
                Pregunte en inglés, por favor, o conecte un modelo de verdad.",
    },
    Language {
        words: &[
            "chi", "che", "dove", "perché", "è", "il", "gli", "una", "ciao", "grazie", "puoi", "sono", "della", "nella", "quanto",
            "italiano", "ha", "buongiorno", "di", "quale", "costruito", "mi",
        ],
        reply: "Sono la prova integrata di Quarterdeck: non un modello linguistico, ma regole che capiscono solo l'inglese. Per \
                favore chieda in inglese, oppure colleghi un modello vero.",
    },
    Language {
        words: &[
            "quem", "onde", "quando", "porque", "é", "não", "uma", "olá", "obrigado", "obrigada", "você", "são", "português",
            "foi", "qual", "como", "em", "os", "bom", "dia", "pode",
        ],
        reply: "Sou o ensaio integrado do Quarterdeck: não um modelo de linguagem, mas regras que só entendem inglês. Pergunte em \
                inglês, por favor, ou ligue um modelo de verdade.",
    },
    Language {
        words: &[
            "wie", "wat", "waar", "wanneer", "waarom", "het", "een", "ik", "niet", "hallo", "dank", "kun", "je", "jij", "met", "voor",
            "heeft", "nederlands", "gebouwd", "goedemorgen", "van", "de",
        ],
        reply: "Ik ben de ingebouwde repetitie van Quarterdeck: geen taalmodel, maar regels die alleen Engels begrijpen. Stel uw \
                vraag in het Engels, of verbind een echt model.",
    },
    Language {
        words: &[
            "hvem", "hva", "hvor", "når", "hvorfor", "er", "og", "jeg", "ikke", "et", "hei", "takk", "kan", "med", "norsk", "bygde",
            "hvordan", "på", "det", "ble", "skipet", "bygget", "en",
        ],
        reply: "Jeg er den innebygde prøven i Quarterdeck: ingen språkmodell, men regler som bare forstår engelsk. Spør på engelsk, \
                eller koble til en ekte modell.",
    },
    Language {
        words: &[
            "kto", "gdzie", "kiedy", "dlaczego", "jest", "nie", "jak", "cześć", "dziękuję", "proszę", "czy", "się",
            "polsku", "zbudował", "dzień", "dobry", "mogę",
        ],
        reply: "Jestem wbudowaną próbą programu Quarterdeck: nie modelem językowym, lecz regułami, które rozumieją tylko angielski. \
                Proszę zapytać po angielsku albo podłączyć prawdziwy model.",
    },
];
const RUSSIAN: &str = "Я встроенная репетиция Quarterdeck: не языковая модель, а правила, которые понимают только английский. \
                       Спросите по-английски или подключите настоящую модель.";
const CHINESE: &str = "我是 Quarterdeck 内置的排练程序：不是语言模型，只是一些规则，只懂英语。请用英语提问，或者连接一个真正的模型。";
const OTHER: &str = "I am the rehearsal model of Quarterdeck: no language model, but rules that understand English only. Please ask in \
                     English, or connect a real model.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_languages_are_told_from_english() {
        for (text, word) in [
            ("Wer hat die Fram gebaut?", "Sprachmodell"),
            ("Qui a construit le Fram ?", "modèle de langage"),
            ("¿Quién construyó el Fram?", "modelo de lenguaje"),
            ("Chi ha costruito la Fram?", "modello linguistico"),
            ("Quem construiu o Fram e quando foi?", "modelo de linguagem"),
            ("Wie heeft de Fram gebouwd?", "taalmodel"),
            ("Hvem bygde Fram?", "språkmodell"),
            ("Kto zbudował statek Fram?", "językowym"),
            ("Кто построил Фрам?", "языковая модель"),
            ("谁建造了前进号？", "语言模型"),
            ("フラム号を造ったのは誰ですか", "English"),
        ] {
            assert!(answer(text).is_some_and(|reply| reply.contains(word)), "{text}: {:?}", answer(text));
        }
        for text in [
            "Who built the Fram?",
            "Where is Vardø, and who was Jørgen Stubberud?",
            "Otto Sverdrup",
            "Tell me about Framsjaa",
            "an die Freude",
            "book a meeting with Jose in Paris",
            "Quo vadis",
        ] {
            assert_eq!(answer(text), None, "{text}");
        }
    }
}
