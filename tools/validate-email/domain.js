// The part after the @: a host name with at least one dot, international ones in their ASCII form too.

import { name } from './local.js';
import { decode, encode } from './punycode.js';

const MAX_DOMAIN_CHARS = 253;
const MAX_LABEL_CHARS = 63;

/** Reads a domain; `value` is its ASCII form in lower case, `unicode` the form for display when that differs. */
export function readDomain(text) {
  if (text.startsWith('[')) {
    return refused(text, 'domain_literal', 'Addresses at a bare IP address are not accepted.');
  }
  // Ideographic full stops separate labels as well.
  const labels = text.normalize('NFKC').toLowerCase().replace(/\u3002/g, '.').split('.');
  const read = labels.map(readLabel);
  const value = read.map((label) => label.ascii).join('.');
  const unicode = read.map((label) => label.unicode).join('.');

  const reasons = unique(read.flatMap((label) => label.reasons));
  if (labels.length < 2) {
    reasons.push({ code: 'domain_dot_missing', message: 'The domain has no dot, so it has no top-level domain.' });
  } else if (/^[0-9]+$/.test(labels.at(-1))) {
    reasons.push({ code: 'domain_numeric', message: 'A top-level domain is not a number.' });
  }
  if (value.length > MAX_DOMAIN_CHARS) {
    reasons.push({ code: 'domain_too_long', message: `The domain is longer than ${MAX_DOMAIN_CHARS} characters.` });
  }
  return { value, unicode: unicode === value ? undefined : unicode, reasons };
}

function readLabel(label) {
  const reasons = [];
  const unicode = label.startsWith('xn--') ? decode(label.slice(4)) : label;
  if (unicode !== label && !isEncoded(label, unicode)) {
    reasons.push({ code: 'domain_punycode', message: `“${label}” is not the ASCII form of any international name.` });
    return { ascii: label, unicode: label, reasons };
  }
  if (label === '') {
    reasons.push({ code: 'domain_dots', message: 'Dots in the domain must stand single and between names.' });
  }
  if (label.startsWith('-') || label.endsWith('-')) {
    reasons.push({ code: 'domain_hyphen', message: 'A name in the domain cannot begin or end with a hyphen.' });
  }
  const strange = [...unicode].find((character) => !/^[\p{L}\p{M}\p{N}-]$/u.test(character));
  if (strange !== undefined) {
    reasons.push({ code: 'domain_character', message: `${name(strange)} cannot stand in a domain.` });
  }
  const ascii = isAscii(unicode) ? unicode : `xn--${encode(unicode)}`;
  if (ascii.length > MAX_LABEL_CHARS) {
    const message = `A name in the domain is longer than ${MAX_LABEL_CHARS} characters.`;
    reasons.push({ code: 'domain_label_too_long', message });
  }
  return { ascii, unicode, reasons };
}

/** Whether the label is the one ASCII form of an international name: each has exactly one. */
function isEncoded(label, unicode) {
  return unicode !== undefined && !isAscii(unicode) && `xn--${encode(unicode)}` === label;
}

function isAscii(text) {
  return /^[\x00-\x7f]*$/.test(text);
}

function refused(text, code, message) {
  return { value: text, unicode: undefined, reasons: [{ code, message }] };
}

/** Each reason once, however many labels have it. */
function unique(reasons) {
  const messages = reasons.map(({ message }) => message);
  return reasons.filter(({ message }, index) => messages.indexOf(message) === index);
}
