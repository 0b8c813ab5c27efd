// What variants are made of.

// @ts-check

/** `name` is the word in the schema. */
export const styles = [
  { name: 'photo', words: 'A detailed photograph' },
  { name: 'illustration', words: 'A clear editorial illustration' },
  { name: 'watercolour', words: 'A loose watercolour painting' },
  { name: 'drawing', words: 'A fine pencil drawing' },
  { name: '3d', words: 'A soft three-dimensional rendering' },
  { name: 'flat', words: 'A flat graphic in a few colours' },
];

export const compositions = [
  { name: 'wide view', words: 'a wide view with much space around it', aspect: 'landscape' },
  { name: 'close-up', words: 'close up, filling the frame', aspect: 'square' },
  { name: 'full height', words: 'seen from a low angle over its full height', aspect: 'portrait' },
  { name: 'from above', words: 'seen from above', aspect: 'square' },
  { name: 'off centre', words: 'placed at one third of the frame', aspect: 'landscape' },
];

export const lights = [
  'soft morning light',
  'even daylight',
  'warm light of the evening',
  'strong light from one side',
  'light of an overcast sky',
  'light against a dark background',
  'glow of a single lamp',
];
