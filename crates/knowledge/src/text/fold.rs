//! Letters without case and accents.

use unicode_normalization::char::{decompose_compatible, is_combining_mark};

/// Appends a letter in lower case and without accents. Letters that Unicode does not decompose but that are often
/// written without their strokes (ø, ł) or as two (æ, ß) are spelt that way.
pub(super) fn fold_into(letter: char, folded: &mut String) {
    if letter.is_ascii() {
        return folded.push(letter.to_ascii_lowercase());
    }
    decompose_compatible(letter, |part| {
        // Vowel signs of other scripts are marks too, and not accents.
        if is_combining_mark(part) && matches!(part, '\u{300}'..='\u{36f}') {
            return;
        }
        for lower in part.to_lowercase() {
            match spelt(lower) {
                Some(spelling) => folded.push_str(spelling),
                None => folded.push(lower),
            }
        }
    });
}

fn spelt(letter: char) -> Option<&'static str> {
    Some(match letter {
        'ø' => "o",
        'æ' => "ae",
        'œ' => "oe",
        'ß' => "ss",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ħ' => "h",
        'ı' => "i",
        'ŋ' => "n",
        '\u{307}' => "",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(text: &str) -> String {
        let mut folded = String::new();
        text.chars().for_each(|letter| fold_into(letter, &mut folded));
        folded
    }

    #[test]
    fn accents_strokes_and_ligatures_are_folded() {
        assert_eq!(fold("ÅngströmØÆẞŁÞİﬁ²"), "angstromoaesslthifi2");
        assert_eq!(fold("Ελλάδα"), "ελλαδα");
    }
}
