// Style is a test: the rules, run on the files as they lie on disk.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { errorRows } from '../../src/base/errors.ts'
import { readTree } from './disk.ts'
import { exceptions } from './exceptions.ts'
import { findings, idleExceptions, ruleNames, rules } from './rules.ts'
import { show } from './source.ts'

const tree = { files: readTree(join(import.meta.dir, '../..')), errorCodes: Object.keys(errorRows) }

test('the tree was read', () => {
  expect(tree.files.map(file => file.path)).toContain('test/tidy/tidy.test.ts')
  expect(tree.errorCodes.length).toBeGreaterThan(0)
})

for (const name of ruleNames) {
  test(`${name}: ${rules[name].says}`, () => {
    const found = findings(name, tree, exceptions)
    const lines = found.map(finding => `  ${show(finding)}`)
    if (lines.length > 0) throw new Error([rules[name].says, ...lines].join('\n'))
  })
}

test('every exception is still needed and says why', () => {
  const idle = idleExceptions(tree, exceptions)
  const mute = exceptions.filter(row => row.reason.trim().length < 10)
  expect(idle.map(({ rule, file }) => `${rule} for ${file} excuses nothing any more; delete it`)).toEqual([])
  expect(mute.map(({ rule, file }) => `${rule} for ${file} needs a reason`)).toEqual([])
})
