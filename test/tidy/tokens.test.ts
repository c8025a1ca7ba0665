// The tokenizer and what is read from its tokens: imports, circles.

import { describe, expect, test } from 'bun:test'
import { findCircles, importsOf } from './imports.ts'
import { literalText, tokenize } from './tokens.ts'

const kinds = (text: string): readonly string[] => tokenize(text).code.map(token => `${token.kind} ${token.text}`)

describe('tokens', () => {
  const regexes: readonly (readonly [string, string])[] = [
    ["a = /b'c/.test(d)", "regex /b'c/"],
    ['if (x) /[/"]+/g.exec(y)', 'regex /[/"]+/g'],
    ['return /a`b/u', 'regex /a`b/u'],
    ['f(!/x\\/y/.test(z))', 'regex /x\\/y/'],
    ['`${/}/.test(a)}`', 'regex /}/'],
  ]
  for (const [text, expected] of regexes) test(`regex: ${text}`, () => expect(kinds(text)).toContain(expected))

  for (const text of ['a / b / c', '(a + b) / 2 / c', 'a[0] / b / c', 'a! / b / c', '`x` / 2 / 3', 'i++ / 2 / c']) {
    test(`division: ${text}`, () => expect(kinds(text).some(kind => kind.startsWith('regex'))).toBe(false))
  }

  test('a template comes in pieces, with its expressions as code', () => {
    expect(kinds('`a${b({ c: `d${e}` })}f${g}h` + i')).toEqual([
      ...['template `a${', 'word b', 'punct (', 'punct {', 'word c', 'punct :', 'template `d${', 'word e'],
      ...['template }`', 'punct }', 'punct )', 'template }f${', 'word g', 'template }h`', 'punct +', 'word i'],
    ])
  })

  test('comments and strings hide what they hold', () => {
    const { code, comments } = tokenize(`// it's\n'// not' /* "a" \n b */ x // y\n"it's \\" z"\n`)
    expect(code.map(token => [token.text, token.line, token.first])).toEqual([
      ["'// not'", 2, true],
      ['x', 3, true],
      ['"it\'s \\" z"', 4, true],
    ])
    expect(comments.map(comment => comment.line)).toEqual([1, 2, 3])
  })

  test('a literal has its words; a template with holes has none', () => {
    expect(tokenize("'a' `b` `c${d}e`").code.map(literalText)).toEqual(['a', 'b', undefined, undefined, undefined])
  })

  test('a list of types closes bracket by bracket', () => {
    expect(kinds('Map<a, Set<b>>')).toEqual([
      ...['word Map', 'punct <', 'word a', 'punct ,', 'word Set', 'punct <', 'word b', 'punct >', 'punct >'],
    ])
  })
})

describe('imports', () => {
  const targets = (text: string): readonly string[] =>
    importsOf([{ path: 'src/a/b.ts', text }], new Set(['src/c.ts', 'src/d/index.ts'])).map(
      ({ specifier, target, typeOnly }) => `${typeOnly ? 'type ' : ''}${target ?? specifier}`,
    )
  const table: readonly (readonly [text: string, found: readonly string[]])[] = [
    ["import './x.ts'", ['src/a/x.ts']],
    ["import a, { b as c, type D } from '../c'", ['src/c.ts']],
    ["import type { A } from '../d'\nimport type B from 'e'", ['type src/d/index.ts', 'type e']],
    ["import * as a from 'node:fs'", ['node:fs']],
    ["export { a } from './x.ts'\nexport * from './y.ts'\nexport type { Z } from './z.ts'", [
      ...['src/a/x.ts', 'src/a/y.ts', 'type src/a/z.ts'],
    ]],
    ["export { a }\nexport const b = c.from('./x.ts')\nexport function d() {}", []],
    ["const a = await import('./x.ts')\nlet b: import('./y.ts').B", ['src/a/x.ts', 'type src/a/y.ts']],
    ["import.meta.dir + './x.ts'\nconst a = \"import './x.ts'\" // import './y.ts'", []],
  ]
  for (const [text, expected] of table) {
    test(text.replaceAll('\n', '⏎'), () => expect(targets(text)).toEqual([...expected]))
  }

  test('circles are found once, and a shared import is none', () => {
    const text = (...paths: readonly string[]): string => paths.map(path => `import './${path}.ts'`).join('\n')
    const files = [
      { path: 'a.ts', text: text('b', 'd') },
      { path: 'b.ts', text: text('c', 'd') },
      { path: 'c.ts', text: text('a') },
      { path: 'd.ts', text: '' },
      { path: 'e.ts', text: text('a', 'e') },
    ]
    const circles = findCircles(importsOf(files, new Set(files.map(file => file.path))))
    expect(circles.map(circle => circle.map(edge => edge.file).join())).toEqual(['a.ts,b.ts,c.ts', 'e.ts'])
  })
})
