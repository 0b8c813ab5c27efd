// Classes with members that are types, and fields that no semicolon ends.
interface Named { readonly name: string }
const computed = 'computed';

abstract class Base<T extends object = object> implements Named {
  declare ghost: string
  static readonly kinds: string[] = ['base']
  private static counter = 0
  protected readonly items: T[] = []
  #secret: number = 42
  public name: string = 'base' as const
  optional?: string
  definite!: number;
  [key: string]: unknown

  constructor(name?: string)
  constructor(name: string | undefined) {
    Base.counter++
    if (name !== undefined) this.name = name
  }

  abstract describe(): string
  abstract get size(): number

  protected add(item: T): this
  protected add(...items: T[]): this
  protected add(...items: T[]): this {
    this.items.push(...items)
    return this
  }

  get secret(): number { return this.#secret }
  set secret(value: number) { this.#secret = value }
  static get count(): number { return Base.counter }
}

class Derived extends Base<{ id: number }> {
  a = 1
  private [computed] = 2
  b = [3] as number[]
  readonly ['c' + 'd'] = 4
  get: number = 5
  set: unknown
  static?: string
  public *numbers(): Generator<number> { yield* [1, 2] }
  public override describe(): string { return `${this.name}: ${this.items.length}` }
  override get size(): number { return this.items.length }
  fill() { return this.add({ id: 1 }, { id: 2 }) }
}

const derived = new Derived('derived').fill()
derived.secret = 7
const anonymous = new (class<T> { constructor(readonly_: T) { this.value = readonly_ } value: T })<string>('x')

export default [
  Object.keys(derived), derived.describe(), derived.size, derived.secret, [...derived.numbers()], Base.count,
  Base.kinds, 'ghost' in derived, 'optional' in derived, anonymous.value,
]

// What TypeScript's own compiler makes of it.
export const expected = [
  ['items', 'name', 'optional', 'definite', 'a', 'computed', 'b', 'cd', 'get', 'set', 'static'],
  'derived: 2', 2, 7, [1, 2], 1, ['base'], false, true, 'x',
]
