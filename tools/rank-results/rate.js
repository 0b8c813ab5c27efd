// What one criterion thinks of every item: a rating from 0 to 1, the value behind it and a short note.

import { invalid } from './invalid.js';

/** What an item without a value gets. Those to be excluded are rated too, but not shown. */
const WITHOUT_VALUE = {
  worst: { rating: 0, note: 'missing, counted as worst' },
  neutral: { rating: 0.5, note: 'missing, counted as average' },
  exclude: { rating: 0, note: 'missing' },
};

/** ISO dates and date-times, whose strings can be compared as moments. */
const DATE = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})?)?$/;

export function rate(items, criterion, index) {
  const values = items.map((item) => valueOf(item, criterion.field));
  if (values.every((value) => value === undefined)) {
    throw nobodyHas(items, criterion.field, index);
  }
  const scale = chooseScale(values, criterion, index);
  const numbers = values.map((value) => (value === undefined ? undefined : scale.measure(value)));
  const present = numbers.filter((number) => number !== undefined);
  const low = Math.min(...present);
  const high = Math.max(...present);
  const [best, worst] = scale.lowIsBest ? [low, high] : [high, low];

  const ratings = numbers.map((number, at) => {
    if (number === undefined) {
      return WITHOUT_VALUE[criterion.missing];
    }
    const rating = low === high ? 1 : position(number, worst, best);
    return { rating, value: values[at], note: note(rating, low === high) };
  });
  const behind = (number) => values[numbers.indexOf(number)];
  return { kind: scale.kind, best: behind(best), worst: behind(worst), ratings };
}

/** Null is as good as absent, and a field may be named `constructor`. */
function valueOf({ fields }, field) {
  return Object.hasOwn(fields, field) ? (fields[field] ?? undefined) : undefined;
}

/** Where a number stands between the worst (0) and the best (1). Halved, so that no difference overflows. */
function position(number, worst, best) {
  return (number / 2 - worst / 2) / (best / 2 - worst / 2);
}

function note(rating, allEqual) {
  if (allEqual) {
    return 'same for all';
  }
  return rating === 1 ? 'best' : rating === 0 ? 'worst' : `${Math.round(rating * 100)}% of the way to the best`;
}

/** How the values of a field are turned into numbers. A value the scale does not know counts as missing. */
function chooseScale(values, criterion, index) {
  const lowIsBest = criterion.direction === 'asc';
  const has = (type) => values.some((value) => typeof value === type);
  if (criterion.order !== undefined) {
    return orderedScale(values, criterion, index);
  }
  if ([has('number'), has('boolean'), has('string')].filter(Boolean).length > 1) {
    const message = `the values of ${criterion.field} are of different types`;
    throw invalid(`/criteria/${index}/field`, message, 'Give this field the same type in every item.');
  }
  if (has('number')) {
    return { kind: 'number', lowIsBest, measure: (value) => value };
  }
  if (has('boolean')) {
    return { kind: 'boolean', lowIsBest, measure: (value) => (value ? 1 : 0) };
  }
  if (values.every((value) => value === undefined || (DATE.test(value) && !Number.isNaN(Date.parse(value))))) {
    return { kind: 'date', lowIsBest, measure: (value) => Date.parse(value) };
  }
  const message = `${criterion.field} holds words, which have no order of their own`;
  throw invalid(`/criteria/${index}`, message, 'List its values in "order", best first.');
}

/** `order` lists values from best to worst, so it needs no direction. */
function orderedScale(values, { field, order }, index) {
  if (!values.some((value) => order.includes(value))) {
    const message = `no item has a value of ${field} that is listed in order`;
    throw invalid(`/criteria/${index}/order`, message, 'Write the values exactly as they stand in the items.');
  }
  const measure = (value) => (order.includes(value) ? order.indexOf(value) : undefined);
  return { kind: 'order', lowIsBest: true, measure };
}

function nobodyHas(items, field, index) {
  const names = [...new Set(items.flatMap(({ fields }) => Object.keys(fields)))].sort();
  const known = names.slice(0, 20).join(', ') || 'no fields at all';
  return invalid(`/criteria/${index}/field`, `no item has a value for ${field}`, `The items have: ${known}.`);
}
