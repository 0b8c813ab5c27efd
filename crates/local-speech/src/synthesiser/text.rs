//! What a synthesiser is given to say.

/// About two minutes of speech.
pub(super) const MAX_TEXT_BYTES: usize = 2_000;

/// The text on one line, without anything that a program could take for a command.
///
/// espeak-ng reads `[[...]]` as phonemes and `say` reads it as commands; a line is a sentence for Piper.
pub(super) fn speakable(text: &str) -> String {
    let plain = text.replace(|c: char| c.is_control() || matches!(c, '[' | ']'), " ");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_commands_are_not_spoken() {
        assert_eq!(speakable(" One\nline\u{1b}[31m,\0 \u{2028}please. "), "One line 31m, please.");
        assert_eq!(speakable("[[slnc 9000]] [[[[h@l'oU]]]]"), "slnc 9000 h@l'oU");
        assert_eq!(speakable("\n\t "), "");
    }
}
