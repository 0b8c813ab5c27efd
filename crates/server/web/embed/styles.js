// The page's styles for a shadow root. A site may set the size of `rem` to anything, and the panel is always narrow.

/** @param {string} text */
export function styleSheet(text) {
  const narrow = text.replaceAll('@media (max-width: 36rem)', '@media all');
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(narrow.replace(/([\d.]+)rem\b/g, 'calc($1 * var(--unit))'));
  return sheet;
}
