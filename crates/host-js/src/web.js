// What handlers expect of a web platform: URL, TextEncoder, structuredClone, fetch. Parsing is the host's; these
// are the shapes around it. Only engines of handlers that name one of them have it. A handler that breaks a prototype breaks these for itself alone.

import { define, Question } from 'quarterdeck:prelude';

export function installWeb(host, { wait, begin }) {
  const parseUrl = (url, base) => host.ask(Question.parseUrl, url, base);
  const setUrl = (href, part, value) => host.ask(Question.setUrl, href, part, value);

  class URLSearchParams {
    #pairs = [];
    #changed = () => {};
    constructor(init = '') {
      if (typeof init === 'string') this.#pairs = JSON.parse(host.ask(Question.parseForm, init.replace(/^\?/, '').toWellFormed()));
      else if (init[Symbol.iterator]) for (const [name, value] of init) this.#pairs.push([`${name}`, `${value}`]);
      else for (const name of Object.keys(init)) this.#pairs.push([name, `${init[name]}`]);
    }
    static attach(params, changed) { params.#changed = changed; return params; }
    append(name, value) { this.#pairs.push([`${name}`, `${value}`]); this.#changed(); }
    delete(name) { this.#pairs = this.#pairs.filter(([key]) => key !== name); this.#changed(); }
    get(name) { return this.#pairs.find(([key]) => key === name)?.[1] ?? null; }
    getAll(name) { return this.#pairs.filter(([key]) => key === name).map(([, value]) => value); }
    has(name) { return this.#pairs.some(([key]) => key === name); }
    set(name, value) {
      const first = this.#pairs.find(([key]) => key === name);
      if (first === undefined) return this.append(name, value);
      first[1] = `${value}`;
      this.#pairs = this.#pairs.filter((pair) => pair === first || pair[0] !== name);
      this.#changed();
    }
    sort() { this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)); this.#changed(); }
    forEach(visit) { for (const [name, value] of this.#pairs) visit(value, name, this); }
    get size() { return this.#pairs.length; }
    * entries() { for (const [name, value] of this.#pairs) yield [name, value]; }
    * keys() { for (const [name] of this.#pairs) yield name; }
    * values() { for (const [, value] of this.#pairs) yield value; }
    [Symbol.iterator]() { return this.entries(); }
    toString() { return host.ask(Question.writeForm, JSON.stringify(this.#pairs)); }
  }
  const { attach } = URLSearchParams;
  delete URLSearchParams.attach;

  class URL {
    #parts;
    #params;
    constructor(url, base) { this.#take(parseUrl(`${url}`.toWellFormed(), base === undefined ? '' : `${base}`)); }
    #take(text) {
      if (text === '') throw new TypeError('Invalid URL');
      this.#parts = JSON.parse(text);
    }
    #set(part, value) {
      const text = setUrl(this.#parts.href, part, `${value}`.toWellFormed());
      if (text !== '') this.#parts = JSON.parse(text);
      if (part !== 'hash') this.#params = undefined;
    }
    static canParse(url, base) { return parseUrl(`${url}`, base === undefined ? '' : `${base}`) !== ''; }
    static parse(url, base) { try { return new URL(url, base); } catch { return null; } }
    get origin() { return this.#parts.origin; }
    get href() { return this.#parts.href; }
    set href(value) { this.#take(parseUrl(`${value}`.toWellFormed(), '')); this.#params = undefined; }
    get searchParams() {
      return this.#params ??= attach(new URLSearchParams(this.search), () => {
        this.#parts = JSON.parse(setUrl(this.#parts.href, 'search', this.#params.toString()));
      });
    }
    get protocol() { return this.#parts.protocol; }
    set protocol(value) { this.#set('protocol', value); }
    get username() { return this.#parts.username; }
    set username(value) { this.#set('username', value); }
    get password() { return this.#parts.password; }
    set password(value) { this.#set('password', value); }
    get host() { return this.#parts.host; }
    set host(value) { this.#set('host', value); }
    get hostname() { return this.#parts.hostname; }
    set hostname(value) { this.#set('hostname', value); }
    get port() { return this.#parts.port; }
    set port(value) { this.#set('port', value); }
    get pathname() { return this.#parts.pathname; }
    set pathname(value) { this.#set('pathname', value); }
    get search() { return this.#parts.search; }
    set search(value) { this.#set('search', value); }
    get hash() { return this.#parts.hash; }
    set hash(value) { this.#set('hash', value); }
    toString() { return this.href; }
    toJSON() { return this.href; }
  }

  class TextEncoder {
    get encoding() { return 'utf-8'; }
    encode(text = '') { return host.encode(`${text}`.toWellFormed()); }
  }

  class TextDecoder {
    #fatal;
    constructor(label = 'utf-8', { fatal = false } = {}) {
      if (!/^(utf-?8|unicode-1-1-utf-8)$/i.test(label)) throw new RangeError(`the encoding ${label} is not supported`);
      this.#fatal = fatal;
    }
    get encoding() { return 'utf-8'; }
    get fatal() { return this.#fatal; }
    decode(input) {
      if (input === undefined) return '';
      return decodeUtf8(bytesOf(input), this.#fatal);
    }
  }

  class Headers {
    #values = { __proto__: null };
    constructor(init = {}) {
      const pairs = init[Symbol.iterator] ? init : Object.entries(init);
      for (const [name, value] of pairs) this.append(name, value);
    }
    append(name, value) {
      const key = `${name}`.toLowerCase();
      this.#values[key] = key in this.#values ? `${this.#values[key]}, ${value}` : `${value}`;
    }
    set(name, value) { this.#values[`${name}`.toLowerCase()] = `${value}`; }
    get(name) { return this.#values[`${name}`.toLowerCase()] ?? null; }
    has(name) { return `${name}`.toLowerCase() in this.#values; }
    delete(name) { delete this.#values[`${name}`.toLowerCase()]; }
    forEach(visit) { for (const [name, value] of this.entries()) visit(value, name, this); }
    entries() { return Object.entries(this.#values)[Symbol.iterator](); }
    keys() { return Object.keys(this.#values)[Symbol.iterator](); }
    [Symbol.iterator]() { return this.entries(); }
  }

  class Response {
    #id;
    constructor(id, { status, statusText, url, headers }) {
      this.#id = id;
      Object.assign(this, { status, statusText, url, ok: status >= 200 && status < 300, headers: new Headers(headers) });
    }
    /** The body, which the host keeps until it is asked for, once. */
    #take() {
      if (this.#id === undefined) throw new TypeError('the body has been read already');
      const id = this.#id;
      this.#id = undefined;
      return id;
    }
    async text() { return host.ask(Question.bodyText, this.#take()); }
    async json() { return JSON.parse(host.ask(Question.bodyText, this.#take())); }
    async bytes() { return host.askBytes(Question.bodyBytes, this.#take()); }
    async arrayBuffer() { return host.askBytes(Question.bodyBytes, this.#take()).buffer; }
  }

  async function fetch(input, { method = 'GET', headers = {}, body, signal } = {}) {
    signal?.throwIfAborted();
    const lines = [...new Headers(headers)];
    const content = body instanceof URLSearchParams ? body.toString() : body;
    if (content !== undefined && content !== null && typeof content !== 'string') {
      throw new TypeError('the body of a request is a string');
    }
    const url = `${input?.href ?? input}`;
    const { username = '', password = '' } = JSON.parse(parseUrl(url.toWellFormed(), '') || '{}');
    if (username !== '' || password !== '') {
      throw new TypeError('a URL that is fetched has no user name and no password; send an Authorization header');
    }
    const request = { url, method: `${method}`.toUpperCase(), headers: lines, body: content ?? null };
    if (body instanceof URLSearchParams && !lines.some(([name]) => name === 'content-type')) {
      lines.push(['content-type', 'application/x-www-form-urlencoded;charset=UTF-8']);
    }
    let abort;
    const watch = (giveUp) => signal?.addEventListener('abort', abort = () => giveUp(signal.reason), { once: true });
    try {
      return await wait(() => begin('fetch', JSON.stringify([request])), (head, id) => new Response(id, head), watch);
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }

  for (const [name, value] of Object.entries({ URL, URLSearchParams, TextEncoder, TextDecoder, Headers, fetch, structuredClone })) {
    define(name, value);
  }
}

function bytesOf(input) {
  if (input instanceof ArrayBuffer) return new Uint8Array(input);
  if (ArrayBuffer.isView(input)) return new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
  throw new TypeError('bytes are an ArrayBuffer or a view of one');
}

function decodeUtf8(bytes, fatal) {
  const invalid = () => {
    if (fatal) throw new TypeError('the bytes are not UTF-8');
    return 0xfffd;
  };
  let text = '';
  let at = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  while (at < bytes.length) {
    const lead = bytes[at++];
    let point = lead;
    if (lead >= 0x80) {
      const more = lead >= 0xc2 && lead < 0xe0 ? 1 : lead >= 0xe0 && lead < 0xf0 ? 2 : lead >= 0xf0 && lead < 0xf5 ? 3 : 0;
      point = more === 0 ? -1 : lead & (0x3f >> more);
      // The second byte's range rules out what is overlong, a surrogate or past the last character.
      let low = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
      let high = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
      for (let i = 0; i < more; i++) {
        if (!(bytes[at] >= low && bytes[at] <= high)) { point = -1; break; }
        point = (point << 6) | (bytes[at++] & 0x3f);
        [low, high] = [0x80, 0xbf];
      }
      if (point === -1) point = invalid();
    }
    text += String.fromCodePoint(point);
  }
  return text;
}

function structuredClone(value) {
  const seen = new Map();
  const remember = (original, copy) => { seen.set(original, copy); return copy; };
  const clone = (original) => {
    if (typeof original === 'function' || typeof original === 'symbol') {
      const error = new Error(`${String(original)} could not be cloned`);
      error.name = 'DataCloneError';
      throw error;
    }
    if (typeof original !== 'object' || original === null) return original;
    if (seen.has(original)) return seen.get(original);
    if (original instanceof Date) return remember(original, new Date(original.getTime()));
    if (original instanceof RegExp) return remember(original, new RegExp(original.source, original.flags));
    if (original instanceof ArrayBuffer) return remember(original, original.slice(0));
    if (ArrayBuffer.isView(original)) {
      const { constructor, byteOffset, byteLength, length } = original;
      return remember(original, new constructor(clone(original.buffer), byteOffset, length ?? byteLength));
    }
    if (original instanceof Map) {
      const copy = remember(original, new Map());
      for (const [key, entry] of original) copy.set(clone(key), clone(entry));
      return copy;
    }
    if (original instanceof Set) {
      const copy = remember(original, new Set());
      for (const entry of original) copy.add(clone(entry));
      return copy;
    }
    if (original instanceof Error) {
      const copy = remember(original, Object.create(Object.getPrototypeOf(original)));
      for (const name of ['name', 'message', 'stack', 'cause']) {
        if (Object.hasOwn(original, name)) Object.defineProperty(copy, name, { value: clone(original[name]), writable: true, configurable: true });
      }
      return copy;
    }
    const copy = remember(original, Array.isArray(original) ? new Array(original.length) : {});
    for (const key of Object.keys(original)) copy[key] = clone(original[key]);
    return copy;
  };
  return clone(value);
}
