// Functions with all that TypeScript hangs on them.
type Pair<A, B = A> = readonly [A, B];

function first(value: string): string
function first<T>(value: readonly T[], fallback?: T): T | undefined
function first(value: any, fallback?: unknown): unknown {
  return value[0] ?? fallback;
}

const pair = <A, B>(a: A, b: B): Pair<A, B> => [a, b] as const;

const lengths = (texts: string[]): {
  text: string;
  length: number;
}[] => texts.map((text): { text: string; length: number } => ({ text, length: text.length }));

const later = async <
  T,
>(value: T): Promise<
  T
> => value;

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function assertText(value: unknown): asserts value is string {
  if (!isText(value)) throw new TypeError('no text');
}

function bound(this: { name: string }, greeting: string, ...rest: string[]): string {
  return [greeting, this.name, ...rest].join(' ');
}

function curry() {
  return <
    T
  >(value: T): T => value;
}

function defaults({ a = 1, b }: { a?: number; b: string } = { b: 'b' }, [c]: number[] = [3], d: number | null = null) {
  return { a, b, c, d };
}

assertText('größe');
let caught: string | undefined;
try {
  assertText(1);
} catch (error: unknown) {
  caught = (error as Error).message;
}

export default [
  first('日本'), first<number>([], 7), pair<string, number>('a', 1), lengths(['é', '👍🏽']), await later(5),
  bound.call({ name: 'Ada' }, 'hello', '!'), curry()<number>(4), defaults(), caught!,
  [1, 2, 3].filter((n): n is 2 => n === 2), new Map<string, number[]>([['a', [1]]]).get('a')!.length,
  String.raw`a${1 as number}\n`,
];

// What TypeScript's own compiler makes of it.
export const expected = [
  '日', 7, ['a', 1], [{ text: 'é', length: 1 }, { text: '👍🏽', length: 4 }], 5,
  'hello Ada !', 4, { a: 1, b: 'b', c: 3, d: null }, 'no text', [2], 1, 'a1\\n',
];
