// Who this visitor is to Quarterdeck. Its cookies do not reach another origin, so each answer brings a signed token, which
// goes back in a header with every request.

const KEY = 'quarterdeck.session';

export function keepToken(token: unknown) {
  if (typeof token === 'string') localStorage.setItem(KEY, token);
}

export function tokenHeaders(): Record<string, string> {
  const token = localStorage.getItem(KEY);
  return token ? { 'X-Quarterdeck-Session': token } : {};
}
