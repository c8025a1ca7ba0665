// Every text is used. Texts are looked up by `t('key')`, `t(`state_${state}`)` or a key in a variable, so that a key counts
// as used if it stands in quotes anywhere, or if a template of a file that uses its table fits.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dir, '..')
const filesOf = (pattern: string): readonly string[] => [...new Bun.Glob(pattern).scanSync(folder)].sort()
const textOf = (name: string): string => readFileSync(join(folder, name), 'utf8')

const sources = filesOf('**/*.{ts,tsx}')
  .filter(name => !/^words\/|\.test\.ts$|^api\/types\.ts$/.test(name))
  .map(textOf)
const quoted = new Set(sources.flatMap(text => Array.from(text.matchAll(/'(\w+)'/g), ([, word]) => word!)))

/** Their keys are codes of the gateway. */
const byCode = ['call-errors', 'errors', 'outcomes', 'reasons', 'rules']

const templatesOf = (text: string): readonly RegExp[] =>
  Array.from(text.matchAll(/`((?:\w|\$\{[^`{}]*\})+)`/g), ([, template]) => template!)
    .filter(template => template.replaceAll(/\$\{[^}]*\}/g, '') !== '')
    .map(template => new RegExp(`^${template.replaceAll(/\$\{[^}]*\}/g, '.+')}$`))

test('every text is used', () => {
  const tables = filesOf('words/en/*.ts').filter(name => !byCode.some(code => name === `words/en/${code}.ts`))
  expect(tables.length).toBeGreaterThan(40)
  const unused = tables.flatMap(name => {
    const table = textOf(name)
    const exported = /export const (\w+) = words\(/.exec(table)![1]!
    const templates = sources.filter(text => text.includes(exported)).flatMap(templatesOf)
    const keys = Array.from(table.matchAll(/^ {2}'?(\w+)'?:/gm), ([, key]) => key!)
    return keys
      .filter(key => !quoted.has(key) && !templates.some(template => template.test(key)))
      .map(key => `${exported}.${key}`)
  })
  expect(unused).toEqual([])
})
