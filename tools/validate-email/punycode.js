// Punycode (RFC 3492): international domain labels as ASCII. Without the xn-- in front.

const BASE = 36;
const T_MIN = 1;
const T_MAX = 26;
const DIGITS = 'abcdefghijklmnopqrstuvwxyz0123456789';

export function encode(label) {
  const points = [...label].map((character) => character.codePointAt(0));
  const basic = points.filter((point) => point < 128);
  let output = basic.length > 0 ? `${String.fromCodePoint(...basic)}-` : '';
  let handled = basic.length;
  let current = 128;
  let delta = 0;
  let bias = 72;

  while (handled < points.length) {
    const next = Math.min(...points.filter((point) => point >= current));
    delta += (next - current) * (handled + 1);
    current = next;
    for (const point of points) {
      if (point < current) {
        delta += 1;
      } else if (point === current) {
        output += variableLength(delta, bias);
        bias = adapt(delta, handled + 1, handled === basic.length);
        delta = 0;
        handled += 1;
      }
    }
    delta += 1;
    current += 1;
  }
  return output;
}

/** The label that `text` stands for, or undefined when it stands for none. */
export function decode(text) {
  const hyphen = text.lastIndexOf('-');
  const points = hyphen > 0 ? [...text.slice(0, hyphen)].map((character) => character.codePointAt(0)) : [];
  let current = 128;
  let index = 0;
  let bias = 72;

  for (let at = hyphen + 1; at < text.length; ) {
    const before = index;
    let weight = 1;
    for (let k = BASE; ; k += BASE) {
      const digit = DIGITS.indexOf(text[at] ?? '?');
      at += 1;
      index += digit * weight;
      if (digit < 0 || index > 0x7fffffff) {
        return undefined;
      }
      const t = threshold(k, bias);
      if (digit < t) {
        break;
      }
      weight *= BASE - t;
    }
    const length = points.length + 1;
    bias = adapt(index - before, length, before === 0);
    current += Math.floor(index / length);
    index %= length;
    if (current > 0x10ffff) {
      return undefined;
    }
    points.splice(index, 0, current);
    index += 1;
  }
  return String.fromCodePoint(...points);
}

function variableLength(value, bias) {
  let output = '';
  let rest = value;
  for (let k = BASE; ; k += BASE) {
    const t = threshold(k, bias);
    if (rest < t) {
      return output + DIGITS[rest];
    }
    output += DIGITS[t + ((rest - t) % (BASE - t))];
    rest = Math.floor((rest - t) / (BASE - t));
  }
}

function threshold(k, bias) {
  return Math.min(T_MAX, Math.max(T_MIN, k - bias));
}

function adapt(delta, length, first) {
  let rest = Math.floor(delta / (first ? 700 : 2));
  rest += Math.floor(rest / length);
  let k = 0;
  while (rest > ((BASE - T_MIN) * T_MAX) / 2) {
    rest = Math.floor(rest / (BASE - T_MIN));
    k += BASE;
  }
  return k + Math.floor(((BASE - T_MIN + 1) * rest) / (rest + 38));
}
