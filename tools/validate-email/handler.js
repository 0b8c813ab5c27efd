// Says whether a text is an e-mail address, in its normal form, and what is wrong with it if not.
//
// Syntax only: nothing is looked up, so `valid` does not mean that mail is read there. An address
// that is not valid is a successful answer, with every reason at once.

import { readLocal } from './local.js';
import { readDomain } from './domain.js';
import { repair, nearDomain } from './suggest.js';

/** Octets of a whole address, as RFC 5321 allows a path to hold. */
const MAX_ADDRESS_OCTETS = 254;

export async function execute({ args }) {
  const text = args.email.trim();
  const answer = check(text);
  const suggestion = suggest(text, answer);
  return { ok: true, data: suggestion ? { ...answer, suggestion } : answer };
}

function check(text) {
  const { localText, domainText, reasons } = split(text);
  if (reasons.length > 0) {
    return { valid: false, normalized: null, local: null, domain: null, reasons };
  }

  const local = readLocal(localText);
  const domain = readDomain(domainText);
  reasons.push(...local.reasons, ...domain.reasons);
  const normalized = `${local.value}@${domain.value}`;
  if (octets(normalized) > MAX_ADDRESS_OCTETS) {
    reasons.push({ code: 'address_too_long', message: `The address is longer than ${MAX_ADDRESS_OCTETS} octets.` });
  }

  const valid = reasons.length === 0;
  const answer = { valid, normalized: valid ? normalized : null, local: local.value, domain: domain.value, reasons };
  return domain.unicode ? { ...answer, unicode_domain: domain.unicode } : answer;
}

/** Splits at the last @, the only one that may stand outside quotes. */
function split(text) {
  const at = text.lastIndexOf('@');
  if (at < 0) {
    return { reasons: [{ code: 'at_missing', message: 'There is no @ sign.' }] };
  }
  const reasons = [];
  if (at === 0) {
    reasons.push({ code: 'local_empty', message: 'There is nothing before the @ sign.' });
  }
  if (at === text.length - 1) {
    reasons.push({ code: 'domain_empty', message: 'There is nothing after the @ sign.' });
  }
  return { localText: text.slice(0, at), domainText: text.slice(at + 1), reasons };
}

/** What the writer may have meant: a repaired address, or the well-known domain that is one slip away. */
function suggest(text, answer) {
  const candidate = answer.valid ? answer : check(repair(text));
  if (!candidate.valid) {
    return undefined;
  }
  const domain = nearDomain(candidate.domain);
  if (domain) {
    return `${candidate.local}@${domain}`;
  }
  return answer.valid ? undefined : candidate.normalized;
}

function octets(text) {
  return new TextEncoder().encode(text).length;
}
