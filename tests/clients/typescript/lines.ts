// Lines that no semicolon ends, around what is erased.
const calls: string[] = []
const note = (text: string) => { calls.push(text); return note as any }

let a = note('a') as any
;(note('b'))
let b = note
type First = string
(note('c'))
let c = ['x', 'y'] as string[]
[0].toString()
interface Second {}
[note('d')].length
const d = 'd' satisfies string
`${note('e')}`
declare const ghost: number
`${note('f')}`
let e: number
(note('g'))
let f: RegExp
/x/.test('x') && note('h')
type Third = 1
/y/.test('y') && note('i')
const g = 8 as number
/ 2
const h = () => 'h' as string
(note('j'))
if (calls.length > 1) note('k') as void
else note('l')!
for (const x of [1] as const) type_(x)
function type_(x: number) { note(`m${x}`) }

export default [calls, typeof a, typeof b, c, d, g, h()]

// What TypeScript's own compiler makes of it.
export const expected = [
  ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'm1'], 'function', 'function', ['x', 'y'], 'd', 4, 'h',
]
