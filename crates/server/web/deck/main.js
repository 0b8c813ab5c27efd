// The deck: its tabs and the sign-in form.

import { find, h, setText } from '../shared/dom.js';
import { access, get, hasToken, saveToken } from './api.js';
import './audit-view.js';
import './live-view.js';
import './mcp-view.js';
import './nodes-view.js';
import './playground-view.js';
import './registry-view.js';
import './sessions-view.js';
import './tools-view.js';
import './unanswered-view.js';
import { View } from './view.js';

const views = [
  { name: 'tools', title: 'Tools' },
  { name: 'live', title: 'Live' },
  { name: 'sessions', title: 'Sessions' },
  { name: 'unanswered', title: 'Unanswered' },
  { name: 'audit', title: 'Audit' },
  { name: 'registry', title: 'Registry' },
  { name: 'mcp', title: 'MCP' },
  { name: 'nodes', title: 'Nodes' },
  { name: 'playground', title: 'Playground' },
].map(({ name, title }) => {
  const panel = document.createElement(`qd-deck-${name}`);
  if (!(panel instanceof View)) throw new Error(`no view ${name}`);
  for (const [attribute, value] of Object.entries({
    id: `panel-${name}`,
    role: 'tabpanel',
    'aria-labelledby': `tab-${name}`,
    tabindex: '-1',
  })) {
    panel.setAttribute(attribute, value);
  }
  panel.hidden = true;
  const tab = h(
    'a',
    { id: `tab-${name}`, role: 'tab', href: `#${name}`, 'aria-controls': `panel-${name}`, 'data-testid': `tab-${name}` },
    title,
  );
  return { name, title, panel, tab };
});

const tabs = find('#tabs', HTMLElement);
const main = find('#main', HTMLElement);
const signIn = find('#sign-in', HTMLFormElement);
const token = find('#token', HTMLInputElement);
const forget = find('#forget', HTMLButtonElement);
let isLocked = false;

/** Shows the view that the address names. */
function showView() {
  const [name, rest = ''] = decoded(location.hash.slice(1)).split(/\/(.*)/s);
  const shown = views.find((view) => view.name === name) ?? views[0];
  for (const { panel, tab, name, title } of views) {
    const isShown = name === shown.name && !isLocked;
    tab.setAttribute('aria-selected', String(isShown));
    tab.tabIndex = name === shown.name ? 0 : -1;
    if (!isShown) panel.hide();
    else panel.show(rest);
    if (isShown) document.title = `${title} · Deck · Quarterdeck`;
  }
}

/** Decodes the fragment, or returns it unchanged if it is malformed. @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** @param {boolean} locked */
function lock(locked) {
  isLocked = locked;
  signIn.hidden = !locked;
  main.hidden = tabs.hidden = locked;
  forget.hidden = locked || !hasToken();
  showView();
  if (locked) token.focus();
}

tabs.addEventListener('keydown', (event) => {
  const steps = /** @type {Record<string, number>} */ ({ ArrowLeft: -1, ArrowRight: 1 });
  const from = views.findIndex(({ tab }) => tab === document.activeElement);
  if (from < 0) return;
  let to = event.key === 'Home' ? 0 : event.key === 'End' ? views.length - 1 : from;
  to = (to + (steps[event.key] ?? 0) + views.length) % views.length;
  if (to === from) return;
  event.preventDefault();
  location.hash = views[to].name;
  views[to].tab.focus();
});

signIn.addEventListener('submit', (event) => {
  event.preventDefault();
  saveToken(token.value.trim());
  setText(find('#sign-in-notice', HTMLElement), '');
  void open();
});

forget.addEventListener('click', () => {
  saveToken(null);
  token.value = '';
  void open();
});

access.addEventListener('locked', () => {
  if (isLocked) return;
  const wasGiven = hasToken();
  saveToken(null);
  setText(find('#sign-in-notice', HTMLElement), wasGiven ? 'Wrong token.' : '');
  lock(true);
});

/** Checks the token with one request before any view loads. */
async function open() {
  isLocked = false;
  await get('series', { after: Number.MAX_SAFE_INTEGER }).catch(() => {});
  if (!isLocked) lock(false);
}

tabs.append(...views.map(({ tab }) => tab));
main.append(...views.map(({ panel }) => panel));
addEventListener('hashchange', showView);
void open();
