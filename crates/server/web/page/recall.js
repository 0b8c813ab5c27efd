// Brings back with the arrow keys what was sent, as long as nothing else is written.

/** How many messages can be brought back. */
const MAX_RECALLED = 50;

/**
 * @param {HTMLTextAreaElement} area
 * @param {() => string[]} sent what can be brought back, the latest last
 */
export function addRecall(area, sent) {
  /** What was brought back last, and the place of it from the end. */
  let recalled = { text: '', place: 0 };
  area.addEventListener('keydown', (event) => {
    const { key, shiftKey, ctrlKey, altKey, metaKey, isComposing } = event;
    const step = key === 'ArrowUp' ? 1 : key === 'ArrowDown' ? -1 : 0;
    if (step === 0 || shiftKey || ctrlKey || altKey || metaKey || isComposing) return;
    const { value, selectionStart, selectionEnd } = area;
    const isAtEdge = selectionStart === selectionEnd && (selectionEnd === value.length || selectionEnd === 0);
    if (value !== '' && !(value === recalled.text && isAtEdge)) return;
    const known = sent().slice(-MAX_RECALLED);
    const place = (value === '' ? 0 : recalled.place) + step;
    if (place < 0 || place > known.length) return;
    event.preventDefault();
    recalled = { text: place === 0 ? '' : (known.at(-place) ?? ''), place };
    area.value = recalled.text;
    area.setSelectionRange(area.value.length, area.value.length);
    area.dispatchEvent(new Event('input', { bubbles: true }));
  });
}
