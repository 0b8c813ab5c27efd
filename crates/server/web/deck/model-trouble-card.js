// The card that says that the text model fails.

import { h } from '../shared/dom.js';
import { withTimes } from '../shared/human-time.js';
import { modelReason } from '../shared/model-reasons.js';
import { formatCount } from './format.js';

/** @param {Api.ModelTrouble | null} trouble */
export function modelTroubleCard(trouble) {
  if (!trouble) return null;
  const { model, since, lastFailure, kind, failures, fallback } = trouble;
  const requests = failures === 1 ? '1 request' : `${formatCount(failures)} requests`;
  return h(
    'div',
    { class: 'card trouble', role: 'status', 'data-testid': 'model-trouble' },
    h('strong', {}, ...withTimes(`Model failing since ${since}`)),
    h('p', {}, ...withTimes(`${model}: ${modelReason(kind)} (${kind}, ${requests} in a row, the last one ${lastFailure}).`)),
    h('p', {}, fallback ? `${fallback} answers instead.` : 'No model answers in its place; [fallback] of the configuration can name one.'),
  );
}
