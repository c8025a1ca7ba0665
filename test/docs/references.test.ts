// docs/how-it-works/stored-ids.md lists the reference fields as the table in the code does.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { referenceFields } from '../../src/protocols/request/references.ts'

const page = readFileSync(join(import.meta.dir, '../../docs/how-it-works/stored-ids.md'), 'utf8')

const lines = referenceFields.map(
  ({ kind, fields, where }) => `| ${kind} | ${fields.map(field => `\`${field}\``).join(', ')} | ${where} |`,
)

test('stored-ids.md lists every reference field as the table in the code does', () => {
  const table = page.slice(page.indexOf('| names |'), page.indexOf('\n\n', page.indexOf('| names |')))
  expect(table.split('\n').slice(2)).toEqual(lines)
})
