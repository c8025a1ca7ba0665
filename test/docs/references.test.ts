// docs/how-it-works/stored-ids.md lists the fields that name something kept at an upstream, as the table in the code has them.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { referenceFields } from '../../src/protocols/request/references.ts'

const page = readFileSync(join(import.meta.dir, '../../docs/how-it-works/stored-ids.md'), 'utf8')

const lines = referenceFields.map(
  ({ kind, fields, where }) => `| ${kind} | ${fields.map(field => `\`${field}\``).join(', ')} | ${where} |`,
)

test('every field is listed as it is in the table', () => {
  const table = page.slice(page.indexOf('| names |'), page.indexOf('\n\n', page.indexOf('| names |')))
  expect(table.split('\n').slice(2)).toEqual(lines)
})
