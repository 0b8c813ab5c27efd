// Makes invisible and direction-changing characters visible as ⟨U+202E⟩, for users and operators who decide by what
// they read. The server does the same in `contracts/src/visible.rs`, and
// `contracts/tests/visible.json` holds the two to one table.

const hides =
  /[\u{0}-\u{8}\u{b}-\u{1f}\u{7f}-\u{9f}\u{ad}\u{34f}\u{61c}\u{115f}\u{1160}\u{17b4}\u{17b5}\u{180b}-\u{180f}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{206f}\u{2800}\u{3164}\u{fe00}-\u{fe0f}\u{feff}\u{ffa0}\u{fff0}-\u{fffb}\u{13430}-\u{1343f}\u{16fe4}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}\u{d800}-\u{dfff}]/u;
const picture =
  /[\u{a9}\u{ae}\u{203c}\u{2049}\u{2122}\u{2139}\u{2194}-\u{21aa}\u{231a}-\u{23ff}\u{24c2}\u{25aa}-\u{25fe}\u{2600}-\u{27bf}\u{2934}\u{2935}\u{2b05}-\u{2b55}\u{3030}\u{303d}\u{3297}\u{3299}\u{1f000}-\u{1faff}]/u;

/**
 * A text with every character visible. Line feeds and tabs stay.
 *
 * @param {string} text
 */
export function visible(text) {
  if (!hides.test(text)) return text;
  const characters = [...text];
  return characters
    .map((character, place) => {
      if (!hides.test(character)) return character;
      if (belongsToEmoji(character, characters[place - 1], characters[place + 1])) return character;
      return `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`;
    })
    .join('');
}

/**
 * Whether a joiner or a selector is part of an emoji.
 *
 * @param {string} character
 * @param {string | undefined} before
 * @param {string | undefined} after
 */
function belongsToEmoji(character, before, after) {
  if (before === undefined) return false;
  if (character === '\u{200d}') {
    return (picture.test(before) || before === '\u{fe0f}') && after !== undefined && picture.test(after);
  }
  if (character !== '\u{fe0e}' && character !== '\u{fe0f}') return false;
  return picture.test(before) || (/^[0-9#*]$/.test(before) && after === '\u{20e3}');
}
