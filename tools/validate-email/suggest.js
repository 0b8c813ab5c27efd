// Suggestions for a domain that is probably mistyped.

/** Domains with many mailboxes. One slip away from these is probably a slip. */
const COMMON = [
  'comcast.net', 'gmail.com', 'googlemail.com', 'hotmail.co.uk', 'hotmail.com', 'hotmail.fr', 'icloud.com',
  'libero.it', 'orange.fr', 'outlook.com', 'outlook.de', 'proton.me', 'protonmail.com', 't-online.de',
  'verizon.net', 'yahoo.co.jp', 'yahoo.co.uk', 'yahoo.com', 'yahoo.de', 'yahoo.fr', 'yandex.ru',
];

/** Real domains that only look like a slip of a common one. */
const LOOK_ALIKES = [
  'email.com', 'hotmail.de', 'hotmail.es', 'hotmail.it', 'mail.com', 'outlook.es', 'outlook.fr', 'yahoo.ca', 'yahoo.cn',
  'yahoo.es', 'yahoo.in', 'yahoo.it', 'yandex.by', 'yandex.ua', 'ymail.com',
];

/** Endings that do not exist but are typed a lot. */
const ENDINGS = {
  cmo: 'com', comm: 'com', con: 'com', coom: 'com', ocm: 'com', vom: 'com', xom: 'com', ner: 'net', nte: 'net', ogr: 'org',
};

/** The common domain that this one is a slip of, if any. */
export function nearDomain(domain) {
  if (COMMON.includes(domain) || LOOK_ALIKES.includes(domain)) {
    return undefined;
  }
  const near = COMMON.find((common) => isOneSlipAway(domain, common));
  if (near) {
    return near;
  }
  const dot = domain.lastIndexOf('.');
  const ending = domain.slice(dot + 1);
  if (!Object.hasOwn(ENDINGS, ending)) {
    return undefined;
  }
  // The ending may not be the only slip: gmial.con.
  const repaired = `${domain.slice(0, dot)}.${ENDINGS[ending]}`;
  return COMMON.find((common) => isOneSlipAway(repaired, common)) ?? repaired;
}

/** The text with the usual accidents undone; it need not be an address for that. */
export function repair(text) {
  let repaired = text
    .replace(/^[<("'\s]+|[>)"'\s.,;:!?]+$/g, '')
    .replace(/^mailto:/i, '');
  if (!repaired.includes('@')) {
    // Read out aloud: “ana dot ruiz at example dot com”.
    repaired = repaired
      .replace(/\s+(dot|point)\s+/gi, '.')
      .replace(/\s+(underscore)\s+/gi, '_')
      .replace(/\s+(dash|hyphen)\s+/gi, '-')
      .replace(/\s+at\s+/i, '@');
  }
  repaired = repaired.replace(/\s*@[@\s]*/g, '@').replace(/\s*\.[.\s]*/g, '.').replace(/\.?@\.?/g, '@');
  const at = repaired.lastIndexOf('@');
  return repaired.slice(0, at + 1) + repaired.slice(at + 1).replace(/,/g, '.');
}

/** One character too many, too few or wrong, or two neighbours swapped. */
function isOneSlipAway(a, b) {
  if (Math.abs(a.length - b.length) > 1 || a === b) {
    return a === b;
  }
  let start = 0;
  while (start < a.length && a[start] === b[start]) {
    start += 1;
  }
  const restA = a.slice(start);
  const restB = b.slice(start);
  const swapped = restA.length > 1 && restA[1] + restA[0] + restA.slice(2) === restB;
  return swapped || restA.slice(1) === restB.slice(1) || restA.slice(1) === restB || restA === restB.slice(1);
}
