// The few pictures that the pages use, drawn with one stroke width on a grid of 24.

const shapes = /** @type {const} */ ({
  send: 'M12 19V5M5 12l7-7 7 7',
  stop: 'M7 7h10v10H7z',
  microphone: 'M12 3a3 3 0 0 0-3 3v6a3 3 0 0 0 6 0V6a3 3 0 0 0-3-3zM5 11a7 7 0 0 0 14 0M12 18v3',
  muted:
    'M15 9.3V6a3 3 0 0 0-5.7-1.3M9 9v3a3 3 0 0 0 5.1 2.1M5 11a7 7 0 0 0 11.5 5.4M19 11a7 7 0 0 1-.6 2.8M12 18v3M3 3l18 18',
  hangUp: 'M3 13.5c5-5 13-5 18 0l-2.6 2.6-3.4-1.6v-2.2a11 11 0 0 0-6 0v2.2l-3.4 1.6z',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  pen: 'M12 20h8M5 15L15.5 4.5l4 4L9 19l-5 1z',
  cross: 'M6 6l12 12M18 6L6 18',
  shield: 'M12 3l7 3v5c0 4.5-3 8-7 10-4-2-7-5.5-7-10V6z',
  clock: 'M12 7v5l3 2M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0z',
  down: 'M12 5v14M5 12l7 7 7-7',
  search: 'M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM20 20l-4.8-4.8',
  calendar: 'M5 6h14v14H5zM5 10h14M9 3v4M15 3v4',
  document: 'M7 3h7l4 4v14H7zM14 3v4h4M10 12h5M10 16h5',
  tool: 'M14.5 6.5a4 4 0 0 0-5 5L4 17l3 3 5.5-5.5a4 4 0 0 0 5-5L15 12l-3-3z',
  quiet: 'M4 10v4h4l5 4V6L8 10zM17 9l4 6M21 9l-4 6',
});

/** @typedef {keyof typeof shapes} IconName */

/**
 * A picture that says nothing to a screen reader: what it stands beside has a name.
 *
 * @param {IconName} name
 */
export function icon(name) {
  return picture(shapes[name]);
}

/**
 * The same for a shape that only one place uses.
 *
 * @param {string} shape
 */
export function picture(shape) {
  const space = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(space, 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS(space, 'path');
  path.setAttribute('d', shape);
  svg.append(path);
  return svg;
}
