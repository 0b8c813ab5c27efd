// How the operator wants the chat to look and greet (`GET /api/page`). What the site's own styles say counts more.

import { fill, find, h, setText } from '../shared/dom.js';
import { usePageSettings } from '../shared/page-settings.js';
import { server } from '../shared/server.js';

/**
 * @param {HTMLElement} host
 * @param {HTMLElement} panel
 * @param {Api.PageSettings} settings
 */
export function applySettings(host, panel, settings) {
  const { title, logo, welcome, suggestions, colours, links } = settings;
  usePageSettings(settings);
  const heading = find('#title', HTMLElement, panel);
  if (title) setText(heading, title);
  if (logo) heading.prepend(h('img', { src: new URL(logo, server).href, alt: '', width: 24, height: 24 }));
  if (welcome) setText(find('.greeting', HTMLElement, panel), welcome);
  fill(find('.suggestions', HTMLElement, panel), ...suggestions.map(suggestion));
  const nav = find('.links', HTMLElement, panel);
  nav.hidden = links.length === 0;
  fill(nav, ...links.map(({ label, url }) => h('a', { href: new URL(url, server).href, target: '_blank', rel: 'noopener' }, label)));
  const given = getComputedStyle(host);
  for (const [name, colour] of Object.entries(colours)) {
    const variable = `--quarterdeck-${name.replace(/[A-Z]/, (letter) => `-${letter.toLowerCase()}`)}`;
    if (colour && !given.getPropertyValue(variable)) host.style.setProperty(variable, colour);
  }
}

/** @param {string} text */
function suggestion(text) {
  const send = (/** @type {Event} */ { currentTarget }) => {
    currentTarget?.dispatchEvent(new CustomEvent('send', { bubbles: true, detail: text }));
    currentTarget?.dispatchEvent(new CustomEvent('leave', { bubbles: true }));
  };
  return h('li', {}, h('button', { type: 'button', 'data-testid': 'suggestion', onclick: send }, text));
}
