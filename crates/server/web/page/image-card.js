// <qd-image>: an image that a tool has made, with its text for those who cannot see it.

import { h } from '../shared/dom.js';
import { isForeign, server } from '../shared/server.js';
import { visible } from '../shared/visible.js';

/** @typedef {import('./model.js').ToolFile} ToolFile */

export class ImageCard extends HTMLElement {
  /** @param {ToolFile} file */
  show(file) {
    if (this.dataset.id === file.id) return;
    this.dataset.id = file.id;
    const alt = visible(file.alt) || 'Generated image';
    const src = isForeign ? new URL(file.url, server).href : file.url;
    const size = { width: file.width, height: file.height };
    const image = h('img', { src, alt, ...size, 'data-testid': 'image' });
    // A link that has expired, or a file that was erased.
    image.addEventListener('error', () => this.replaceChildren(lost(alt)), { once: true });
    const link = h('a', { href: src, target: '_blank', rel: 'noopener', 'aria-label': 'Open the image in a new tab' }, image);
    this.replaceChildren(h('figure', {}, link, h('figcaption', { 'aria-hidden': 'true' }, h('bdi', {}, alt))));
  }
}

/** @param {string} alt */
function lost(alt) {
  return h('p', { class: 'note', 'data-testid': 'image-lost' }, 'This image is no longer available: ', h('bdi', {}, alt));
}

customElements.define('qd-image', ImageCard);
