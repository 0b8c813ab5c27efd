// What the operator has set for the page. The server writes it into the document; a widget on another site asks for it.

/**
 * @typedef {object} PageSettings
 * @property {string[]} suggestions messages that an empty conversation offers; the built-in ones when there are none
 * @property {{ toolCards: boolean, gates: boolean, json: boolean }} show what visitors are shown of tool calls
 */

/** @type {PageSettings} */
let settings = { suggestions: [], show: { toolCards: true, gates: true, json: true } };

const written = document.querySelector('script#quarterdeck-page-settings');
if (written?.textContent) usePageSettings(JSON.parse(written.textContent));

/** Uses what `GET /api/page` has answered. @param {Partial<PageSettings>} given */
export function usePageSettings(given) {
  settings = { ...settings, ...given };
}

/** The settings as they are now. */
export function pageSettings() {
  return settings;
}
