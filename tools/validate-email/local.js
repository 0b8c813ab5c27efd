// The part before the @: a dot-atom, or a quoted string (RFC 5321, with the letters of RFC 6531).

const MAX_LOCAL_OCTETS = 64;
const ATOM_SIGNS = "!#$%&'*+-/=?^_`{|}~";

/** Reads a local part; `value` is its normal form, which keeps the case. */
export function readLocal(text) {
  const quoted = text.startsWith('"');
  const { value, reasons } = quoted ? readQuoted(text) : readDotAtom(text);
  if (new TextEncoder().encode(text).length > MAX_LOCAL_OCTETS) {
    const message = `The part before the @ is longer than ${MAX_LOCAL_OCTETS} octets.`;
    reasons.push({ code: 'local_too_long', message });
  }
  return { value: value.normalize('NFC'), reasons };
}

function readDotAtom(text) {
  const reasons = [];
  if (text.startsWith('.') || text.endsWith('.') || text.includes('..')) {
    reasons.push({ code: 'local_dots', message: 'Dots before the @ must stand single and between other characters.' });
  }
  const strange = [...text].find((character) => character !== '.' && !isAtomCharacter(character));
  if (strange !== undefined) {
    reasons.push(notAllowed(strange));
  }
  return { value: text, reasons };
}

/** Quotes that are not needed are dropped: "ana"@example.com is ana@example.com. */
function readQuoted(text) {
  const broken = { code: 'local_quotes', message: 'The quotes before the @ do not match.' };
  if (text.length < 2 || !text.endsWith('"')) {
    return { value: text, reasons: [broken] };
  }
  const inner = text.slice(1, -1);
  let content = '';
  for (let at = 0; at < inner.length; at += 1) {
    if (inner[at] === '\\') {
      at += 1;
    } else if (inner[at] === '"') {
      return { value: text, reasons: [broken] };
    }
    if (at >= inner.length) {
      return { value: text, reasons: [broken] };
    }
    content += inner[at];
  }
  const control = [...content].find(isControl);
  if (control !== undefined) {
    return { value: text, reasons: [notAllowed(control)] };
  }
  const plain = content !== '' && readDotAtom(content).reasons.length === 0;
  return { value: plain ? content : `"${content.replace(/["\\]/g, '\\$&')}"`, reasons: [] };
}

/** Letters, digits and pictures of any script may stand bare, and some signs. */
function isAtomCharacter(character) {
  return ATOM_SIGNS.includes(character) || /^[\p{L}\p{M}\p{N}\p{So}]$/u.test(character);
}

function notAllowed(character) {
  return { code: 'local_character', message: `${name(character)} cannot stand before the @.` };
}

function isControl(character) {
  const code = character.codePointAt(0);
  return code < 32 || (code >= 127 && code < 160);
}

/** A character as a sentence can show it. */
export function name(character) {
  if (/\s/.test(character)) {
    return 'A space';
  }
  return isControl(character) ? 'A control character' : `“${character}”`;
}
