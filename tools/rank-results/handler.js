// Orders items by weighted criteria and says why.
//
// Each criterion gives every item a number from 0 (worst of these items) to 1 (best of them); an item's score
// is the weighted mean. Scores are rounded before they are compared, so that the order is exactly what the
// numbers in the answer say, and equal scores keep the order in which the items were given.

import { invalid } from './invalid.js';
import { rate } from './rate.js';

export async function execute({ args }) {
  const { items, criteria, top_k: topK } = args;
  refuseDuplicates(items, criteria);

  const totalWeight = criteria.reduce((sum, criterion) => sum + criterion.weight, 0);
  const rated = criteria.map((criterion, index) => ({
    ...rate(items, criterion, index),
    field: criterion.field,
    missing: criterion.missing,
    share: criterion.weight / totalWeight,
  }));

  const judged = items.map((item, at) => ({ item, at, score: score(rated, at), lacks: lacking(rated, at) }));
  const excluded = judged.filter(({ lacks }) => lacks.length > 0);
  const ordered = judged
    .filter(({ lacks }) => lacks.length === 0)
    .sort((a, b) => b.score - a.score || a.at - b.at);
  const ranked = ordered.slice(0, topK).map((entry, place) => present(entry, place, ordered, rated));

  return {
    ok: true,
    data: {
      ranked,
      total: items.length,
      excluded: excluded.map(({ item, lacks }) => ({ id: item.id, missing: lacks })),
      criteria: rated.map(describe),
      summary: summarise(ranked, excluded.length),
    },
  };
}

function refuseDuplicates(items, criteria) {
  const twice = (values) => values.findIndex((value, index) => values.indexOf(value) !== index);
  const item = twice(items.map(({ id }) => id));
  if (item >= 0) {
    throw invalid(`/items/${item}/id`, 'two items have the same id', 'Give every item an id of its own.');
  }
  const criterion = twice(criteria.map(({ field }) => field));
  if (criterion >= 0) {
    throw invalid(`/criteria/${criterion}/field`, 'two criteria use the same field', 'Merge them into one criterion.');
  }
}

/** The fields for whose lack an item is left out. */
function lacking(rated, at) {
  return rated
    .filter(({ missing, ratings }) => missing === 'exclude' && ratings[at].value === undefined)
    .map(({ field }) => field);
}

function score(rated, at) {
  return round(rated.reduce((sum, { share, ratings }) => sum + share * ratings[at].rating, 0));
}

function present({ item, at, score: total }, place, ordered, rated) {
  const label = item.label === undefined ? {} : { label: item.label };
  return { rank: place + 1, id: item.id, ...label, score: total, why: explain(rated, at, ordered, place) };
}

/** One line for each criterion, the one that counted most first. */
function explain(rated, at, ordered, place) {
  const lines = rated
    .map(({ field, share, ratings }) => ({ field, share, points: share * ratings[at].rating, ...ratings[at] }))
    .sort((a, b) => b.points - a.points)
    .map(({ field, share, points, value, note }) => {
      const what = value === undefined ? `no ${field}` : `${field} ${value}`;
      return `${what} (${note}): ${round(points)} of ${round(share)}`;
    });
  const above = ordered[place - 1];
  const tied = above !== undefined && above.score === ordered[place].score;
  return tied ? [...lines, `same score as ${above.item.id}, which was given first`] : lines;
}

function describe({ field, share, kind, best, worst }) {
  return { field, share: round(share), kind, best, worst };
}

/** What a voice can say. */
function summarise(ranked, excluded) {
  if (ranked.length === 0) {
    return 'No item has every field that is needed to rank it.';
  }
  const [first, second] = ranked.map((item) => item.label ?? item.id);
  const tie = second !== undefined && ranked[0].score === ranked[1].score;
  const runnerUp = second === undefined ? '' : tie ? `, level with ${second}` : `, then ${second}`;
  const left = excluded === 0 ? '' : ` ${excluded} left out for missing values.`;
  return `${first} comes first${runnerUp}.${left}`;
}

function round(value) {
  return Math.round(value * 10_000) / 10_000;
}
