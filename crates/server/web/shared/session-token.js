// Who we are to a server of another origin: browsers keep its cookies from us, so it signs a token, which goes with
// every request. On the server's own page the cookie does that, out of reach of scripts.

import { isForeign } from './server.js';
import { lasting } from './storage.js';

const TOKEN_KEY = 'quarterdeck.session';

/** Keeps the newest token. @param {unknown} token */
export function keepToken(token) {
  if (isForeign && typeof token === 'string') lasting.set(TOKEN_KEY, token);
}

/** The headers of a request. @returns {Record<string, string>} */
export function tokenHeaders() {
  const token = isForeign ? lasting.get(TOKEN_KEY) : null;
  return token ? { 'x-quarterdeck-session': token } : {};
}
